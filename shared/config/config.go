// Package config turns the environment, and below it a file with what belongs to Gemini, into one struct, and refuses to
// start on anything that is wrong in it: Load reports every such variable at once, with what it holds and what it needs
// (contract §3). Nothing here is read twice or later: what a process runs with is what it printed at its start.
//
// Settings that would switch off a check do not exist, and variables by which Google's libraries would do so are refused
// where the process is deployed (reliability §6.17).
package config

import (
	"log/slog"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/policy"
)

// Part is something that a function uses. Load asks for the variables of the parts that it is given; whatever else is
// set is checked all the same.
type Part string

// The parts.
const (
	Model    Part = "model"    // asks Gemini
	Store    Part = "store"    // keeps runs
	Queue    Part = "queue"    // asks for runs to be resumed
	Users    Part = "users"    // is called by users with their ID tokens
	Push     Part = "push"     // is called by Pub/Sub or Cloud Scheduler
	Accounts Part = "accounts" // acts with, or links, users' Google accounts
	Consent  Part = "consent"  // sends browsers to Google and gets them back
	Chat     Part = "chat"     // signs the histories that pages keep
)

// Config is the whole configuration, checked. A comment names the variable; texts may be empty where it says so.
type Config struct {
	// The process.
	Service         string        // K_SERVICE: the Cloud Run service's name; empty on any other machine
	OnCloudRun      bool          // whether K_SERVICE is set
	Release         string        // RELEASE: which build runs; empty where only the build itself knows
	LogLevel        string        // LOG_LEVEL: one of obs.Levels
	Failpoint       string        // AGENT_FAILPOINT: where a test wants the process to die; empty, and always so on Cloud Run
	FunctionTimeout time.Duration // FUNCTION_TIMEOUT, or else CLOUD_RUN_TIMEOUT_SECONDS: when the platform ends a call

	// The model. Vertex AI is used when its project is set, and wins over the key.
	GeminiAPIKey   Secret // GEMINI_API_KEY
	GeminiModel    string // GEMINI_MODEL
	GeminiBaseURL  string // GOOGLE_GEMINI_BASE_URL; empty is the SDK's
	VertexProject  string // VERTEX_AI_PROJECT_ID; may be empty
	VertexLocation string // VERTEX_AI_LOCATION; set where VertexProject is
	VertexEndpoint string // VERTEX_AI_ENDPOINT; empty is the location's
	Persona        string // PERSONA: instructions beside the policy's; at most 8 KiB, may be empty
	SystemPrompt   string // systemPrompt of the file: stands before the agent's own instructions; empty where Persona is set

	// Store and queue.
	Store             string // STORE: embedded or firestore
	DataDir           string // DATA_DIR
	Project           string // GOOGLE_CLOUD_PROJECT, for the queue and the traces too; may be empty
	FirestoreDatabase string // FIRESTORE_DATABASE
	FirestoreEmulator string // FIRESTORE_EMULATOR_HOST, which Google's library reads by itself; may be empty
	Queue             string // QUEUE: embedded or pubsub
	ResumeTopic       string // RESUME_TOPIC: an id, or projects/P/topics/T
	PubSubEmulator    string // PUBSUB_EMULATOR_HOST, which Google's library reads by itself; may be empty

	// Who may call.
	AuthIssuer         string   // AUTH_ISSUER
	AuthAudience       string   // AUTH_AUDIENCE
	WebClientID        string   // WEB_CLIENT_ID: the console's public client at the issuer; empty where nobody signs in there
	WebAPIURL          string   // WEB_API_URL: where the console finds the API, with {function} where each has an address of its own; empty for the console's own
	PushIssuer         string   // PUSH_ISSUER; empty is Google
	PushAudience       string   // PUSH_AUDIENCE
	PushServiceAccount string   // PUSH_SERVICE_ACCOUNT: one exact address
	PushVerifiedBy     string   // PUSH_VERIFIED_BY: app or platform
	PushSubscription   string   // PUSH_SUBSCRIPTION: projects/P/subscriptions/S; empty is any with the account's token; terraform sets it
	AllowedDomains     []string // AUTH_ALLOWED_DOMAINS: whose verified e-mail addresses users must have; empty is anybody's
	AllowedOrigins     []string // ALLOWED_ORIGINS: exact origins of web apps, each once
	PublicURL          string   // PUBLIC_URL: the address that browsers see, without a slash at its end
	ChatKey            Secret   // CHAT_KEY: what signs the histories that pages keep; without it, a key in DataDir, and never so on Cloud Run

	// Declared actions.
	Actions   string // ACTIONS: the folder that declares them; empty where there are none
	ActionKey Secret // ACTION_KEY: what signs, for the operator's endpoints, who calls; its bytes are those of the text

	// Users' Google accounts, and the APIs that are called with them.
	OAuthClientID     string // GOOGLE_OAUTH_CLIENT_ID; empty where no account can be linked
	OAuthClientSecret Secret // GOOGLE_OAUTH_CLIENT_SECRET; set where the id is
	OAuthAuthURL      string // GOOGLE_OAUTH_AUTH_URL; empty is Google's, as with the next three
	OAuthTokenURL     string // GOOGLE_OAUTH_TOKEN_URL
	GmailEndpoint     string // GMAIL_API_ENDPOINT
	CalendarEndpoint  string // CALENDAR_API_ENDPOINT
	GmailSendMode     string // GMAIL_SEND_MODE: draft or direct
	TokenKey          Secret // TOKEN_KEY: a Tink keyset
	TokenKMSKey       string // TOKEN_KMS_KEY; with neither of the two, a key in DataDir, and never so on Cloud Run

	// What a run and its user may do.
	MaxModelCalls       int           // MAX_MODEL_CALLS of one run, 1 to 50
	ApprovalTTL         time.Duration // APPROVAL_TTL, 1 minute to 30 days
	RunDeadline         time.Duration // RUN_DEADLINE: how long a run may take in all, its waiting too; by default 7 days, and never less than ApprovalTTL
	RejectOutcome       string        // REJECT_OUTCOME: completed, failed or continue
	MaxOpenApprovals    int           // MAX_OPEN_APPROVALS of one user; 0 is no cap
	MaxApprovalsPerDay  int           // MAX_APPROVALS_PER_DAY of one user; 0 is no cap
	MaxRunsPerMinute    int           // MAX_RUNS_PER_MINUTE of one user; 0 is no limit, as with the next two
	MaxModelCallsPerDay int           // MAX_MODEL_CALLS_PER_DAY of one user (UTC)
	MaxTokensPerDay     int           // MAX_TOKENS_PER_DAY of the model, of one user (UTC)
	ChatMaxModelCalls   int           // CHAT_MAX_MODEL_CALLS for one message to a page agent, 1 to 50
	Rules               policy.Rules  // POLICY_DENIED, POLICY_PERMITTED, POLICY_ALWAYS_ASK, SIDE_EFFECTS

	settings []Setting
}

// Log is how the process logs.
func (c Config) Log() obs.Options {
	return obs.Options{Level: c.LogLevel, Release: c.Release, Service: c.Service, Project: c.Project}
}

// Redacted gives all settings in effect with what may be shown of each, in a fixed order, for the line at start-up.
func (c Config) Redacted() []Setting { return slices.Clone(c.settings) }

// LogValue implements slog.LogValuer with Redacted.
func (c Config) LogValue() slog.Value {
	attrs := make([]slog.Attr, len(c.settings))
	for i, s := range c.settings {
		attrs[i] = slog.String(s.Variable, s.Value)
	}
	return slog.GroupValue(attrs...)
}
