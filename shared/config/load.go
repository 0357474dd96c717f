package config

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// loader is a reader with the required parts and the file's values.
type loader struct {
	reader
	parts     []Part
	file      File
	fileWrong bool
}

func (l *loader) needs(p Part) bool { return slices.Contains(l.parts, p) }

const day = 24 * time.Hour

// Load reads and validates the whole environment, with the file ([ReadFile]) as fallback. The variables that the parts
// need must be set. The error is [Problems], a ValidationError.
func Load(getenv func(string) string, parts ...Part) (Config, error) {
	file, wrong := fallback(getenv)
	l := &loader{reader{getenv: file.under(ours(getenv))}, parts, file, wrong != nil}
	errors.As(wrong, &l.problems)
	c := l.load()
	if len(l.problems) > 0 {
		return Config{}, l.problems
	}
	c.settings, c.environment, c.known = l.shown, l.get, l.known()
	return c, nil
}

// LoadModel reads only the variables of the model, for a program with its own configuration. The error is [Problems].
func LoadModel(getenv func(string) string) (Config, error) {
	file, wrong := fallback(getenv)
	l := &loader{reader{getenv: file.under(getenv)}, []Part{Model}, file, wrong != nil}
	errors.As(wrong, &l.problems)
	var c Config
	l.gemini(&c)
	if len(l.problems) > 0 {
		return Config{}, l.problems
	}
	return c, nil
}

// load reads all variables and collects their problems.
func (l *loader) load() (c Config) {
	c.Service = l.text("K_SERVICE", "", "the name of the Cloud Run service", nil)
	c.OnCloudRun = c.Service != ""
	l.deployed = c.OnCloudRun
	l.dangers()
	for _, read := range []func(
		*Config){l.process, l.limits, l.gemini, l.store, l.queue, l.users, l.mcp, l.servers, l.web, l.push, l.actions,
		l.google, l.github, l.decisions, l.receipts, l.reach, l.docker, l.policy, l.telemetry, l.mail} {
		read(&c)
	}
	return c
}

// emulators are the variables that make Google's libraries use an emulator, which does not check who is calling.
var emulators = []string{
	"FIREBASE_AUTH_EMULATOR_HOST", "FIRESTORE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST", "DATASTORE_EMULATOR_HOST",
	"STORAGE_EMULATOR_HOST", "FIREBASE_STORAGE_EMULATOR_HOST", "FIREBASE_DATABASE_EMULATOR_HOST",
	"SPANNER_EMULATOR_HOST",
	"BIGTABLE_EMULATOR_HOST", "CLOUD_TASKS_EMULATOR_HOST", "EVENTARC_EMULATOR", "FIREBASE_EMULATOR_HUB",
}

// dangers refuses variables that must never be set, or not in a deployed process.
func (l *loader) dangers() {
	for _, name := range emulators {
		l.refuse(l.deployed, name, "to be unset where K_SERVICE is set: an emulator does not check who is calling")
	}
	l.refuse(l.deployed, "AGENT_FAILPOINT", "to be unset where K_SERVICE is set: it ends the process on purpose")
	for _, name := range []string{"AUTH_MODE", "AUTH_DISABLED", "SKIP_AUTH"} {
		l.refuse(true, name, "to be unset: no setting switches off the check of who is calling")
	}
}

func (l *loader) process(c *Config) {
	const public = "the address that browsers see, such as https://agent.example.com (http only on a loopback " +
		"address), without a query"
	c.Release = l.text("RELEASE", "",
		"a version or commit of up to 64 letters, digits, dots, hyphens, plus signs and underscores", isRelease)
	c.LogLevel = l.oneOf("LOG_LEVEL", "info", obs.Levels...)
	c.Failpoint = l.text("AGENT_FAILPOINT", "", "the name of a place in the code", nil)
	c.PublicURL = strings.TrimRight(l.text("PUBLIC_URL", "", public, isBase(l.deployed)), "/")
	l.require(l.needs(Consent), "PUBLIC_URL", public)
	console := l.text("CONSOLE_URL", "", "the address of the console, such as https://agent.example.com (http only on "+
		"a loopback address), without a query", isBase(l.deployed))
	c.ConsoleURL = cmp.Or(strings.TrimRight(console, "/"), c.PublicURL)
	c.ChatKey = l.secret("CHAT_KEY", chatKeys, isChatKey)
	l.require(l.needs(Chat) && l.deployed, "CHAT_KEY", chatKeys)
	c.AllowedOrigins = l.origins()
	c.FunctionTimeout = l.timeout()
	c.Concurrency = l.number("FUNCTION_CONCURRENCY", 1000, 1, 1000)
}

const chatKeys = "up to 4 secrets of 32 to 64 bytes in base64 (head -c 32 /dev/urandom | base64) with commas between " +
	"them: the first signs, all verify"

// ActionKeys returns the keys in ActionKey as bytes, or nil if none is set. The first one signs.
func (c Config) ActionKeys() [][]byte { return splitKeys(c.ActionKey.Reveal()) }

// ChatKeys returns the secrets of ChatKey, or nil if it is not set.
func (c Config) ChatKeys() [][]byte { return decodeKeys(c.ChatKey.Reveal()) }

func (l *loader) origins() []string {
	const needs = "exact origins with commas between them, such as https://app.example.com: https (http only on a " +
		"loopback address), lower-case letters, no *, no path and no slash at the end, no port 443"
	return l.list("ALLOWED_ORIGINS", needs, 50, IsOrigin)
}

// LeastTimeout is the shortest valid FUNCTION_TIMEOUT: no step of a run fits into less.
const LeastTimeout = 30 * time.Second

// timeout returns the maximum time of one call. If the platform's limit is not set, it assumes Cloud Functions'
// default, the shortest one: handing a run over too early costs one message, but being cut off costs the rest of a
// lease.
func (l *loader) timeout() time.Duration {
	most := 5 * time.Minute
	if l.deployed {
		most = time.Minute
	}
	given := l.get("CLOUD_RUN_TIMEOUT_SECONDS") != ""
	if given {
		most = time.Duration(l.number("CLOUD_RUN_TIMEOUT_SECONDS", 60, int(LeastTimeout/time.Second),
			3600)) * time.Second
	}
	timeout := l.duration("FUNCTION_TIMEOUT", most, LeastTimeout, time.Hour)
	if given && timeout > most {
		l.fail("FUNCTION_TIMEOUT", show(l.get("FUNCTION_TIMEOUT"), false),
			"at most CLOUD_RUN_TIMEOUT_SECONDS, "+span(most))
	}
	return timeout
}

func (l *loader) limits(c *Config) {
	c.MaxModelCalls = l.number("MAX_MODEL_CALLS", 3, 1, 50)
	c.ApprovalTTL = l.duration("APPROVAL_TTL", day, time.Minute, 30*day)
	c.Hold = l.duration("HOLD", 0, 0, time.Minute)
	c.RunDeadline = l.duration("RUN_DEADLINE", max(7*day, c.ApprovalTTL+time.Hour), time.Second, 90*day)
	if l.get("RUN_DEADLINE") != "" && c.RunDeadline < c.ApprovalTTL { // the loop would end every approval early
		l.fail("RUN_DEADLINE", show(l.get("RUN_DEADLINE"), false),
			"at least APPROVAL_TTL, "+span(c.ApprovalTTL))
	}
	c.ChatMaxModelCalls = l.number("CHAT_MAX_MODEL_CALLS", 12, 1, 50)
	c.PlanMaxAsks = l.number("PLAN_MAX_ASKS", 100, 0, 10_000)
	c.PlanMaxDeadline = l.duration("PLAN_MAX_DEADLINE", 7*day, time.Minute, 90*day)
	c.PlanMaxModelCalls = l.number("PLAN_MAX_MODEL_CALLS", 200, 1, 10_000)
	c.RejectOutcome = l.oneOf("REJECT_OUTCOME", "completed", "completed", "failed", "continue")
	c.MaxOpenApprovals = l.number("MAX_OPEN_APPROVALS", 20, 0, 10_000)
	c.MaxApprovalsPerDay = l.number("MAX_APPROVALS_PER_DAY", 60, 0, 10_000)
	c.MaxRunsPerMinute = l.number("MAX_RUNS_PER_MINUTE", 30, 0, 10_000)
	c.MaxModelCallsPerDay = l.number("MAX_MODEL_CALLS_PER_DAY", 1_000, 0, 1_000_000)
	c.MaxTokensPerDay = l.number("MAX_TOKENS_PER_DAY", 2_000_000, 0, min(10_000_000_000, math.MaxInt))
}

func (l *loader) policy(c *Config) {
	list := func(name string) address.Patterns {
		const needs = "addresses (a@x.com), domains (x.com) or all domains below one (*.x.com), in ASCII, with " +
			"commas between them"
		l.declare(variable{name: name, needs: needs})
		v := l.get(name)
		p, err := address.ParsePatterns(v)
		if err != nil {
			l.fail(name, show(v, false), needs)
		} else if !p.Empty() {
			l.keep(name, p.String())
		}
		return p
	}
	effects := l.oneOf("SIDE_EFFECTS", "on", "on", "ask", "off")
	c.Rules = policy.Rules{
		Denied:          list("POLICY_DENIED"),
		Permitted:       list("POLICY_PERMITTED"),
		AlwaysAsk:       list("POLICY_ALWAYS_ASK"),
		AskSideEffects:  effects == "ask",
		DenySideEffects: effects == "off",
	}
}
