// Package config turns the environment into one struct, and refuses to start on anything that is wrong in it: Load
// reports every such variable at once, with what it holds and what it needs (contract §3). Nothing here is read twice
// or later: what a process runs with is what it printed at its start.
//
// Settings that would switch off a check do not exist, and variables by which Google's libraries would do so are refused
// where the process is deployed (reliability §6.17).
package config

import (
	"log/slog"
	"slices"
	"time"

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
)

// Config is the whole configuration, checked.
type Config struct {
	Service   string     // K_SERVICE: the Cloud Run service's name; empty on any other machine
	Release   string     // RELEASE: which build runs; empty where only the build itself knows
	LogLevel  slog.Level // LOG_LEVEL
	Failpoint string     // AGENT_FAILPOINT: where a test wants the process to die; never set where it is deployed
	PublicURL string     // PUBLIC_URL: the address that browsers see, without a slash at its end
	Origins   []string   // ALLOWED_ORIGINS: exact origins of web apps, each once

	Gemini  GeminiConfig
	Data    DataConfig
	Queue   QueueConfig
	Users   UsersConfig
	Push    PushConfig
	Google  GoogleConfig
	Limits  Limits
	Policy  policy.Rules
	Rejects string // REJECT_OUTCOME: how a rejected run ends: completed, failed or continue

	settings []Setting
}

// GeminiConfig says which model is asked, and where. Vertex AI is used when its project is set, and wins over the key.
type GeminiConfig struct {
	Key            Secret // GEMINI_API_KEY
	Model          string // GEMINI_MODEL
	BaseURL        string // GOOGLE_GEMINI_BASE_URL; empty is the SDK's
	VertexProject  string // VERTEX_AI_PROJECT_ID
	VertexLocation string // VERTEX_AI_LOCATION
	VertexEndpoint string // VERTEX_AI_ENDPOINT; empty is the location's
	Persona        string // PERSONA: the assistant's own instructions beside the policy's; at most 8 KiB, may be empty
}

// DataConfig says where runs are kept.
type DataConfig struct {
	Kind     string // STORE: embedded or firestore
	Dir      string // DATA_DIR
	Project  string // GOOGLE_CLOUD_PROJECT, for the queue and the traces too
	Database string // FIRESTORE_DATABASE
	Emulator string // FIRESTORE_EMULATOR_HOST, which Google's library reads by itself
}

// QueueConfig says how runs are resumed.
type QueueConfig struct {
	Kind     string // QUEUE: embedded or pubsub
	Topic    string // RESUME_TOPIC
	Emulator string // PUBSUB_EMULATOR_HOST, which Google's library reads by itself
}

// UsersConfig says whose ID tokens are accepted.
type UsersConfig struct {
	Issuer   string // AUTH_ISSUER
	Audience string // AUTH_AUDIENCE
}

// PushConfig says whose calls the resume and sweep functions accept.
type PushConfig struct {
	Issuer         string // PUSH_ISSUER; empty is Google
	Audience       string // PUSH_AUDIENCE
	ServiceAccount string // PUSH_SERVICE_ACCOUNT: one exact address
	VerifiedBy     string // PUSH_VERIFIED_BY: app or platform
}

// GoogleConfig is for users' Google accounts and the APIs that are called with them.
type GoogleConfig struct {
	ClientID         string // GOOGLE_OAUTH_CLIENT_ID
	ClientSecret     Secret // GOOGLE_OAUTH_CLIENT_SECRET
	AuthURL          string // GOOGLE_OAUTH_AUTH_URL; empty is Google's, as with the next three
	TokenURL         string // GOOGLE_OAUTH_TOKEN_URL
	GmailEndpoint    string // GMAIL_API_ENDPOINT
	CalendarEndpoint string // CALENDAR_API_ENDPOINT
	GmailSendMode    string // GMAIL_SEND_MODE: draft or direct
	TokenKey         Secret // TOKEN_KEY: a Tink keyset
	TokenKMSKey      string // TOKEN_KMS_KEY; with neither of the two, a key in DATA_DIR
}

// Limits bound a run and its user.
type Limits struct {
	ModelCalls      int           // MAX_MODEL_CALLS of one run, 1 to 50
	ApprovalTTL     time.Duration // APPROVAL_TTL, 1 minute to 30 days
	RunDeadline     time.Duration // RUN_DEADLINE: how long a run may take in all, its waiting too; by default 7 days, and more than ApprovalTTL
	OpenApprovals   int           // MAX_OPEN_APPROVALS of one user; 0 is no cap
	ApprovalsPerDay int           // MAX_APPROVALS_PER_DAY of one user; 0 is no cap
	FunctionTimeout time.Duration // FUNCTION_TIMEOUT, or else CLOUD_RUN_TIMEOUT_SECONDS: when the platform ends a call
}

// Deployed reports whether the process runs on Cloud Run.
func (c Config) Deployed() bool { return c.Service != "" }

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
