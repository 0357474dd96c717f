// Package config reads the environment into one validated struct, with a file of Gemini settings as fallback. [Load]
// reports every wrong variable at once, with its value and what it needs (contract §3). Everything is read once: a
// process keeps the configuration that it printed at its start.
//
// No setting disables a security check, and a deployed process refuses the variables with which Google's libraries
// would disable one (reliability §6.17).
package config

import (
	"log/slog"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// A Part is something that a function uses. [Load] requires the variables of the parts it is given; other variables are
// validated if they are set.
type Part string

// The parts.
const (
	Model    Part = "model"    // calls Gemini
	Store    Part = "store"    // stores runs
	Queue    Part = "queue"    // publishes runs to be resumed
	Users    Part = "users"    // receives calls of users with their ID tokens
	Push     Part = "push"     // receives calls of Pub/Sub or Cloud Scheduler
	Accounts Part = "accounts" // uses or links users' Google accounts
	Consent  Part = "consent"  // redirects browsers to Google's consent and back
	Chat     Part = "chat"     // signs the histories that pages store
	Engine   Part = "engine"   // uses the container engine, if one is configured
	Mail     Part = "mail"     // sends e-mails about waiting approvals, if NOTIFY is mail
	Hosts    Part = "hosts"    // stores or logs in to the hosts that users have added
	Files    Part = "files"    // encrypts or decrypts uploaded files, if FILES_BUCKET is set
)

// Config is the whole validated configuration. A comment names each variable and says what it sets. README.md is
// generated from these comments (page_test.go).
type Config struct {
	// The process.

	// K_SERVICE: only Cloud Run sets it: this process is deployed
	Service    string
	OnCloudRun bool // whether K_SERVICE is set
	// RELEASE: the release in `/health` and in logs; by default the build's commit
	Release  string
	LogLevel string // LOG_LEVEL: the lowest level that is logged
	// AGENT_FAILPOINT: the point at which a test makes the process exit
	Failpoint string
	// FUNCTION_TIMEOUT: how long a request may take before its run is handed over. A model call takes at most two
	// thirds of it and 60s; an effect takes at most one third and 30s
	//
	// CLOUD_RUN_TIMEOUT_SECONDS: when the platform ends a request; FUNCTION_TIMEOUT cannot be longer
	FunctionTimeout time.Duration
	// FUNCTION_CONCURRENCY: how many user requests an instance serves at once; further requests get 503. One
	// user can hold a quarter of them as streams or waits
	Concurrency int

	// The model.

	// GEMINI_API_KEY: the key for the Gemini Developer API
	GeminiAPIKey Secret
	GeminiModel  string // GEMINI_MODEL: the model of agents that name no model
	// GEMINI_FALLBACK_MODELS: models that are asked in this order while a run's own model is overloaded or its quota is
	// used up, after the retries and before any text of the answer was shown. The run then stays with the model that
	// answered. Page agents and conversations on a terminal have no fallback
	GeminiFallbackModels []string
	// GEMINI_MODELS: models that a request can choose with `model` instead of its agent's
	GeminiModels []string
	// MODEL_REQUESTS_PER_MINUTE: the requests that all instances together send to one model in a minute. Set it to the
	// project's quota. Runs that find it used up wait for their turn; 0: unlimited
	ModelRequestsPerMinute int
	// MODEL_TOKENS_PER_MINUTE: in the same way, the tokens of prompts in a minute; 0: unlimited
	ModelTokensPerMinute int
	// GOOGLE_GEMINI_BASE_URL: another server that speaks the Gemini protocol
	GeminiBaseURL string
	// VERTEX_AI_PROJECT_ID: the project whose Vertex AI replaces the Developer API, even if a key is set
	VertexProject  string
	VertexLocation string // VERTEX_AI_LOCATION: the location of Vertex AI
	VertexEndpoint string // VERTEX_AI_ENDPOINT: another server with Vertex AI's protocol; the default is the location's
	// PERSONA: the beginning of the instructions of the assistant and of page agents; the default is short
	Persona string
	// GEMINI_CONFIG: a file with the keys `apiKey`, `model` and `systemPrompt`, which apply if GEMINI_API_KEY,
	// GEMINI_MODEL or PERSONA is not set. The default file need not exist
	SystemPrompt string // systemPrompt of the file; empty with Persona

	// Store and queue.

	// STORE: where runs are stored: in one SQLite file or in Firestore
	Store string
	// DATABASE_URL: not used; STORE is used instead. If it is set, the log says so at the start
	DatabaseURL bool   // whether it is set
	DataDir     string // DATA_DIR: the directory of the embedded store and of keys that are created on one machine
	// FILES_BUCKET: the bucket of Cloud Storage for uploaded files, which TOKEN_KMS_KEY or TOKEN_KEY encrypts. With the
	// embedded store the default is the folder `files` in DATA_DIR; with Firestore no files can be uploaded by default
	FilesBucket string
	// LOG_BUCKET: the bucket of Cloud Storage for the log of the audit's hashes (shared/receipts/translog). With the
	// embedded store the default is the folder `log` in DATA_DIR; with Firestore there is no log by default
	LogBucket string
	// LOG_KMS_KEY: a Cloud KMS key version (EC_SIGN_ED25519) that signs the log's checkpoints; the default with the
	// embedded store is a key in DATA_DIR
	LogKMSKey string
	// LOG_PUBLIC_KEYS: the keys that check the log's checkpoints, as `ops checkpoint save` prints them, with commas
	// between them. The sweep needs those of earlier versions of the key
	LogPublicKeys string
	// STORAGE_EMULATOR_HOST: a server with Cloud Storage's API in place of Google's, for tests
	StorageEmulator string
	// GOOGLE_CLOUD_PROJECT: the project of Firestore, Pub/Sub and traces
	Project           string
	FirestoreDatabase string // FIRESTORE_DATABASE: the database in that project
	// FIRESTORE_EMULATOR_HOST: Firestore's emulator, as Google's library reads it
	FirestoreEmulator string
	// QUEUE: what carries the messages that resume runs: `embedded` uses memory, and documents between processes;
	// `push` sends signed HTTP pushes as in the cloud; `pubsub` is the default with STORE `firestore`
	Queue       string
	ResumeTopic string // RESUME_TOPIC: the topic of those messages
	// SWEEP_TOPIC: the topic to which a sweep hands over work that it has no time for; by default the sweep continues
	// by itself
	SweepTopic string
	// EVENTS_TOPIC: the topic of the notifications about runs, which have no content; by default there are none
	EventsTopic string
	// WEBHOOKS: the file of the endpoints that receive notifications: from EVENTS_TOPIC through the function `notify`,
	// or directly on one machine
	Webhooks string
	// WEBHOOK_KEYS: the keys that sign the notifications: one for each endpoint, or two during a rotation
	WebhookKeys Secret // a JSON object of lists
	// CONSOLE_URL: the address of the console, for links in notifications; the default is PUBLIC_URL
	ConsoleURL string // without a slash at its end
	// OTEL_EXPORTER_OTLP_ENDPOINT: the collector for OpenTelemetry traces and metrics of runs; by default there are
	// none
	TracesEndpoint string // with its path; empty if traces are disabled
	// OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: another collector for metrics, with the path
	//
	// OTEL_METRICS_EXPORTER: `none` turns metrics off
	MetricsEndpoint string // with its path; empty if metrics are disabled
	// OTEL_EXPORTER_OTLP_PROTOCOL: the protocol: OTLP over HTTP with protocol buffers
	TracesProtocol string
	// OTEL_SDK_DISABLED: `true` turns traces and metrics off, whatever else is set
	TracesOff    bool
	TraceService string // OTEL_SERVICE_NAME: the name of the service in traces and metrics
	// OTEL_TRACES_SAMPLER: which runs are traced; a caller's own trace is never continued, so `parentbased_` makes no
	// difference
	TraceSampler string
	// OTEL_TRACES_SAMPLER_ARG: for a ratio, the share of runs that are traced, from 0 to 1
	TraceRatio float64
	// OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: `delta` and `lowmemory` send the measurements since the last
	// message, `cumulative` all since the process began
	MetricsCumulative bool
	// OTEL_METRIC_EXPORT_INTERVAL: the milliseconds after which a long request sends its metrics
	MetricsInterval time.Duration
	// OTEL_EXPORTER_OTLP_HEADERS: headers of each request to the collector
	otlpHeaders Secret
	// OTEL_EXPORTER_OTLP_METRICS_HEADERS: other headers for metrics
	metricsHeaders Secret
	// OTEL_RESOURCE_ATTRIBUTES: attributes of the sender in traces and metrics, such as `cloud.region=europe-west1`
	resource string
	// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: `true` adds the messages to and from the model, and the
	// arguments and results of tools, to the traces; otherwise a span has no content
	TraceContent bool
	// RETENTION: the days that a conversation is kept after its last use, with its runs and approvals; 0: forever
	Retention time.Duration
	// AUDIT_RETENTION: the days that an audit entry is kept, more than RETENTION; it applies to runs and users whose
	// audit begins while it is set; 0: forever
	AuditDays int
	// PUBSUB_EMULATOR_HOST: Pub/Sub's emulator, as Google's library reads it
	PubSubEmulator string

	// Who may call.

	AuthIssuer   string // AUTH_ISSUER: the issuer of users' ID tokens; `scripts/dev` has one of its own
	AuthAudience string // AUTH_AUDIENCE: the audience of those tokens
	// AUTH_ALLOWED_DOMAINS: for an issuer at which anyone can sign up: only tokens with a verified e-mail address of
	// one of these domains are accepted; by default all are
	AllowedDomains []string
	// ALLOWED_ORIGINS: the other origins whose web apps can call the API from a browser
	AllowedOrigins []string // each once
	// PUBLIC_URL: the address of these functions for browsers
	PublicURL string // without a slash at its end
	// MCP_URL: the address of /mcp if it is not under PUBLIC_URL
	MCPURL string // never empty if PUBLIC_URL is set
	// MCP_ISSUER: an OAuth issuer whose access tokens are accepted at /mcp. Its subjects are the users of AUTH_ISSUER,
	// and each token is for MCP_URL only (RFC 8707). By default agents use tokens that users create in the console
	MCPIssuer string
	// WEB_CLIENT_ID: the console's client at AUTH_ISSUER (authorization code with PKCE; with Google the ID token). It
	// equals AUTH_AUDIENCE. Without it users cannot sign in to the console
	WebClientID string
	// WEB_API_URL: the address of the API if it is not the console's origin; ALLOWED_ORIGINS must then list that origin
	WebAPIURL string
	// WEB_FUNCTIONS: the deployed functions, by name. The console hides the views that need another one. By default it
	// shows all views
	WebFunctions []string
	// PUSH_ISSUER: the issuer of the tokens of Pub/Sub and Cloud Scheduler
	PushIssuer         string
	PushAudience       string // PUSH_AUDIENCE: the audience of those tokens; not needed with `platform`
	PushServiceAccount string // PUSH_SERVICE_ACCOUNT: the service account that calls resume and sweep
	// PUSH_VERIFIED_BY: what verifies those tokens: `app` is this process; `platform` is Cloud Run in front of a
	// private function, and this process compares only the account
	PushVerifiedBy string
	// PUSH_SUBSCRIPTION: the only subscription whose messages resume accepts; by default it accepts any subscription
	// with the account's token
	PushSubscription string
	// VAPID_KEY: the key that identifies this server to browsers for Web Push; without it there are no notifications on
	// devices. `scripts/dev` creates one in DATA_DIR
	VapidKey Secret
	// NOTIFY: `mail` sends users an e-mail about approvals older than five minutes, at most one an hour, to the address
	// that the issuer of their tokens verified; by default no e-mail is sent
	Notify string
	// SMTP_URL: the server for these e-mails, with user and password: `smtps`, or `smtp` with STARTTLS, which is
	// optional only on loopback
	SMTP Secret
	// NOTIFY_FROM: the sender of these e-mails
	NotifyFrom string
	// CHAT_KEY: the secrets that seal the histories of pages; the default is a key in DATA_DIR, except on Cloud Run
	ChatKey Secret

	// Declared actions and agents.

	Actions string // ACTIONS: the folder of declared actions
	// ACTION_KEY: the secrets that sign the user's identity for endpoints of declared actions; the first one signs
	ActionKey Secret // the bytes of the text
	Agents    string // AGENTS: the folder of declared agents
	// MCP_SERVERS: the file of the MCP servers whose tools agents can use
	MCPServers string
	// MCP_SECRETS: the values of `${NAME}` in that file, by name; the default is the environment
	MCPSecrets Secret // a JSON object of texts

	// Users' Google accounts, and the APIs that use them.

	OAuthClientID     string // GOOGLE_OAUTH_CLIENT_ID: the OAuth client to which users link their accounts
	OAuthClientSecret Secret // GOOGLE_OAUTH_CLIENT_SECRET: the secret of that OAuth client
	OAuthAuthURL      string // GOOGLE_OAUTH_AUTH_URL: another server for the consent; the default is Google's
	OAuthTokenURL     string // GOOGLE_OAUTH_TOKEN_URL: another server for tokens; the default is Google's
	GmailEndpoint     string // GMAIL_API_ENDPOINT: another server with Gmail's API; the default is Google's
	CalendarEndpoint  string // CALENDAR_API_ENDPOINT: another server with Calendar's API; the default is Google's
	// GMAIL_SEND_MODE: `draft` (scope gmail.compose) sends exactly once; `direct` (scope gmail.send) turns an unknown
	// outcome into a review
	GmailSendMode string
	// GMAIL_UNITS_PER_MINUTE: the units that all instances together take of the project's quota of Gmail in a minute.
	// Set it to the quota, 1200000 unless Google has raised it. Calls that find it used up wait for their user's turn;
	// 0: they learn it from Gmail's refusals
	GmailUnitsPerMinute int
	// GMAIL_SEARCH: whether agents can have `gmail_search` and `gmail_read`. Their first use asks the user for the
	// scope gmail.readonly, which allows reading all mail. `scripts/dev` turns it on
	GmailSearch bool
	// GMAIL_MODIFY: whether agents can have `gmail_modify`. Its first use asks the user for the scope gmail.modify,
	// which allows reading and changing all mail. `scripts/dev` turns it on
	GmailModify bool
	// TOKEN_KEY: the key that encrypts refresh tokens, the secrets of hosts and uploaded files; the default is a key in
	// DATA_DIR, except on Cloud Run
	TokenKey    Secret
	TokenKMSKey string // TOKEN_KMS_KEY: a Cloud KMS key instead of TOKEN_KEY

	// Signed decisions.

	// DECISIONS: whether users' decisions are signed. With `sign`, a decision without a signature still counts; with
	// `require`, the user is asked again; with `off`, nothing is signed or checked
	Decisions string
	// DECISION_KMS_KEY: a Cloud KMS key version (EC_SIGN_ED25519) that signs decisions, in the functions that record
	// them; the default with the embedded store is a key in DATA_DIR
	DecisionKMSKey string
	// DECISIONS_URL: the URL of the function `approvals-resolve`, in the functions `ui` and `agui`, which send it what
	// users decide, because their model reads text from strangers and they have no key
	DecisionsURL string
	// DECISION_PUBLIC_KEYS: the public keys that check decisions: that of the signing key, and earlier ones until
	// every permission that they signed has expired
	DecisionPublicKeys string
	// STRONG_APPROVAL: the file that says which decisions need a passkey (terraform/options.md, *Passkeys*); by default
	// none does
	StrongApproval string
	// ENROLMENT_KMS_KEY: a Cloud KMS key version (EC_SIGN_ED25519) that signs users' passkeys, in the function that
	// enrols them; the default with the embedded store is a key in DATA_DIR
	EnrolmentKMSKey string
	// ENROLMENT_PUBLIC_KEYS: the public keys whose passkeys count: that of the signing key, and earlier ones until
	// their passkeys are removed
	EnrolmentPublicKeys string

	// Receipts.

	// RECEIPT_KEY: the Ed25519 key that signs receipts; the default is a key in DATA_DIR, except on Cloud Run. Without
	// a key there are no receipts
	ReceiptKey    Secret
	ReceiptKMSKey string // RECEIPT_KMS_KEY: a Cloud KMS key version (EC_SIGN_ED25519) instead of RECEIPT_KEY
	// RECEIPT_JWKS: the public keys that verify receipts, earlier keys included; the default is the public half of the
	// signing key
	ReceiptJWKS string

	// Users' GitHub accounts, and where GitHub is.

	GitHubClientID     string // GITHUB_CLIENT_ID: the GitHub App to which users link their accounts
	GitHubClientSecret Secret // GITHUB_CLIENT_SECRET: the client secret of the GitHub App
	GitHubURL          string // GITHUB_URL: the address of another GitHub; repository addresses have its host
	GitHubAPIURL       string // GITHUB_API_URL: the address of the API of that GitHub
	// GITHUB_TOKEN: in `scripts/dev`, a GitHub token with which the user GITHUB_TOKEN_USER acts at GITHUB_API_URL
	// without linking an account; ignored without GITHUB_TOKEN_USER
	GitHubToken     Secret
	GitHubTokenUser string // GITHUB_TOKEN_USER: the ID of the user of GITHUB_TOKEN, the subject of the ID token

	// Terminals on users' hosts.

	// TERMINAL: whether users can add hosts, and agents can propose commands there. With `off`, users can only see and
	// delete their hosts. `scripts/dev` turns it on
	Terminal bool
	// TERMINAL_HOSTS: permitted hosts in addition to public addresses at port 22, such as private ranges and other
	// ports. Behind a jump host, every name and every private address must be permitted here. Link-local and metadata
	// addresses are never permitted, and loopback is not permitted if K_SERVICE is set
	TerminalHosts []string // each once
	// TERMINAL_DENY: programs that no command can run. If it is set, commands are denied too if the programs that they
	// run cannot be determined
	TerminalDeny      []string // each once
	MaxCommandsPerDay int      // MAX_COMMANDS_PER_DAY: a user's commands a day (UTC), also in lists; 0: unlimited

	// Reading the web.

	// WEB_TOOLS: whether agents in files can have `web_fetch` and `google_web_search`. Pages at private addresses are
	// never read, and no setting changes that. `scripts/dev` turns it on
	WebTools bool

	// Notes about users.

	// MEMORY: whether agents in files can have `remember` and `forget`, and see their user's notes. With `off`, users
	// can still see, edit and delete their notes
	Memory bool

	// Containers.

	Docker struct {
		// DOCKER_HOST: the engine that runs containers for plans, and in `scripts/dev` for agents in files: Docker, or
		// an engine with its API. The tools need DOCKER_IMAGES too
		Host string
		// DOCKER_IMAGES: the images that containers can use; nothing is pulled. By default `scripts/dev` offers the
		// images of an engine that answers at a socket of the machine
		Images []string // each once
		// DOCKER_NETWORK: the engine's network that containers join; by default they have no network
		Network string
		// DOCKER_PACKAGE_HOSTS: the hosts that the dependencies of a lock file come from, or the registry of an
		// installer (go=, npm=, pip=); without any, no dependencies are fetched
		PackageHosts []string
		// DOCKER_CERT_PATH: the directory of ca.pem, cert.pem and key.pem for an engine at a tcp address
		CertPath string
		// DOCKER_CERTS: the three files as one text, for a deployment that has them in a secret
		Certs Secret
	}

	// Limits of a run and its user.

	MaxModelCalls int           // MAX_MODEL_CALLS: the model calls of one run of the assistant
	ApprovalTTL   time.Duration // APPROVAL_TTL: how long an approval can wait
	// HOLD: the shortest time during which an approval can be undone, before anything is done; 0s: none
	Hold time.Duration
	// RUN_DEADLINE: the longest duration of a run of the assistant, at least APPROVAL_TTL; the default is 7 days, or
	// APPROVAL_TTL and one hour if that is longer
	RunDeadline time.Duration
	// REJECT_OUTCOME: the status of an assistant's run after its user rejected a call. With `continue`, the model reads
	// the rejection and continues
	RejectOutcome    string
	MaxOpenApprovals int // MAX_OPEN_APPROVALS: the waiting approvals of one user and agent; 0: unlimited
	// MAX_APPROVALS_PER_DAY: the approvals that one user and agent can request in a day. Plans that the user requested
	// do not count. The planner can always request as many as one session needs (PLAN_MAX_ASKS); 0: unlimited
	MaxApprovalsPerDay int
	// MAX_RUNS_PER_MINUTE: how many runs, messages to page agents, and direct calls of actions with an effect one user
	// can begin in 60 seconds; 0: unlimited
	MaxRunsPerMinute int
	// MAX_MODEL_CALLS_PER_DAY: the model calls of one user in a day (UTC); 0: unlimited
	MaxModelCallsPerDay int
	// MAX_TOKENS_PER_DAY: the model tokens of one user in a day (UTC); 0: unlimited
	MaxTokensPerDay   int
	ChatMaxModelCalls int // CHAT_MAX_MODEL_CALLS: the model calls of one message to a page's agent
	// PLAN_MAX_ASKS: the approvals of one session of the planner, plans included; 0: unlimited
	PlanMaxAsks       int
	PlanMaxDeadline   time.Duration // PLAN_MAX_DEADLINE: the latest deadline of a session, from now
	PlanMaxModelCalls int           // PLAN_MAX_MODEL_CALLS: the model calls of one session
	// POLICY_DENIED: recipients that are always denied
	//
	// POLICY_PERMITTED: the only permitted recipients; by default all that POLICY_DENIED does not name
	//
	// POLICY_ALWAYS_ASK: recipients that need approval each time, even if the user always allows them
	//
	// SIDE_EFFECTS: with `ask`, every side effect needs approval, whatever the user always allows; `off` denies all
	// side effects
	Rules policy.Rules

	settings    []Setting
	known       []string // the names of all settings
	environment func(name string) string
}

// HasContainers reports whether an engine and images are configured, which the tools with containers need.
func (c Config) HasContainers() bool { return c.Docker.Host != "" && len(c.Docker.Images) > 0 }

// Log returns the options of the process's log.
func (c Config) Log() obs.Options {
	return obs.Options{Level: c.LogLevel, Release: c.Release, Service: c.Service, Project: c.Project}
}

// Redacted returns all settings in effect, with secrets redacted, in a fixed order. The process logs them at its start.
func (c Config) Redacted() []Setting { return slices.Clone(c.settings) }

// LogValue implements slog.LogValuer with Redacted.
func (c Config) LogValue() slog.Value {
	attrs := make([]slog.Attr, len(c.settings))
	for i, s := range c.settings {
		attrs[i] = slog.String(s.Variable, s.Value)
	}
	return slog.GroupValue(attrs...)
}
