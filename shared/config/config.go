// Package config reads the environment, and a file of Gemini's settings as its fallback, into one validated struct.
// [Load] reports every wrong variable at once, with its value and what it needs (contract §3). Everything is read once:
// a process runs with the configuration that it printed at its start.
//
// No setting switches off a check, and a deployed process refuses variables with which Google's libraries would do so
// (reliability §6.17).
package config

import (
	"log/slog"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/policy"
)

// A Part is something that a function uses. [Load] requires the variables of the parts that it gets; other variables
// that are set are checked too.
type Part string

// The parts.
const (
	Model    Part = "model"    // calls Gemini
	Store    Part = "store"    // stores runs
	Queue    Part = "queue"    // publishes runs to be resumed
	Users    Part = "users"    // is called by users with their ID tokens
	Push     Part = "push"     // is called by Pub/Sub or Cloud Scheduler
	Accounts Part = "accounts" // uses, or links, users' Google accounts
	Consent  Part = "consent"  // redirects browsers to Google's consent and back
	Chat     Part = "chat"     // signs the histories that pages keep
)

// Config is the whole validated configuration. Each comment names the variable, and says if a text may be empty.
type Config struct {
	// The process.
	Service         string        // K_SERVICE: the Cloud Run service's name; empty on any other machine
	OnCloudRun      bool          // whether K_SERVICE is set
	Release         string        // RELEASE: names the build; empty: the build's own name
	LogLevel        string        // LOG_LEVEL: one of obs.Levels
	Failpoint       string        // AGENT_FAILPOINT: where a test makes the process exit; always empty on Cloud Run
	FunctionTimeout time.Duration // FUNCTION_TIMEOUT, or CLOUD_RUN_TIMEOUT_SECONDS: when the platform ends a call

	// The model. Vertex AI is used when its project is set, and wins over the key.
	GeminiAPIKey   Secret // GEMINI_API_KEY
	GeminiModel    string // GEMINI_MODEL
	GeminiBaseURL  string // GOOGLE_GEMINI_BASE_URL; empty is the SDK's
	VertexProject  string // VERTEX_AI_PROJECT_ID; may be empty
	VertexLocation string // VERTEX_AI_LOCATION; set where VertexProject is
	VertexEndpoint string // VERTEX_AI_ENDPOINT; empty is the location's
	Persona        string // PERSONA: instructions beside the policy's; at most 8 KiB, may be empty
	SystemPrompt   string // systemPrompt of the file: precedes the agent's instructions; empty with Persona

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
	WebClientID        string   // WEB_CLIENT_ID: the console's public client; empty: no sign-in there
	WebAPIURL          string   // WEB_API_URL, with {function} or without; empty: the console's origin
	PushIssuer         string   // PUSH_ISSUER; empty is Google
	PushAudience       string   // PUSH_AUDIENCE
	PushServiceAccount string   // PUSH_SERVICE_ACCOUNT: one exact address
	PushVerifiedBy     string   // PUSH_VERIFIED_BY: app or platform
	PushSubscription   string   // PUSH_SUBSCRIPTION: projects/P/subscriptions/S; empty: any
	AllowedDomains     []string // AUTH_ALLOWED_DOMAINS: of users' verified e-mail addresses; empty: any
	AllowedOrigins     []string // ALLOWED_ORIGINS: exact origins of web apps, each once
	PublicURL          string   // PUBLIC_URL: the address that browsers see, without a slash at its end
	ChatKey            Secret   // CHAT_KEY: signs pages' histories; empty, but not on Cloud Run: a key in DataDir

	// Declared actions.
	Actions   string // ACTIONS: the folder that declares them; empty where there are none
	ActionKey Secret // ACTION_KEY: signs the caller's identity for the operator's endpoints; the bytes of the text

	// Declared agents.
	Agents string // AGENTS: the folder that declares them; empty where there are none

	// Users' Google accounts, and the APIs that use them.
	OAuthClientID     string // GOOGLE_OAUTH_CLIENT_ID; empty where no account can be linked
	OAuthClientSecret Secret // GOOGLE_OAUTH_CLIENT_SECRET; set where the id is
	OAuthAuthURL      string // GOOGLE_OAUTH_AUTH_URL; empty is Google's, as with the next three
	OAuthTokenURL     string // GOOGLE_OAUTH_TOKEN_URL
	GmailEndpoint     string // GMAIL_API_ENDPOINT
	CalendarEndpoint  string // CALENDAR_API_ENDPOINT
	GmailSendMode     string // GMAIL_SEND_MODE: draft or direct
	TokenKey          Secret // TOKEN_KEY: a Tink keyset
	TokenKMSKey       string // TOKEN_KMS_KEY; with neither, and not on Cloud Run, a key in DataDir

	// Limits of a run and its user.
	MaxModelCalls       int           // MAX_MODEL_CALLS of one run, 1 to 50
	ApprovalTTL         time.Duration // APPROVAL_TTL, 1 minute to 30 days
	RunDeadline         time.Duration // RUN_DEADLINE of a run with its waiting, at least ApprovalTTL; by default 7 days
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

// Log returns the options of the process's log.
func (c Config) Log() obs.Options {
	return obs.Options{Level: c.LogLevel, Release: c.Release, Service: c.Service, Project: c.Project}
}

// Redacted returns all settings in effect, secrets redacted, in a fixed order, for the line at start-up.
func (c Config) Redacted() []Setting { return slices.Clone(c.settings) }

// LogValue implements slog.LogValuer with Redacted.
func (c Config) LogValue() slog.Value {
	attrs := make([]slog.Attr, len(c.settings))
	for i, s := range c.settings {
		attrs[i] = slog.String(s.Variable, s.Value)
	}
	return slog.GroupValue(attrs...)
}
