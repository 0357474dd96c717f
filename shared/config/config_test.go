package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

const keyset = `{"primaryKeyId":1,"key":[{"keyId":1}]}`

const chatKey = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// deployed is a complete environment of a deployed function.
var deployed = map[string]string{
	"K_SERVICE": "run", "GEMINI_API_KEY": "AIzaSyCANARYkey", "GOOGLE_CLOUD_PROJECT": "proj-123",
	"RESUME_TOPIC": "agent-resume",
	"AUTH_ISSUER":  "https://securetoken.google.com/proj-123", "AUTH_AUDIENCE": "proj-123",
	"PUSH_AUDIENCE":          "https://agent.example.com/resume",
	"PUSH_SERVICE_ACCOUNT":   "push@proj-123.iam.gserviceaccount.com",
	"GOOGLE_OAUTH_CLIENT_ID": "1-a.apps.googleusercontent.com", "GOOGLE_OAUTH_CLIENT_SECRET": "GOCSPX-CANARYsecret",
	"TOKEN_KEY": keyset, "CHAT_KEY": chatKey, "ACTION_KEY": "CANARY-0123456789abcdef0123456789abcdef",
	"PUBLIC_URL": "https://agent.example.com/", "ALLOWED_ORIGINS": "https://app.example.com",
}

var all = []config.Part{config.Model, config.Store, config.Queue, config.Users, config.Push, config.Accounts,
	config.Consent, config.Chat}

// load reads base with changes; an empty change unsets the variable.
func load(base, changes map[string]string, parts ...config.Part) (config.Config, error) {
	return config.Load(func(name string) string {
		if v, ok := changes[name]; ok {
			return v
		}
		return base[name]
	}, parts...)
}

func mustLoad(t *testing.T, base, changes map[string]string, parts ...config.Part) config.Config {
	t.Helper()
	c, err := load(base, changes, parts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func variables(t *testing.T, err error) (names []string) {
	t.Helper()
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("the error is %v", err)
	}
	for _, p := range problems {
		names = append(names, p.Variable)
	}
	return names
}

func TestDefaults(t *testing.T) {
	c := mustLoad(t, nil, nil, config.Store, config.Queue)
	got := []any{c.Store, c.DataDir, c.Queue, c.RejectOutcome, c.LogLevel, c.GmailSendMode, c.PushVerifiedBy,
		c.Rules.DenySideEffects, c.OnCloudRun, c.GeminiModel, c.FirestoreDatabase,
		c.MaxModelCalls, c.ApprovalTTL, c.RunDeadline, c.MaxOpenApprovals, c.MaxApprovalsPerDay, c.FunctionTimeout}
	want := []any{"embedded", ".data", "embedded", "completed", "info", "draft", "app", false, false,
		"gemini-flash-latest", "(default)",
		3, 24 * time.Hour, 7 * 24 * time.Hour, 20, 60, 5 * time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("defaults are %v, want %v", got, want)
	}
	if c.Rules.Denied.Len()+c.Rules.Permitted.Len()+c.Rules.AlwaysAsk.Len() > 0 || c.AllowedOrigins != nil {
		t.Error("something is restricted by default")
	}
}

func TestDeployed(t *testing.T) {
	c := mustLoad(t, deployed, nil, all...)
	if c.Store != "firestore" || c.Queue != "pubsub" || c.FunctionTimeout != time.Minute || !c.OnCloudRun {
		t.Errorf("the store is %s, the queue %s, the timeout %s", c.Store, c.Queue, c.FunctionTimeout)
	}
	if c.PublicURL != "https://agent.example.com" || c.GeminiAPIKey.Reveal() != "AIzaSyCANARYkey" ||
		!c.TokenKey.IsSet() {
		t.Errorf("the public address is %s, the key %s", c.PublicURL, c.GeminiAPIKey)
	}
}

func TestValues(t *testing.T) {
	c := mustLoad(t, nil, map[string]string{
		"APPROVAL_TTL": "7d", "RUN_DEADLINE": "10d", "MAX_MODEL_CALLS": "50", "MAX_OPEN_APPROVALS": "0",
		"CLOUD_RUN_TIMEOUT_SECONDS": "540",
		"LOG_LEVEL":                 "silent", "SIDE_EFFECTS": "off", "POLICY_DENIED": "x.com, a@y.com",
		"REJECT_OUTCOME":       "continue",
		"STORE":                "firestore",
		"GOOGLE_CLOUD_PROJECT": "proj-123\n", "GEMINI_API_KEY": " AIzaX\n",
		"ALLOWED_ORIGINS":         "https://a.example, http://localhost:3000,https://a.example",
		"FIRESTORE_EMULATOR_HOST": "127.0.0.1:8081", "AGENT_FAILPOINT": "resume.after_claim",
		"PERSONA":              "You are kind.\nBe brief.",
		"VERTEX_AI_PROJECT_ID": "proj-123", "VERTEX_AI_LOCATION": "us-central1",
	}, config.Model, config.Store, config.Queue)
	got := []any{c.ApprovalTTL, c.RunDeadline, c.MaxModelCalls, c.MaxOpenApprovals, c.FunctionTimeout, c.LogLevel,
		c.Rules.DenySideEffects, c.Rules.Denied.Len(), c.RejectOutcome, c.Queue, c.Project, c.GeminiAPIKey.Reveal(),
		len(c.AllowedOrigins), c.Failpoint}
	want := []any{7 * 24 * time.Hour, 10 * 24 * time.Hour, 50, 0, 9 * time.Minute, "silent",
		true, 2, "continue", "pubsub", "proj-123", "AIzaX", 2, "resume.after_claim"}
	if !slices.Equal(got, want) {
		t.Errorf("values are %v, want %v", got, want)
	}
}

// TestTerminals reads the settings of terminals. Deployed, a function that logs in needs a key for the hosts' secrets
// if terminals are on.
func TestTerminals(t *testing.T) {
	off := mustLoad(t, deployed, map[string]string{"TOKEN_KEY": ""}, config.Hosts)
	if off.Terminal || off.TerminalHosts != nil || off.TerminalDeny != nil || off.MaxCommandsPerDay != 300 {
		t.Errorf("by default: %t, %v, %v, %d", off.Terminal, off.TerminalHosts, off.TerminalDeny, off.MaxCommandsPerDay)
	}
	on := map[string]string{"TERMINAL": "on", "TERMINAL_DENY": "shutdown, mkfs.ext4,shutdown",
		"TERMINAL_HOSTS": "10.0.0.0/8:2222, " +
			"fd00::/8,[fd00::1]:22,[fd00::/8]:2022,*.corp.example,bastion,127.0.0.1:2222"}
	c := mustLoad(t, deployed, on, config.Hosts)
	if !c.Terminal || !slices.Equal(c.TerminalDeny, []string{"shutdown", "mkfs.ext4"}) || len(c.TerminalHosts) != 7 {
		t.Errorf("%t, %v, %v", c.Terminal, c.TerminalHosts, c.TerminalDeny)
	}
	on["TOKEN_KEY"] = ""
	if _, err := load(deployed, on, config.Hosts); !slices.Equal(variables(t, err), []string{"TOKEN_KEY"}) {
		t.Errorf("without a key: %v", err)
	}
	mustLoad(t, deployed, on, config.Store)
}

func TestKillSwitch(t *testing.T) {
	for value, want := range map[string][2]bool{"on": {}, "ask": {true, false}, "off": {false, true}} {
		c := mustLoad(t, nil, map[string]string{"SIDE_EFFECTS": value})
		if got := [2]bool{c.Rules.AskSideEffects, c.Rules.DenySideEffects}; got != want {
			t.Errorf("%s: ask and deny are %v, want %v", value, got, want)
		}
	}
}

// TestVariablesOfParts checks that each part requires its own variables and no others.
func TestVariablesOfParts(t *testing.T) {
	tests := map[string]struct {
		parts []config.Part
		env   map[string]string
		want  []string
	}{
		"nothing": {},
		"model":   {parts: []config.Part{config.Model}, want: []string{"GEMINI_API_KEY"}},
		"model on Vertex": {parts: []config.Part{config.Model},
			env: map[string]string{"VERTEX_AI_PROJECT_ID": "proj-123", "VERTEX_AI_LOCATION": "global"}},
		"users": {parts: []config.Part{config.Users}, want: []string{"AUTH_AUDIENCE", "AUTH_ISSUER"}},
		"a console's client": {env: map[string]string{"WEB_CLIENT_ID": "123-abc.apps.googleusercontent.com"},
			want: []string{"AUTH_ISSUER"}},
		"push": {parts: []config.Part{config.Push},
			want: []string{"PUSH_AUDIENCE", "PUSH_SERVICE_ACCOUNT"}},
		"push by platform": {parts: []config.Part{config.Push},
			env:  map[string]string{"K_SERVICE": "x", "PUSH_VERIFIED_BY": "platform"},
			want: []string{"PUSH_SERVICE_ACCOUNT"}},
		"accounts": {parts: []config.Part{config.Accounts},
			want: []string{"GOOGLE_OAUTH_CLIENT_ID", "GOOGLE_OAUTH_CLIENT_SECRET"}},
		"accounts, deployed": {parts: []config.Part{config.Accounts}, env: map[string]string{"K_SERVICE": "x"},
			want: []string{"GOOGLE_OAUTH_CLIENT_ID", "GOOGLE_OAUTH_CLIENT_SECRET", "TOKEN_KEY"}},
		"consent": {parts: []config.Part{config.Consent},
			want: []string{"GOOGLE_OAUTH_CLIENT_ID", "GOOGLE_OAUTH_CLIENT_SECRET", "PUBLIC_URL"}},
		"store, firestore": {parts: []config.Part{config.Store}, env: map[string]string{"STORE": "firestore"},
			want: []string{"GOOGLE_CLOUD_PROJECT"}},
		"store, deployed": {parts: []config.Part{config.Store, config.Queue},
			env: map[string]string{"K_SERVICE": "x"}, want: []string{"GOOGLE_CLOUD_PROJECT"}},
		"chat": {parts: []config.Part{config.Chat}},
		"chat, deployed": {parts: []config.Part{config.Chat}, env: map[string]string{"K_SERVICE": "x"},
			want: []string{"CHAT_KEY"}},
		"queue, pubsub": {parts: []config.Part{config.Queue}, env: map[string]string{"QUEUE": "pubsub"},
			want: []string{"GOOGLE_CLOUD_PROJECT"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(nil, tt.env, tt.parts...)
			if tt.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			got := variables(t, err)
			if slices.Sort(got); !slices.Equal(got, tt.want) {
				t.Errorf("%v are asked for, want %v", got, tt.want)
			}
			if !strings.Contains(err.Error(), " is not set; it needs ") {
				t.Error(err)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	_, err := load(deployed, map[string]string{
		"GEMINI_API_KEY": "<your-gemini-api-key>", "ALLOWED_ORIGINS": "*", "PUSH_SERVICE_ACCOUNT": "*",
		"AUTH_AUDIENCE": "", "APPROVAL_TTL": "forever\n{\"severity\":\"ALERT\"}",
		"FIRESTORE_EMULATOR_HOST": "127.0.0.1:8080", "MAX_MODEL_CALLS": "0",
		"GOOGLE_OAUTH_CLIENT_SECRET": "CANARY is not a secret", "GITHUB_TOKEN": "ghp_CANARY",
		"POLICY_DENIED":          "CANARY@x",
		"GOOGLE_OAUTH_TOKEN_URL": "https://user:CANARY@x.example/",
	}, all...)
	got := variables(t, err)
	slices.Sort(got)
	want := []string{"ALLOWED_ORIGINS", "APPROVAL_TTL", "AUTH_AUDIENCE", "FIRESTORE_EMULATOR_HOST", "GEMINI_API_KEY",
		"GITHUB_TOKEN",
		"GOOGLE_OAUTH_CLIENT_SECRET", "GOOGLE_OAUTH_TOKEN_URL", "MAX_MODEL_CALLS", "POLICY_DENIED",
		"PUSH_SERVICE_ACCOUNT"}
	if !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) {
		t.Errorf("%d lines for %d variables:\n%v", len(lines), len(want), err)
	}
	if strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), "your-gemini") {
		t.Errorf("a secret is shown:\n%v", err)
	}
	if f := fault.As(err); f.Class != fault.Validation || f.Field == "" {
		t.Errorf("the error is %v", f)
	}
	for _, line := range []string{
		`ALLOWED_ORIGINS is "*"; it needs exact origins with commas between them`,
		`MAX_MODEL_CALLS is "0"; it needs a whole number from 1 to 50`,
		`GEMINI_API_KEY is 21 characters, not shown; it needs a Gemini API key`,
		`AUTH_AUDIENCE is not set; it needs the one exact audience`,
	} {
		if !strings.Contains(err.Error(), line) {
			t.Errorf("%q is not in\n%v", line, err)
		}
	}
}

func TestSecretsNotPrinted(t *testing.T) {
	c := mustLoad(t, deployed, map[string]string{"POLICY_DENIED": "CANARY@example.com",
		"TOKEN_KEY": strings.Replace(keyset, "1}", `1,"x":"CANARY"}`, 1), "DATABASE_URL": "x://CANARY@db"}, all...)
	var log strings.Builder
	obs.New(&log, c.Log()).Info("starting", "config", c, "key", c.GeminiAPIKey)
	hidden := struct{ key config.Secret }{c.GeminiAPIKey}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{log.String(), string(asJSON), fmt.Sprint(c.Redacted()), slog.AnyValue(c).Resolve().String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, c), fmt.Sprintf(verb, c.GeminiAPIKey),
			fmt.Sprintf(verb, &c.GeminiAPIKey), fmt.Sprintf(verb, hidden))
	}
	for _, text := range texts {
		if strings.Contains(text, "CANARY") || strings.Contains(text, fmt.Sprintf("%x", "CANARY")) {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if got := fmt.Sprint(c.Redacted()); !strings.Contains(got, "{GEMINI_API_KEY (15 characters)}") ||
		!strings.Contains(got, "{STORE firestore}") || !strings.Contains(got, "{POLICY_DENIED (1 entries)}") {
		t.Errorf("the settings are %s", got)
	}
	if s := config.NewSecret(""); s.IsSet() || s.Reveal() != "" || s.String() != "(not set)" {
		t.Errorf("no secret is %s", s)
	}
}
