package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const base = "an address with https (http only on a loopback address, and not where K_SERVICE is set), without " +
	"credentials and query"

// CurrentFlash is Google's alias for the newest Flash model (https://ai.google.dev/gemini-api/docs/models).
const CurrentFlash = "gemini-flash-latest"

func (l *loader) gemini(c *Config) {
	const key = keyNeeds + " (or apiKey in " + FilePath +
		"), or VERTEX_AI_PROJECT_ID and VERTEX_AI_LOCATION in its place"
	const location = "a location of Vertex AI, such as us-central1 or global"
	c.GeminiAPIKey = l.secret("GEMINI_API_KEY", key, isKey)
	c.GeminiModel = l.text("GEMINI_MODEL", CurrentFlash, modelNeeds, isModel)
	c.GeminiFallbackModels = l.list("GEMINI_FALLBACK_MODELS", fallbackNeeds, 5, isModel)
	c.GeminiModels = l.list("GEMINI_MODELS", modelsNeeds, 20, isModel)
	c.ModelRequestsPerMinute = l.number("MODEL_REQUESTS_PER_MINUTE", 0, 0, 1_000_000)
	c.ModelTokensPerMinute = l.number("MODEL_TOKENS_PER_MINUTE", 0, 0, 1_000_000_000)
	c.GeminiBaseURL = l.text("GOOGLE_GEMINI_BASE_URL", "", base, isBase(l.deployed))
	c.VertexProject = l.text("VERTEX_AI_PROJECT_ID", "", "the id of a Google Cloud project", isProject)
	c.VertexLocation = l.text("VERTEX_AI_LOCATION", "", location, isRegion)
	c.VertexEndpoint = l.text("VERTEX_AI_ENDPOINT", "", base, isBase(l.deployed))
	c.Persona = l.text("PERSONA", "", promptNeeds, isText)
	if c.Persona == "" {
		c.SystemPrompt = l.file.SystemPrompt
	}
	l.declare(variable{name: "GEMINI_CONFIG", def: FilePath, needs: "the path of a file of at most 64 KiB"})
	l.keep("GEMINI_CONFIG", l.file.Path)
	vertex := l.get("VERTEX_AI_PROJECT_ID") != ""
	l.require(l.needs(Model) && !vertex && !l.fileWrong, "GEMINI_API_KEY", key)
	l.require(vertex, "VERTEX_AI_LOCATION", location+", because VERTEX_AI_PROJECT_ID is set")
	l.refuse(!vertex, "VERTEX_AI_LOCATION", "VERTEX_AI_PROJECT_ID beside it, or to be unset")
	l.refuse(!vertex, "VERTEX_AI_ENDPOINT", "VERTEX_AI_PROJECT_ID beside it, or to be unset")
}

func (l *loader) store(c *Config) {
	kind := "embedded"
	if l.deployed {
		kind = "firestore"
	}
	c.Store = l.oneOf("STORE", kind, "embedded", "firestore")
	l.declare(variable{name: "DATABASE_URL", needs: "anything; it is not read"})
	c.DatabaseURL = l.get("DATABASE_URL") != ""
	c.DataDir = l.text("DATA_DIR", ".data", "a directory", func(v string) bool { return !strings.ContainsRune(v, 0) })
	c.Project = l.text("GOOGLE_CLOUD_PROJECT", "", "the id of a Google Cloud project", isProject)
	c.FirestoreDatabase = l.text("FIRESTORE_DATABASE", "(default)", "the id of a Firestore database, such as (default)",
		isDatabase)
	c.FirestoreEmulator = l.text("FIRESTORE_EMULATOR_HOST", "", "a host and a port, such as 127.0.0.1:8081", isHostPort)
	c.FilesBucket = l.text("FILES_BUCKET", "", "the name of a bucket of Cloud Storage, such as my-project-agent-files",
		isBucket)
	c.LogBucket = l.text("LOG_BUCKET", "", "the name of a bucket of Cloud Storage, such as my-project-agent-log",
		isBucket)
	c.LogKMSKey = l.text("LOG_KMS_KEY", "", receiptKMS, isKMSVersion)
	c.LogPublicKeys = l.text("LOG_PUBLIC_KEYS", "",
		"1 to 50 verifier keys such as NAME+HASH+KEY, with commas between them", areVerifierKeys)
	l.require(c.LogKMSKey != "" && c.LogBucket == "", "LOG_BUCKET", "a bucket, because LOG_KMS_KEY is set")
	c.StorageEmulator = l.text("STORAGE_EMULATOR_HOST", "", "a host and a port, such as 127.0.0.1:4443", isHostPort)
	l.retention(c)
	if l.deployed && c.Store == "embedded" {
		l.fail("STORE", `"embedded"`, "firestore where K_SERVICE is set: an instance's disk is gone with the instance")
	}
	l.require(l.needs(Store) && c.Store == "firestore", "GOOGLE_CLOUD_PROJECT",
		"the id of the Google Cloud project, because STORE is firestore")
}

// maximum retention, a hundred years
const mostDays = 36_500

func (l *loader) retention(c *Config) {
	days := l.number("RETENTION", 0, 0, mostDays)
	c.Retention = time.Duration(days) * day
	c.AuditDays = l.number("AUDIT_RETENTION", 0, 0, mostDays)
	if c.AuditDays > 0 && (days == 0 || c.AuditDays <= days) {
		l.fail("AUDIT_RETENTION", show(l.get("AUDIT_RETENTION"), false),
			"more days than RETENTION, which must be set too: the audit of a conversation is kept as long as the "+
				"conversation")
	}
}

func (l *loader) queue(c *Config) {
	kind := "embedded"
	if c.Store == "firestore" || l.deployed {
		kind = "pubsub"
	}
	c.Queue = l.oneOf("QUEUE", kind, "embedded", "push", "pubsub")
	c.ResumeTopic = l.text("RESUME_TOPIC", "agent-resume", "the id of a Pub/Sub topic, or projects/P/topics/T", isTopic)
	c.SweepTopic = l.text("SWEEP_TOPIC", "", "the id of a Pub/Sub topic, or projects/P/topics/T", isTopic)
	c.EventsTopic = l.text("EVENTS_TOPIC", "", "the id of a Pub/Sub topic, or projects/P/topics/T", isTopic)
	l.refuse(c.Queue != "pubsub", "EVENTS_TOPIC", "QUEUE to be pubsub, or to be unset")
	l.require(c.EventsTopic != "" && c.ConsoleURL == "", "CONSOLE_URL",
		"the address of the console, or PUBLIC_URL, because EVENTS_TOPIC is set")
	const keys = `a JSON object of lists of keys by the names of the webhooks, such as {"crm":["whsec_…"]}`
	c.Webhooks = l.text("WEBHOOKS", "", "a file in the form {\"webhooks\":[{\"name\":…,\"url\":…}]}", isPath)
	c.WebhookKeys = l.braced("WEBHOOK_KEYS", keys, func(v string) bool { return strings.HasPrefix(v, "{") })
	l.require(c.Webhooks != "", "WEBHOOK_KEYS", keys)
	c.VapidKey = l.secret("VAPID_KEY", "the 32 bytes of a private key of P-256 in base64url (web-push "+
		"generate-vapid-keys), or up to 4 of them with commas in between; browsers subscribe with the first",
		isVapidKeys)
	l.require(c.VapidKey.IsSet() && c.ConsoleURL == "", "CONSOLE_URL",
		"the address of the console, or PUBLIC_URL, because VAPID_KEY is set")
	c.PubSubEmulator = l.text("PUBSUB_EMULATOR_HOST", "", "a host and a port, such as 127.0.0.1:8085", isHostPort)
	if l.deployed && c.Queue != "pubsub" {
		l.fail("QUEUE", strconv.Quote(c.Queue),
			"pubsub where K_SERVICE is set: nothing delivers between two requests there")
	}
	l.require(l.needs(Queue) && c.Queue == "pubsub", "GOOGLE_CLOUD_PROJECT",
		"the id of the Google Cloud project, because QUEUE is pubsub")
}

func (l *loader) users(c *Config) {
	const issuer = "the issuer of users' ID tokens, such as https://securetoken.google.com/PROJECT (http only on a " +
		"loopback address, and not where K_SERVICE is set)"
	const audience = "the one exact audience of users' ID tokens, such as the Firebase project or the OAuth client id"
	c.AuthIssuer = l.text("AUTH_ISSUER", "", issuer, l.isIssuer)
	c.AuthAudience = l.text("AUTH_AUDIENCE", "", audience, isExact)
	c.AllowedDomains = l.domains()
	l.require(l.needs(Users), "AUTH_ISSUER", issuer)
	l.require(l.needs(Users), "AUTH_AUDIENCE", audience)
}

// domains reads the permitted domains of users' addresses, without duplicates.
func (l *loader) domains() []string {
	const needs = "up to 50 exact domains of e-mail addresses with commas between them, such as example.com: " +
		"lower-case letters, no *, no @"
	return l.list("AUTH_ALLOWED_DOMAINS", needs, 50, isDomain)
}

func (l *loader) web(c *Config) {
	const client = "the id of a public client (one without a secret) of AUTH_ISSUER, such as " +
		"123-abc.apps.googleusercontent.com"
	const address = base + ", with {function} in the host where each function has an address of its own"
	c.WebClientID = l.text("WEB_CLIENT_ID", "", client, isExact)
	c.WebAPIURL = strings.TrimRight(l.text("WEB_API_URL", "", address, func(v string) bool {
		return isBase(l.deployed)(strings.Replace(v, "{function}", "run", 1))
	}), "/")
	c.WebFunctions = l.list("WEB_FUNCTIONS", "the names of functions with commas between them, such as run,stream,web",
		100, isFunction)
	l.require(c.WebClientID != "", "AUTH_ISSUER", "the issuer that WEB_CLIENT_ID is a client of")
	if c.WebClientID != "" && c.AuthAudience != "" && c.WebClientID != c.AuthAudience {
		l.fail("WEB_CLIENT_ID", show(c.WebClientID, false),
			"to be AUTH_AUDIENCE: an ID token's audience is the client that it was made for")
	}
}

// actions reads the folders of actions and agents, and the key. Whether the key is required is known only after the
// folder has been read.
func (l *loader) actions(c *Config) {
	const key = "a secret of 32 to 512 printable characters (openssl rand -hex 32), which the operator's endpoints " +
		"know too, or up to 4 of them with commas between"
	c.Actions = l.text("ACTIONS", "", "a directory with a plugin.yaml in it, or in the directories directly below",
		isPath)
	c.ActionKey = l.secret("ACTION_KEY", key, isActionKey)
	c.Agents = l.text("AGENTS", "", "a directory with a file NAME.agent.yaml for each agent", isPath)
}

func (l *loader) push(c *Config) {
	const audience = "the one exact audience of the push subscription's tokens, such as the address of the " +
		"resume function"
	const subscription = "the one subscription whose messages resume works on, projects/P/subscriptions/S"
	const account = "the exact e-mail address of one service account, without wildcards"
	c.PushIssuer = l.text("PUSH_ISSUER", "", "to be unset for Google, or another issuer's address", l.isIssuer)
	c.PushAudience = l.text("PUSH_AUDIENCE", "", audience, isExact)
	c.PushServiceAccount = l.text("PUSH_SERVICE_ACCOUNT", "", account, isAccount)
	c.PushSubscription = l.text("PUSH_SUBSCRIPTION", "", subscription, isSubscription)
	c.PushVerifiedBy = l.oneOf("PUSH_VERIFIED_BY", "app", "app", "platform")
	if c.PushVerifiedBy == "platform" && !l.deployed {
		l.fail("PUSH_VERIFIED_BY", `"platform"`, "app outside Cloud Run: here no platform has checked the token")
	}
	l.require(l.needs(Push) && c.PushVerifiedBy != "platform", "PUSH_AUDIENCE", audience)
	l.require(l.needs(Push), "PUSH_SERVICE_ACCOUNT", account)
	l.refuse(l.deployed, "PUSH_ISSUER", "to be unset where K_SERVICE is set: Pub/Sub's tokens are Google's")
}

func (l *loader) google(c *Config) {
	const id = "the id of an OAuth client, such as 123-abc.apps.googleusercontent.com"
	const secret = "the secret of that OAuth client"
	const kms = "projects/P/locations/L/keyRings/R/cryptoKeys/K"
	c.OAuthClientID = l.text("GOOGLE_OAUTH_CLIENT_ID", "", id, isExact)
	c.OAuthClientSecret = l.secret("GOOGLE_OAUTH_CLIENT_SECRET", secret, isKey)
	c.OAuthAuthURL = l.text("GOOGLE_OAUTH_AUTH_URL", "", base, isBase(l.deployed))
	c.OAuthTokenURL = l.text("GOOGLE_OAUTH_TOKEN_URL", "", base, isBase(l.deployed))
	c.GmailEndpoint = l.text("GMAIL_API_ENDPOINT", "", base, isBase(l.deployed))
	c.CalendarEndpoint = l.text("CALENDAR_API_ENDPOINT", "", base, isBase(l.deployed))
	c.GmailSendMode = l.oneOf("GMAIL_SEND_MODE", "draft", "draft", "direct")
	c.GmailUnitsPerMinute = l.number("GMAIL_UNITS_PER_MINUTE", 0, 0, 1_000_000_000)
	c.GmailSearch = l.oneOf("GMAIL_SEARCH", "off", "off", "on") == "on"
	c.GmailModify = l.oneOf("GMAIL_MODIFY", "off", "off", "on") == "on"
	c.TokenKey = l.keyset("TOKEN_KEY")
	c.TokenKMSKey = l.text("TOKEN_KMS_KEY", "", kms, isKMSKey)
	linked := l.needs(Accounts) || l.needs(Consent)
	seals := linked || l.needs(Hosts) && l.get("TERMINAL") == "on" || l.needs(Files) && l.get("FILES_BUCKET") != ""
	l.require(linked || l.get("GOOGLE_OAUTH_CLIENT_SECRET") != "", "GOOGLE_OAUTH_CLIENT_ID", id)
	l.require(linked || l.get("GOOGLE_OAUTH_CLIENT_ID") != "", "GOOGLE_OAUTH_CLIENT_SECRET", secret)
	kmsSet := l.get("TOKEN_KMS_KEY") != ""
	l.require(seals && l.deployed && !kmsSet, "TOKEN_KEY",
		"a Tink keyset that encrypts refresh tokens, the secrets of hosts and uploaded files, or TOKEN_KMS_KEY in its "+
			"place")
	if kmsSet && l.get("TOKEN_KEY") != "" {
		l.fail("TOKEN_KEY", show(l.get("TOKEN_KEY"), true),
			"to be unset where TOKEN_KMS_KEY is set: only one of them can be meant")
	}
}

// reach reads the settings of terminals, of the web and of users' notes.
// Only private hosts need permission: users can name any public
// host at port 22.
func (l *loader) reach(c *Config) {
	const hosts = "up to 100 IP addresses, ranges (10.0.0.0/8) and DNS names (*.corp.example for all below one), " +
		"each with or without a port (10.0.0.0/8:2222, [fd00::/8]:22), and ports of public addresses (:2222), with " +
		"commas between them"
	const deny = "up to 200 names of programs without a folder, such as shutdown, with commas between them"
	c.Terminal = l.oneOf("TERMINAL", "off", "off", "on") == "on"
	c.TerminalHosts = l.list("TERMINAL_HOSTS", hosts, 100, isReach)
	c.TerminalDeny = l.list("TERMINAL_DENY", deny, 200, isProgram)
	c.MaxCommandsPerDay = l.number("MAX_COMMANDS_PER_DAY", 300, 0, 100_000)
	c.WebTools = l.oneOf("WEB_TOOLS", "off", "off", "on") == "on"
	c.Memory = l.oneOf("MEMORY", "on", "on", "off") == "on"
}

// docker reads which engine runs containers, and with which images. A tcp engine without client certificates is
// refused, because anyone who can use an engine is root on its machine.
func (l *loader) docker(c *Config) {
	const host = "unix:///path/of/a.sock, or tcp://host:port together with DOCKER_CERT_PATH"
	const images = "up to 20 names of images with commas between them, such as docker.io/library/golang:1.26"
	const certs = "a directory with ca.pem, cert.pem and key.pem"
	c.Docker.Host = l.text("DOCKER_HOST", "", host, isEngine)
	c.Docker.Images = l.list("DOCKER_IMAGES", images, 20, isImage)
	c.Docker.Network = l.text("DOCKER_NETWORK", "", "the name of one of the engine's networks, but not its host's",
		isNetwork)
	c.Docker.PackageHosts = l.list("DOCKER_PACKAGE_HOSTS", "up to 20 hosts or registries with commas between them, "+
		"such as packages.example.com or go=https://go.example.com", 20, isPackageHost)
	c.Docker.CertPath = l.text("DOCKER_CERT_PATH", "", certs, isPath)
	const text = "in PEM: the certificates of a CA and of a client, and that one's private key"
	c.Docker.Certs = l.secret("DOCKER_CERTS", text, isCerts)
	// A deployed function that does not use the engine has no certificates.
	l.require(strings.HasPrefix(c.Docker.Host, "tcp:") && !c.Docker.Certs.IsSet() && (!l.deployed || l.needs(Engine)),
		"DOCKER_CERT_PATH", certs+", or DOCKER_CERTS, because DOCKER_HOST is tcp")
}

// list reads comma-separated values, without duplicates.
func (l *loader) list(name, needs string, most int, ok func(string) bool) (values []string) {
	l.text(name, "", needs, func(v string) bool {
		for one := range strings.SplitSeq(v, ",") {
			one = strings.TrimSpace(one)
			if !ok(one) {
				return false
			}
			if !slices.Contains(values, one) {
				values = append(values, one)
			}
		}
		return len(values) <= most
	})
	return values
}

func (l *loader) keyset(name string) Secret {
	return l.braced(name, "a Tink keyset in JSON (or that in base64): tinkey create-keyset --key-template AES256_GCM",
		isKeyset)
}

// braced reads a secret that can contain the braces of JSON, which look like a placeholder in other values.
func (l *loader) braced(name, needs string, ok func(string) bool) Secret {
	l.declare(variable{name: name, needs: needs, secret: true})
	v := l.get(name)
	if v != "" && !ok(v) {
		l.fail(name, show(v, true), needs)
		return Secret{}
	}
	s := NewSecret(v)
	if s.IsSet() {
		l.keep(name, s.String())
	}
	return s
}

// isIssuer also accepts Google's short spelling, which its ID tokens use.
func (l *loader) isIssuer(v string) bool {
	return v == "accounts.google.com" || isBase(l.deployed)(v)
}
