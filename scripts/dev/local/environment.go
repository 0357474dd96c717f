package main

import (
	"cmp"
	"net"
	"strings"

	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/queue"
)

// environment is the process's environment with a local server's values for variables that are not set.
type environment struct {
	outer func(string) string
	local map[string]string
	file  config.File // config/.gemini.yaml; the environment takes precedence
}

func newEnvironment(outer func(string) string) *environment {
	// a value of blanks counts as none, as in package config
	trimmed := func(name string) string { return strings.TrimSpace(outer(name)) }
	e := &environment{outer: withoutGitHubs(trimmed), local: map[string]string{}}
	e.fill("DATA_DIR", ".data")
	e.fill("STORE", "embedded")
	e.fill("TERMINAL", "on")
	e.fill("WEB_TOOLS", "on")
	return e
}

// withoutGitHubs returns the environment without the GitHub addresses that codespaces and Actions jobs set, because no
// user chose them.
func withoutGitHubs(outer func(string) string) func(string) string {
	return func(name string) string {
		v := outer(name)
		if name == "GITHUB_API_URL" && v == "https://api.github.com" {
			return ""
		}
		return v
	}
}

func (e *environment) get(name string) string {
	if v := e.outer(name); v != "" {
		return v
	}
	return e.local[name]
}

func (e *environment) fill(name, value string) {
	if e.outer(name) == "" {
		e.local[name] = value
	}
}

// ownOrigins returns the console's origins, which are allowed in addition to ALLOWED_ORIGINS.
func ownOrigins(base string) []string {
	return []string{base, strings.Replace(base, "127.0.0.1", "localhost", 1)}
}

// own reports whether the local server sets the value, because the environment does not.
func (e *environment) own(name string) bool { return e.outer(name) == "" }

// localParts configures all parts that are not set to use this machine.
func (e *environment) localParts(base string) {
	e.fill("PUBLIC_URL", base)
	if e.get("STRONG_APPROVAL") != "" { // browsers bind no passkey to an IP address
		e.fill("CONSOLE_URL", ownOrigins(base)[1])
	}
	if e.own("AUTH_ISSUER") {
		e.fill("AUTH_ISSUER", base+"/dev/issuer")
		e.fill("AUTH_AUDIENCE", "countersign-dev")
		e.fill("MCP_ISSUER", base+"/dev/issuer")
	}
	e.local["PUSH_ISSUER"] = base + "/dev/issuer"
	e.local["PUSH_AUDIENCE"] = base + "/api/agent/resume"
	e.local["PUSH_SERVICE_ACCOUNT"] = "push@countersign-dev.iam.gserviceaccount.com"
	if e.get("QUEUE") != "pubsub" && e.get("STORE") != "firestore" {
		e.fill("PUSH_SUBSCRIPTION", queue.LocalSubscription)
	}
	if e.demoModel() {
		e.fill("GEMINI_API_KEY", "offline-demo-model")
		e.fill("GEMINI_MODEL", "offline-demo")
		e.fill("GOOGLE_GEMINI_BASE_URL", base+"/dev/gemini")
	}
	if e.localGoogle() {
		e.local["GOOGLE_OAUTH_CLIENT_ID"], e.local["GOOGLE_OAUTH_CLIENT_SECRET"] = localClient, localSecret
		e.local["GOOGLE_OAUTH_AUTH_URL"], e.local["GOOGLE_OAUTH_TOKEN_URL"] = base+consentPath, base+redeemPath
		e.fill("GMAIL_API_ENDPOINT", base+"/dev/google/")
		e.fill("GMAIL_SEARCH", "on")
		e.fill("GMAIL_MODIFY", "on")
		e.fill("CALENDAR_API_ENDPOINT", base+"/dev/google/calendar/v3/")
	}
	if e.localGitHub() {
		e.local["GITHUB_CLIENT_ID"], e.local["GITHUB_CLIENT_SECRET"] = localApp, localAppSecret
		e.local["GITHUB_URL"], e.local["GITHUB_API_URL"] = base+githubPath, base+githubPath+githubAPI
	}
}

func (e *environment) demoModel() bool {
	return e.own("GEMINI_API_KEY") && e.own("VERTEX_AI_PROJECT_ID") && !e.file.APIKey.IsSet()
}

func (e *environment) localGoogle() bool { return e.own("GOOGLE_OAUTH_CLIENT_ID") }

// localGitHub reports whether users link accounts of the local GitHub. They do, unless a setting names another GitHub.
func (e *environment) localGitHub() bool {
	return e.own("GITHUB_CLIENT_ID") && e.own("GITHUB_URL") && e.own("GITHUB_API_URL") &&
		e.own("GITHUB_TOKEN_USER")
}

// parts describes each part, for the greeting.
func (e *environment) parts(emulated bool) [][2]string {
	store := "embedded, one file in " + e.get("DATA_DIR")
	queue := "embedded, in this process"
	if e.get("QUEUE") == "push" {
		queue = "in the same file, pushed over HTTP"
	}
	if emulated {
		store = "Firestore emulator at " + e.get("FIRESTORE_EMULATOR_HOST")
		queue = "Pub/Sub emulator at " + e.get("PUBSUB_EMULATOR_HOST")
	} else {
		if e.get("STORE") == "firestore" {
			store = "Firestore, project " + e.get("GOOGLE_CLOUD_PROJECT")
		}
		if q := e.get("QUEUE"); q == "pubsub" || q == "" && e.get("STORE") == "firestore" {
			queue = "Pub/Sub, project " + e.get("GOOGLE_CLOUD_PROJECT")
		}
	}
	model := "Gemini, " + cmp.Or(e.get("GEMINI_MODEL"), e.file.Model, config.CurrentFlash)
	if e.demoModel() && e.file.Placeholder {
		model = "offline demo model: the key in " + e.file.Path +
			" is still the placeholder; replace it to use Gemini"
	} else if e.demoModel() {
		model = "offline demo model, not Gemini (for Gemini: go run ./scripts/ops setup, or set GEMINI_API_KEY)"
	}
	google := "Google, with accounts that users link"
	if e.localGoogle() {
		google = "local mailbox and calendar; nothing leaves this machine"
	}
	signIn := e.get("AUTH_ISSUER")
	if e.own("AUTH_ISSUER") {
		signIn = "local issuer"
	}
	return [][2]string{{"store", store}, {"queue", queue}, {"model", model}, {"mail, calendar", google},
		{"sign-in", signIn}}
}

// localHost reports whether the Host of a request is a loopback name of this machine.
func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return outbound.Loopback(strings.Trim(host, "[]"))
}
