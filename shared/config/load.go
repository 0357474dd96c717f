package config

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/policy"
)

// loader is a reader that knows which parts are needed.
type loader struct {
	reader
	parts []Part
}

func (l *loader) needs(p Part) bool { return slices.Contains(l.parts, p) }

const day = 24 * time.Hour

// Load reads and checks the whole environment. The variables without which one of the parts cannot work must be set.
// The error is Problems, a ValidationError.
func Load(getenv func(string) string, parts ...Part) (Config, error) {
	l := &loader{reader{getenv: getenv}, parts}
	c := Config{Service: l.text("K_SERVICE", "", "the name that Cloud Run gave it", nil)}
	l.deployed = c.Deployed()
	l.dangers()
	l.process(&c)
	c.Limits = l.limits()
	c.Gemini = l.gemini()
	c.Data = l.data()
	c.Queue = l.queue(c.Data)
	c.Users = l.users()
	c.Push = l.push()
	c.Google = l.google()
	c.Policy = l.policy()
	if len(l.problems) > 0 {
		return Config{}, l.problems
	}
	c.settings = l.shown
	return c, nil
}

// emulators are variables by which a library of Google's leaves the real service, and with it checks of who is calling.
var emulators = []string{
	"FIREBASE_AUTH_EMULATOR_HOST", "FIRESTORE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST", "DATASTORE_EMULATOR_HOST",
	"STORAGE_EMULATOR_HOST", "FIREBASE_STORAGE_EMULATOR_HOST", "FIREBASE_DATABASE_EMULATOR_HOST", "SPANNER_EMULATOR_HOST",
	"BIGTABLE_EMULATOR_HOST", "CLOUD_TASKS_EMULATOR_HOST", "EVENTARC_EMULATOR", "FIREBASE_EMULATOR_HUB",
}

// dangers refuses what must never be set, or not where the process is deployed.
func (l *loader) dangers() {
	for _, name := range emulators {
		l.refuse(l.deployed, name, "to be unset where K_SERVICE is set: an emulator checks nobody")
	}
	l.refuse(l.deployed, "AGENT_FAILPOINT", "to be unset where K_SERVICE is set: it ends the process on purpose")
	for _, name := range []string{"AUTH_MODE", "AUTH_DISABLED", "SKIP_AUTH"} {
		l.refuse(true, name, "to be unset: no setting switches off the check of who is calling")
	}
}

func (l *loader) process(c *Config) {
	c.Release = l.text("RELEASE", "", "a version or commit of up to 64 letters, digits, dots, hyphens, plus signs and underscores", isRelease)
	c.LogLevel, _ = obs.ParseLevel(l.oneOf("LOG_LEVEL", "info", obs.Levels...))
	c.Failpoint = l.text("AGENT_FAILPOINT", "", "", nil)
	const public = "the address that browsers see, such as https://agent.example.com (http only on a loopback address), without a query"
	c.PublicURL = strings.TrimRight(l.text("PUBLIC_URL", "", public, isBase(l.deployed)), "/")
	l.require(l.needs(Consent), "PUBLIC_URL", public)
	c.Origins = l.origins()
	c.Rejects = l.oneOf("REJECT_OUTCOME", "completed", "completed", "failed", "continue")
}

func (l *loader) origins() (origins []string) {
	const needs = "exact origins with commas between them, such as https://app.example.com: https (http only on a loopback address), small letters, no *, no path and no slash at the end, no port 443"
	l.text("ALLOWED_ORIGINS", "", needs, func(v string) bool {
		for o := range strings.SplitSeq(v, ",") {
			o = strings.TrimSpace(o)
			if !isOrigin(o) {
				return false
			}
			if !slices.Contains(origins, o) {
				origins = append(origins, o)
			}
		}
		return len(origins) <= 50
	})
	return origins
}

func (l *loader) limits() Limits {
	m := Limits{
		ModelCalls:      l.number("MAX_MODEL_CALLS", 3, 1, 50),
		ApprovalTTL:     l.duration("APPROVAL_TTL", day, time.Minute, 30*day),
		OpenApprovals:   l.number("MAX_OPEN_APPROVALS", 20, 0, 1000),
		ApprovalsPerDay: l.number("MAX_APPROVALS_PER_DAY", 60, 0, 10_000),
	}
	m.RunDeadline = l.duration("RUN_DEADLINE", max(7*day, m.ApprovalTTL+time.Hour), time.Second, 90*day)
	// Without a word from the platform we assume the least that it gives (Cloud Functions' default), because handing
	// over early costs a message, and being cut off costs a lease's time.
	timeout := 5 * time.Minute
	if l.deployed {
		timeout = time.Minute
	}
	if l.get("CLOUD_RUN_TIMEOUT_SECONDS") != "" {
		timeout = time.Duration(l.number("CLOUD_RUN_TIMEOUT_SECONDS", 60, 1, 3600)) * time.Second
	}
	m.FunctionTimeout = l.duration("FUNCTION_TIMEOUT", timeout, time.Second, time.Hour)
	if l.get("CLOUD_RUN_TIMEOUT_SECONDS") != "" && m.FunctionTimeout > timeout {
		l.fail("FUNCTION_TIMEOUT", show(l.get("FUNCTION_TIMEOUT"), false), "at most what CLOUD_RUN_TIMEOUT_SECONDS gives, "+span(timeout))
	}
	return m
}

func (l *loader) policy() policy.Rules {
	list := func(name string) policy.Patterns {
		var p policy.Patterns
		const needs = "addresses (a@x.com), domains (x.com) or all domains below one (*.x.com), in ASCII, with commas between them"
		v := l.get(name)
		p, err := policy.ParsePatterns(v)
		if err != nil {
			l.fail(name, show(v, false), needs)
		} else if !p.Empty() {
			l.keep(name, p.String())
		}
		return p
	}
	return policy.Rules{
		Denied:          list("POLICY_DENIED"),
		Permitted:       list("POLICY_PERMITTED"),
		AlwaysAsk:       list("POLICY_ALWAYS_ASK"),
		DenySideEffects: l.oneOf("SIDE_EFFECTS", "on", "on", "off") == "off",
	}
}
