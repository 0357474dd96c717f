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
	Engine   Part = "engine"   // asks the engine of containers, if there is one
	Mail     Part = "mail"     // mails people what waits, where NOTIFY says so
	Hosts    Part = "hosts"    // keeps, or logs in to, the hosts that users have added
)

// Config is the whole validated configuration. A comment names each variable and says what it sets; README.md is made
// of these comments (page_test.go).
type Config struct {
	// The process.

	// K_SERVICE: set by Cloud Run alone: this process is deployed
	Service    string
	OnCloudRun bool // whether K_SERVICE is set
	// RELEASE: the release in `/health` and in logs; by default the build's commit
	Release  string
	LogLevel string // LOG_LEVEL: the least important entries that are logged
	// AGENT_FAILPOINT: where a test makes the process exit
	Failpoint string
	// FUNCTION_TIMEOUT: how long a call may take before its run is handed over: a call of the model takes at most two
	// thirds of it and 60s, an effect one third and 30s
	//
	// CLOUD_RUN_TIMEOUT_SECONDS: when the platform ends a call; FUNCTION_TIMEOUT is at most as long
	FunctionTimeout time.Duration
	// FUNCTION_CONCURRENCY: how many requests of users an instance serves at once, of which one user holds at most a
	// quarter open as streams or waiting; others are answered 503
	Concurrency int

	// The model.

	// GEMINI_API_KEY: the key for the Gemini Developer API
	GeminiAPIKey Secret
	GeminiModel  string // GEMINI_MODEL: the model of agents that name none
	// GOOGLE_GEMINI_BASE_URL: another server that speaks the Gemini protocol
	GeminiBaseURL string
	// VERTEX_AI_PROJECT_ID: the project in which Vertex AI is asked instead of the Developer API, whether or not there
	// is a key
	VertexProject  string
	VertexLocation string // VERTEX_AI_LOCATION: where Vertex AI is asked
	VertexEndpoint string // VERTEX_AI_ENDPOINT: another server that speaks its protocol; by default the location's
	// PERSONA: what the instructions of the assistant and of a page's agent begin with; by default a short one
	Persona string
	// GEMINI_CONFIG: a file with the keys `apiKey`, `model` and `systemPrompt`, each of which counts where
	// GEMINI_API_KEY, GEMINI_MODEL or PERSONA is not set; the file may be absent where this is not set
	SystemPrompt string // systemPrompt of the file; empty with Persona

	// Store and queue.

	// STORE: where runs are stored: one SQLite file, or Firestore
	Store string
	// DATABASE_URL: nothing: STORE is used instead, which the log says at the start where it is set
	DatabaseURL bool   // whether it is set
	DataDir     string // DATA_DIR: the directory of the embedded store, and of keys that are made on one machine
	// GOOGLE_CLOUD_PROJECT: the project of Firestore, Pub/Sub and traces
	Project           string
	FirestoreDatabase string // FIRESTORE_DATABASE: the database in that project
	// FIRESTORE_EMULATOR_HOST: Firestore's emulator, as Google's library reads it
	FirestoreEmulator string
	// QUEUE: what carries the messages that resume runs: wake-ups in memory and documents between processes, documents
	// that are pushed over HTTP as in the cloud, or Pub/Sub, the default where STORE is `firestore`
	Queue       string
	ResumeTopic string // RESUME_TOPIC: the topic of those messages
	// SWEEP_TOPIC: the topic of the messages with which a sweep hands on what it has no time for; by default it goes on
	// by itself
	SweepTopic string
	// EVENTS_TOPIC: the topic on which others are told what has happened to runs, without content; by default nobody is
	EventsTopic string
	// WEBHOOKS: the file of the endpoints that are told of runs: from EVENTS_TOPIC by the function `notify`, and on one
	// machine directly
	Webhooks string
	// WEBHOOK_KEYS: the keys with which what they are told is signed, one for each or two while it is rotated
	WebhookKeys Secret // a JSON object of lists
	// CONSOLE_URL: the address at which people find the console, to which what others are told leads; by default
	// PUBLIC_URL
	ConsoleURL string // without a slash at its end
	// OTEL_EXPORTER_OTLP_ENDPOINT: the collector to which OpenTelemetry's traces and metrics of runs are sent; by
	// default none are made
	TracesEndpoint string // with its path; empty: there are no traces
	// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: where metrics are sent in its place, with the path
	//
	// OTEL_METRICS_EXPORTER: whether there are metrics
	MetricsEndpoint string // with its path; empty: there are no metrics
	// OTEL_EXPORTER_OTLP_PROTOCOL: how: OTLP over HTTP, with protocol buffers
	TracesProtocol string
	// OTEL_SDK_DISABLED: that there are neither, whatever else is set
	TracesOff    bool
	TraceService string // OTEL_SERVICE_NAME: the name of the service in traces and metrics
	// OTEL_TRACES_SAMPLER: which runs are traced; no caller's own trace is gone on with, so `parentbased_` makes no
	// difference
	TraceSampler string
	// OTEL_TRACES_SAMPLER_ARG: the percentage, for a ratio, of runs that are traced, as a part of 1
	TraceRatio float64
	// OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: whether each message has what was measured since the one
	// before (`delta`, as `lowmemory`), or since the process began
	MetricsCumulative bool
	// OTEL_METRIC_EXPORT_INTERVAL: after how many milliseconds metrics are sent beside the end of each request
	MetricsInterval time.Duration
	// OTEL_EXPORTER_OTLP_HEADERS: headers of each request to it
	otlpHeaders Secret
	// OTEL_EXPORTER_OTLP_METRICS_HEADERS: those of metrics in their place
	metricsHeaders Secret
	// OTEL_RESOURCE_ATTRIBUTES: what traces and metrics say of who sends them, such as `cloud.region=europe-west1`
	resource string
	// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: whether traces have what was said to the model and by it, and
	// what tools were given and answered; without it no span has any content
	TraceContent bool
	// RETENTION: for how many days a conversation is kept after it was last used, with its runs and approvals; 0: for
	// good
	Retention time.Duration
	// AUDIT_RETENTION: for how many days an entry of the audit is kept, more than RETENTION; it counts for the runs and
	// users whose audit begins while it is set; 0: for good
	AuditDays int
	// PUBSUB_EMULATOR_HOST: Pub/Sub's emulator, as Google's library reads it
	PubSubEmulator string

	// Who may call.

	AuthIssuer   string // AUTH_ISSUER: whose ID tokens users send; `scripts/dev` has an issuer of its own
	AuthAudience string // AUTH_AUDIENCE: for whom those tokens are made
	// AUTH_ALLOWED_DOMAINS: for an issuer at which anyone can sign up: a token without a verified e-mail address of one
	// of these domains is refused; by default none is
	AllowedDomains []string
	// ALLOWED_ORIGINS: web apps of other origins that may call the API from a browser
	AllowedOrigins []string // each once
	// PUBLIC_URL: the address at which browsers find these functions
	PublicURL string // without a slash at its end
	// MCP_URL: the address of /mcp where it is not under PUBLIC_URL
	MCPURL string // never empty where PUBLIC_URL is set
	// MCP_ISSUER: an OAuth issuer whose access tokens agents bring to /mcp; its subjects are the users of AUTH_ISSUER,
	// and each token is for MCP_URL alone (RFC 8707); by default agents bring tokens that their users have made
	MCPIssuer string
	// WEB_CLIENT_ID: the console's client at AUTH_ISSUER (authorization code with PKCE; with Google the ID token);
	// the same as AUTH_AUDIENCE; without it users cannot sign in there
	WebClientID string
	// WEB_API_URL: where the console finds the API, if not at its own origin, which has to be in ALLOWED_ORIGINS then
	WebAPIURL string
	// PUSH_ISSUER: who signs the tokens of Pub/Sub and Cloud Scheduler
	PushIssuer         string
	PushAudience       string // PUSH_AUDIENCE: for whom those tokens are made; not needed with `platform`
	PushServiceAccount string // PUSH_SERVICE_ACCOUNT: the account in whose name resume and sweep are called
	// PUSH_VERIFIED_BY: who checks the tokens of those calls: `app` is this process; `platform` is Cloud Run, in front
	// of a private function, after which only the account is compared
	PushVerifiedBy string
	// PUSH_SUBSCRIPTION: whose messages resume works on; by default those of any subscription that has the account's
	// token
	PushSubscription string
	// VAPID_KEY: the key by which browsers know who tells their people of what waits; without it nobody is told on
	// their devices. `scripts/dev` has one in DATA_DIR
	VapidKey Secret
	// NOTIFY: `mail` has people mailed what has waited for more than five minutes, at most once an hour, at the address
	// for which the issuer of their tokens vouches; by default nobody is mailed
	Notify string
	// SMTP_URL: the server that sends these mails, with a user and a password: smtps from the first byte, or smtp with
	// STARTTLS, which only a loopback address may do without
	SMTP Secret
	// NOTIFY_FROM: the address of who writes these mails
	NotifyFrom string
	// CHAT_KEY: the secrets that seal the histories of pages; except on Cloud Run, a key in DATA_DIR by default
	ChatKey Secret

	// Declared actions and agents.

	Actions string // ACTIONS: the folder of declared actions
	// ACTION_KEY: the secrets with which endpoints of declared actions are told, under a signature, for whom they are
	// called: the first signs
	ActionKey Secret // the bytes of the text
	Agents    string // AGENTS: the folder of declared agents
	// MCP_SERVERS: the file of the MCP servers whose tools agents have
	MCPServers string
	// MCP_SECRETS: what that file refers to as `${NAME}`, by its names; by default the environment is asked
	MCPSecrets Secret // a JSON object of texts

	// Users' Google accounts, and the APIs that use them.

	OAuthClientID     string // GOOGLE_OAUTH_CLIENT_ID: the client to which users link their accounts
	OAuthClientSecret Secret // GOOGLE_OAUTH_CLIENT_SECRET: its secret
	OAuthAuthURL      string // GOOGLE_OAUTH_AUTH_URL: another server that asks for consent; by default Google's
	OAuthTokenURL     string // GOOGLE_OAUTH_TOKEN_URL: another server that issues tokens; by default Google's
	GmailEndpoint     string // GMAIL_API_ENDPOINT: another server that speaks Gmail's API; by default Google's
	CalendarEndpoint  string // CALENDAR_API_ENDPOINT: another server that speaks Calendar's API; by default Google's
	// GMAIL_SEND_MODE: `draft` (the scope gmail.compose) sends exactly once; `direct` (gmail.send) leaves an outcome
	// that is not clear to a review
	GmailSendMode string
	// GMAIL_SEARCH: whether agents may have `gmail_search`, for which each user who first needs it is asked for the
	// scope gmail.readonly. `scripts/dev` has it on
	GmailSearch bool
	// TOKEN_KEY: the key that encrypts refresh tokens and the secrets of hosts; except on Cloud Run, one in DATA_DIR by
	// default
	TokenKey    Secret
	TokenKMSKey string // TOKEN_KMS_KEY: a key of Cloud KMS in its place

	// Receipts.

	// RECEIPT_KEY: the Ed25519 key that signs receipts; except on Cloud Run, one in DATA_DIR by default. There are no
	// receipts where there is none
	ReceiptKey    Secret
	ReceiptKMSKey string // RECEIPT_KMS_KEY: a version of a key of Cloud KMS in its place, of EC_SIGN_ED25519
	// RECEIPT_JWKS: the public keys by which receipts are known, those of earlier ones too; by default the public half
	// of the key that signs
	ReceiptJWKS string

	// Users' GitHub accounts, and where GitHub is.

	GitHubClientID     string // GITHUB_CLIENT_ID: the GitHub App to which users link their accounts
	GitHubClientSecret Secret // GITHUB_CLIENT_SECRET: its client secret
	GitHubURL          string // GITHUB_URL: another GitHub's pages, and the host of repositories' addresses
	GitHubAPIURL       string // GITHUB_API_URL: its API
	// GITHUB_TOKEN: a token of GitHub's with which the one user of GITHUB_TOKEN_USER acts at GITHUB_API_URL, without a
	// link, in `scripts/dev`; not read without GITHUB_TOKEN_USER
	GitHubToken     Secret
	GitHubTokenUser string // GITHUB_TOKEN_USER: the subject of that user's ID tokens

	// Terminals on users' hosts.

	// TERMINAL: whether users may add hosts, and agents may propose commands there; `off` leaves it to them to see and
	// delete what they have. `scripts/dev` has it on
	Terminal bool
	// TERMINAL_HOSTS: what may be reached beside public addresses at port 22, such as private ranges and other ports;
	// where K_SERVICE is set, never a loopback address, and nowhere a link-local one or a cloud's metadata
	TerminalHosts []string // each once
	// TERMINAL_DENY: programs that no command may run; where it is set, a command is denied too of which cannot be
	// told what it runs
	TerminalDeny      []string // each once
	MaxCommandsPerDay int      // MAX_COMMANDS_PER_DAY: how many commands one user may have run in a day (UTC); 0: any

	// Reading the web.

	// WEB_TOOLS: whether agents in files may have `web_fetch` and `google_web_search`; nothing sets which private
	// addresses pages are read from: none are. `scripts/dev` has it on
	WebTools bool

	// Containers.

	// DOCKER_HOST: the engine that runs containers for agents in files and plans: Docker's, or one that speaks
	// its API. The tools are offered where DOCKER_IMAGES is set too: for plans, and by `scripts/dev` for agents in
	// files
	DockerHost string
	// DOCKER_IMAGES: what containers are made of; nothing else is, and nothing is pulled. Without it `scripts/dev`
	// offers what an engine has that answers at a socket of the machine
	DockerImages []string // each once
	// DOCKER_NETWORK: the one of the engine's networks that containers are in; by default they have none
	DockerNetwork string
	// DOCKER_CERT_PATH: the directory of ca.pem, cert.pem and key.pem, by which an engine at a tcp address is asked
	DockerCertPath string
	// DOCKER_CERTS: those three as one text, in the place of files: for a deployment, from a secret
	DockerCerts Secret

	// Limits of a run and its user.

	MaxModelCalls int           // MAX_MODEL_CALLS: how often a run of the assistant may ask the model
	ApprovalTTL   time.Duration // APPROVAL_TTL: how long an approval may wait
	// HOLD: how long at least an approval can be undone before anything is done; 0s: not at all
	Hold time.Duration
	// RUN_DEADLINE: how long a run of the assistant may take in all, at least APPROVAL_TTL; by default 7 days, or an
	// hour more than APPROVAL_TTL
	RunDeadline time.Duration
	// REJECT_OUTCOME: how a run of the assistant ends whose call its user rejected; with `continue` the model is told
	// and goes on
	RejectOutcome    string
	MaxOpenApprovals int // MAX_OPEN_APPROVALS: how many approvals of one user and agent may wait at a time; 0: any
	// MAX_APPROVALS_PER_DAY: for how many approvals one user and agent may ask in a day, the planner for at least as
	// many as one session may; 0: any
	MaxApprovalsPerDay int
	// MAX_RUNS_PER_MINUTE: what one user may begin in 60 seconds: runs, messages to a page's agent, and called actions
	// with an effect; 0: any number
	MaxRunsPerMinute int
	// MAX_MODEL_CALLS_PER_DAY: how often one user may have the model asked in a day (UTC); 0: any
	MaxModelCallsPerDay int
	// MAX_TOKENS_PER_DAY: how many of the model's tokens one user may use in a day (UTC); 0: any
	MaxTokensPerDay   int
	ChatMaxModelCalls int // CHAT_MAX_MODEL_CALLS: how often one message to a page's agent may ask the model
	// PLAN_MAX_ASKS: how many approvals one session of the planner may ask for, its plans among them; 0: any
	PlanMaxAsks       int
	PlanMaxDeadline   time.Duration // PLAN_MAX_DEADLINE: how far ahead the deadline of a session may be
	PlanMaxModelCalls int           // PLAN_MAX_MODEL_CALLS: how often one session may ask the model
	// POLICY_DENIED: who is never written to
	//
	// POLICY_PERMITTED: the only ones who are written to; by default everyone whom POLICY_DENIED does not name
	//
	// POLICY_ALWAYS_ASK: who is written to only with an approval, whatever its user always allows
	//
	// SIDE_EFFECTS: `ask` has every side effect approved, whatever its user always allows; `off` denies them all
	Rules policy.Rules

	settings    []Setting
	environment func(name string) string
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
