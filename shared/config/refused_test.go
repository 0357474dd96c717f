package config_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// TestHostile runs the cases of testdata/hostile.jsonl, the category "config" of the project's hostile inputs.
func TestHostile(t *testing.T) {
	f, err := os.Open("testdata/hostile.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var c struct {
			ID    string
			Input struct{ Env map[string]string }
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			_, err := load(deployed, c.Input.Env, all...)
			if fault.As(err).Class != fault.Validation {
				t.Fatalf("the error is %v", err)
			}
			for _, name := range variables(t, err) {
				if c.Input.Env[name] == "" {
					t.Errorf("%s is reported, and not what is wrong", name)
				}
			}
		})
	}
	if n == 0 {
		t.Fatal("no case was read")
	}
}

func TestRefused(t *testing.T) {
	tests := map[string][]string{
		"PUBSUB_EMULATOR_HOST":  {"127.0.0.1:8085"},
		"STORAGE_EMULATOR_HOST": {"127.0.0.1:9199"},
		"AUTH_MODE":             {"dev", "production"},
		"STORE":                 {"embedded", "Firestore", "memory"},
		"QUEUE":                 {"embedded", "push", "kafka"},
		"PUSH_ISSUER":           {"https://evil.example"},
		"PUSH_VERIFIED_BY":      {"nobody", "App"},
		"PUSH_SERVICE_ACCOUNT": {"*@proj.iam.gserviceaccount.com", "push", "a@b.com,c@d.com", "push@localhost",
			"your-account@proj.iam.gserviceaccount.com", "<sa>@x.com"},
		"PUSH_AUDIENCE": {"*", "https://*.example.com", "a,b", "a b", "${AUDIENCE}"},
		"AUTH_AUDIENCE": {"*", "a,b", "your-project-id", "<project>", "replace-me"},
		"WEB_CLIENT_ID": {"*", "a,b", "your-client-id", "another-client"},
		"WEB_API_URL": {"http://api.example", "https://a-{name}.example",
			"https://{function}.{function}.example", "api.example", "https://u:p@api.example",
			"https://api.example?x=1"},
		"AUTH_ISSUER": {"http://issuer.example", "http://127.0.0.1:8080", "issuer.example",
			"https://u:p@issuer.example", "https://issuer.example?x=1", "https://"},
		"ALLOWED_ORIGINS": {"null", "https://*.example.com", "https://a.example/", "https://a.example/x",
			"http://a.example", "https://A.example", "https://a.example:443", "https://a.example, *", "a.example",
			"https://u@a.example", "https://a.example?", "https://a.example#", "https://a.example:99999",
			"https://exämple.com", "ftp://a.example", "https://a.example,,https://b.example", "http://localhost:80",
			"https://a.example:"},
		"GEMINI_API_KEY": {"YOUR_API_KEY", "your-gemini-api-key-here", "xxxxxxxx", "changeme", "...",
			"$GEMINI_API_KEY", "{{key}}", "a key", "insert_key", "my-api-key", "key\r\nX-Evil: 1", "schlüssel"},
		"GOOGLE_OAUTH_CLIENT_SECRET": {"secret", "<secret>", "placeholder"},
		"GOOGLE_OAUTH_CLIENT_ID":     {"your-client-id.apps.googleusercontent.com", "a b"},
		"GITHUB_URL": {"http://github.example", "github.com", "https://u:p@github.example",
			"http://127.0.0.1:1"},
		"GITHUB_API_URL":    {"http://api.github.example", "https://api.github.com?x=1"},
		"GITHUB_TOKEN":      {"ghp_0123456789abcdef", "a b"},
		"GITHUB_TOKEN_USER": {"ana"},
		"GOOGLE_GEMINI_BASE_URL": {"http://gateway.example", "gateway.example", "http://127.0.0.1:1",
			"javascript:alert(1)"},
		"GMAIL_API_ENDPOINT": {"http://localhost:8080", "https://x.example/?key=1"},
		"PUBLIC_URL": {"http://agent.example.com", "agent.example.com",
			"https://agent.example.com/?x=1"},
		"MCP_URL":                {"http://agent.example.com/mcp", "https://agent.example.com/mcp?x=1"},
		"MCP_ISSUER":             {"http://login.example.com", "accounts.google.com", "https://login.example.com/?x=1"},
		"GMAIL_SEND_MODE":        {"Draft", "both"},
		"GMAIL_SEARCH":           {"true", "On"},
		"GMAIL_UNITS_PER_MINUTE": {"-1", "1000000001", "1.2M"},
		"GMAIL_MODIFY":           {"true", "On"},
		"TERMINAL":               {"true", "On", "yes"},
		"TERMINAL_HOSTS": {"10.0.0.0/33", "10.0.0.0/8:0", "10.0.0.0/8:65536", "10.0.0.0/8:ssh", "[10.0.0.0/8]:22",
			"[fd00::/8", "[fd00::/8]x", "*", "*.corp", "a*.corp.example", "web.example.com,,10.0.0.1",
			"Web.example.com",
			"ana@web.example.com", "-oProxyCommand=x", "https://web.example.com"},
		"TERMINAL_DENY":        {"/sbin/shutdown", "rm -rf", "*", "rm,,mkfs", "-x"},
		"PLAN_MAX_ASKS":        {"-1", "10001"},
		"PLAN_MAX_DEADLINE":    {"59s", "91d", "long"},
		"PLAN_MAX_MODEL_CALLS": {"0", "10001"},
		"MAX_COMMANDS_PER_DAY": {"-1", "many", "100001"},
		"MEMORY":               {"false", "Off"},
		"WEB_TOOLS":            {"true", "On", "yes"},
		"DOCKER_HOST":          {"/var/run/docker.sock", "tcp://engine", "http://engine:2375", "unix://x", "ssh://a"},
		"DOCKER_IMAGES":        {"Alpine", "a b", "a,,b", "-x", "a@sha256:1"},
		"DOCKER_PACKAGE_HOSTS": {"https://a.example", "a.example/b", "maven=https://a.example", "go=ftp://a", "npm=a"},
		"DOCKER_NETWORK":       {"host", "container:x", "a b", "default"},
		"DOCKER_CERT_PATH":     {"a\x00"},
		"DOCKER_CERTS":         {"-----BEGIN CERTIFICATE-----", "secret"},
		"GOOGLE_CLOUD_PROJECT": {"Proj", "p", "your-project-id", "proj 1", "projects/proj-123"},
		"FIRESTORE_DATABASE":   {"default)", "A", "x/y"},
		"RESUME_TOPIC":         {"*", "projects/*/topics/x", "a/b", "1topic"},
		"SWEEP_TOPIC":          {"*", "projects/*/topics/x", "a/b", "1topic"},
		"EVENTS_TOPIC":         {"*", "projects/*/topics/x", "a/b"},
		"CONSOLE_URL":          {"http://x.example", "https://x.example/?a=b", "x"},

		"OTEL_EXPORTER_OTLP_ENDPOINT":                        {"http://x.example", "https://x.example/?a=b", "x:4317"},
		"OTEL_EXPORTER_OTLP_HEADERS":                         {"CANARY", "a b=c", "a=b,", "a=%zz", "a=b%0a"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":                        {"grpc", "http/json"},
		"OTEL_SDK_DISABLED":                                  {"yes"},
		"OTEL_SERVICE_NAME":                                  {"a b", strings.Repeat("a", 101)},
		"OTEL_TRACES_SAMPLER":                                {"jaeger_remote"},
		"OTEL_TRACES_SAMPLER_ARG":                            {"2", "-0.1", "NaN", "half"},
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": {"1", "span_only"},
		"OTEL_RESOURCE_ATTRIBUTES": {"a", "=b", "a=%zz", "a=%ff",
			"a=" + strings.Repeat("b", 256)},
		"OTEL_METRICS_EXPORTER":                             {"prometheus", "true"},
		"OTEL_METRIC_EXPORT_INTERVAL":                       {"999", "3600001", "60s"},
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT":               {"http://x.example/v1/metrics", "x:4317"},
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS":                {"CANARY", "a b=c"},
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": {"Delta", "both"},
		"ACTIONS": {"a\x00b"},
		"ACTION_KEY": {"secret", strings.Repeat("k", 31), strings.Repeat("k", 513), strings.Repeat("k", 32) + " k",
			"<" + strings.Repeat("k", 40) + ">", "your-action-key-your-action-key-your",
			strings.Repeat("k", 32) + "," + strings.Repeat("j", 31), strings.Repeat("k", 32) + ",",
			strings.Repeat(strings.Repeat("k", 32)+",", 4) + strings.Repeat("k", 32)},
		"CHAT_KEY": {"secret", "c2hvcnQ=", chatKey + ",", chatKey + ",c2hvcnQ=",
			strings.Repeat(chatKey+",", 4) + chatKey},
		"TOKEN_KEY": {"secret", "{}", `{"primaryKeyId":1}`, "e30="},
		"TOKEN_KMS_KEY": {"key", "projects/p/locations/l/keyRings/r",
			"projects/*/locations/l/keyRings/r/cryptoKeys/k"},
		"DECISIONS":            {"on", "Require"},
		"DECISION_KMS_KEY":     {"key", "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
		"DECISION_PUBLIC_KEYS": {"key", "AAAA", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"},
		"LOG_BUCKET":           {"gs://log", "A"},
		"LOG_KMS_KEY":          {"key", "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
		"LOG_PUBLIC_KEYS":      {"key", "a+b+c", ","},
		"RECEIPT_KEY":          {"secret", "c2hvcnQ=", chatKey + "AA", chatKey + "," + chatKey},
		"RECEIPT_KMS_KEY": {"key", "projects/p/locations/l/keyRings/r/cryptoKeys/k",
			"projects/p/locations/*/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"},
		"RECEIPT_JWKS":          {"{}", `{"keys":[]}`, `{"keys":[{"kty":"RSA"}]}`, `{"keys":[{"kty":"OKP","d":"CANARY"}]}`, "x"},
		"VERTEX_AI_ENDPOINT":    {"http://x.example"},
		"VERTEX_AI_LOCATION":    {"us-central1"}, // without a project
		"APPROVAL_TTL":          {"59s", "30d1h", "31d", "0", "-1h", "1", "d", "99999999d"},
		"RUN_DEADLINE":          {"0s", "91d", "soon"},
		"MAX_MODEL_CALLS":       {"0", "51", "3.5", "three", "0x3"},
		"MAX_OPEN_APPROVALS":    {"-1", "10001"},
		"MAX_APPROVALS_PER_DAY": {"-1", "10001"},
		"AUTH_ALLOWED_DOMAINS": {"*", "*.example.com", "@example.com", "a@example.com", "Example.com",
			"example.com,", "example", "exämple.com", "example.com."},
		"PUSH_SUBSCRIPTION": {"agent-resume-push", "projects/p/topics/t", "projects/p/subscriptions/",
			"projects/*/subscriptions/resume", "projects/p/subscriptions/a/b"},
		"MAX_RUNS_PER_MINUTE":       {"-1", "10001", "many"},
		"MAX_MODEL_CALLS_PER_DAY":   {"-1", "1000001"},
		"RETENTION":                 {"-1", "36501", "30d", "0.5"},
		"AUDIT_RETENTION":           {"-1", "36501", "90d", "365"}, // the last one without RETENTION
		"MAX_TOKENS_PER_DAY":        {"-1", "10000000001", "2M"},
		"FUNCTION_TIMEOUT":          {"0s", "29s", "2h"},
		"FUNCTION_CONCURRENCY":      {"0", "-1", "1001", "many"},
		"CLOUD_RUN_TIMEOUT_SECONDS": {"0", "3601", "60s"},
		"LOG_LEVEL":                 {"INFO", "trace"},
		"REJECT_OUTCOME":            {"ok"},
		"SIDE_EFFECTS":              {"true", "OFF"},
		"POLICY_DENIED":             {"*", "a@", "x.com,,y.com"},
		"POLICY_PERMITTED":          {"exämple.com"},
		"POLICY_ALWAYS_ASK":         {"bank"},
		"PERSONA":                   {"bell\a", strings.Repeat("x", 8<<10+1), "\xff"},
		"RELEASE":                   {"v 1", strings.Repeat("x", 65)},
		"GEMINI_FALLBACK_MODELS":    {"a model", "a,,b", "a,b,c,d,e,f"},
		"MODEL_REQUESTS_PER_MINUTE": {"-1", "1000001", "many"},
		"MODEL_TOKENS_PER_MINUTE":   {"-1", "1000000001", "4M"},
		"GEMINI_MODELS":             {"a model", "a,,b", strings.Repeat("a,", 30)},
		"GEMINI_MODEL":              {"a model", "../x", strings.Repeat("x", 129)},
	}
	for name, values := range tests {
		for _, v := range values {
			t.Run(name+"="+v[:min(len(v), 40)], func(t *testing.T) {
				_, err := load(deployed, map[string]string{name: v}, all...)
				if got := variables(t, err); !slices.Contains(got, name) || len(got) != 1 && name != "TOKEN_KMS_KEY" {
					t.Errorf("%v are reported", got)
				}
				if strings.Contains(err.Error(), "\n") && name != "TOKEN_KMS_KEY" {
					t.Errorf("not one line: %v", err)
				}
			})
		}
	}
}

// publicKey is the public key of RFC 8410's example.
const publicKey = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="

func TestPairs(t *testing.T) {
	tests := map[string]struct {
		base, env map[string]string
		want      string
	}{
		"two keys for tokens": {deployed,
			map[string]string{"TOKEN_KMS_KEY": "projects/p/locations/l/keyRings/r/cryptoKeys/k"}, "TOKEN_KEY"},
		"two keys for receipts": {nil, map[string]string{"RECEIPT_JWKS": `{"keys":[{"kty":"OKP"}]}`,
			"RECEIPT_KEY": chatKey, "RECEIPT_KMS_KEY": "projects/p/locations/l/keyRings/r/cryptoKeys/k/" +
				"cryptoKeyVersions/1"}, "RECEIPT_KEY"},
		"a signing key without public keys": {deployed, map[string]string{
			"DECISION_KMS_KEY": "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"},
			"DECISION_PUBLIC_KEYS"},
		"signing without keys": {deployed, map[string]string{"DECISIONS": "sign"},
			"DECISION_PUBLIC_KEYS"},
		"public keys without a signing key": {nil, map[string]string{"DECISION_PUBLIC_KEYS": publicKey},
			"DECISION_KMS_KEY"},
		"receipts that nobody could verify": {deployed, map[string]string{"RECEIPT_KEY": chatKey}, "RECEIPT_JWKS"},
		"an OAuth client without secret": {nil,
			map[string]string{"GOOGLE_OAUTH_CLIENT_ID": "1-a.apps.googleusercontent.com"},
			"GOOGLE_OAUTH_CLIENT_SECRET"},
		"an OAuth secret without client": {nil, map[string]string{"GOOGLE_OAUTH_CLIENT_SECRET": "GOCSPX-abc"},
			"GOOGLE_OAUTH_CLIENT_ID"},
		"a GitHub App without secret": {nil, map[string]string{"GITHUB_CLIENT_ID": "Iv23liAbCdEf01234567"},
			"GITHUB_CLIENT_SECRET"},
		"a GitHub App's secret alone": {nil, map[string]string{"GITHUB_CLIENT_SECRET": "0123456789abcdef"},
			"GITHUB_CLIENT_ID"},
		"nobody's token": {nil, map[string]string{"GITHUB_TOKEN_USER": "ana"}, "GITHUB_TOKEN"},
		"a Vertex project without place": {nil, map[string]string{"VERTEX_AI_PROJECT_ID": "proj-123"},
			"VERTEX_AI_LOCATION"},
		"platform outside Cloud Run": {nil, map[string]string{"PUSH_VERIFIED_BY": "platform"},
			"PUSH_VERIFIED_BY"},
		"a deadline before the approvals'": {deployed, map[string]string{"RUN_DEADLINE": "47h", "APPROVAL_TTL": "2d"},
			"RUN_DEADLINE"},
		"events without Pub/Sub": {nil, map[string]string{"EVENTS_TOPIC": "agent-events",
			"CONSOLE_URL": "https://x.example"}, "EVENTS_TOPIC"},
		"events that lead nowhere": {nil, map[string]string{"EVENTS_TOPIC": "agent-events", "QUEUE": "pubsub",
			"GOOGLE_CLOUD_PROJECT": "proj-123"}, "CONSOLE_URL"},
		"a deadline before the default's": {nil, map[string]string{"RUN_DEADLINE": "1h"}, "RUN_DEADLINE"},
		"too short for a step of a run": {deployed, map[string]string{"CLOUD_RUN_TIMEOUT_SECONDS": "29"},
			"CLOUD_RUN_TIMEOUT_SECONDS"},
		"an audit that is gone before what it is about": {deployed,
			map[string]string{"RETENTION": "90", "AUDIT_RETENTION": "90"}, "AUDIT_RETENTION"},
		"longer than the platform allows": {deployed,
			map[string]string{"FUNCTION_TIMEOUT": "10m", "CLOUD_RUN_TIMEOUT_SECONDS": "540"}, "FUNCTION_TIMEOUT"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := load(tt.base, tt.env)
			if got := variables(t, err); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("%v are reported, want %s", got, tt.want)
			}
		})
	}
}

// TestSettingsOfOtherPrograms checks that settings of other programs, such as GitHub's and Docker's own, are neither
// used nor validated.
func TestSettingsOfOtherPrograms(t *testing.T) {
	c, err := load(nil, map[string]string{"GITHUB_TOKEN": "ghp_0123456789abcdef", "DOCKER_HOST": "ssh://ana@host",
		"DOCKER_CERT_PATH": "a\x00"})
	if err != nil || c.GitHubToken.IsSet() || c.Docker.Host != "" || c.Docker.CertPath != "" {
		t.Errorf("a token %v, engine %q, %v", c.GitHubToken.IsSet(), c.Docker.Host, err)
	}
}

func TestAccepted(t *testing.T) {
	for name, values := range map[string][]string{
		"ALLOWED_ORIGINS": {"https://a.example:8443",
			"http://localhost:3000,http://127.0.0.1:8080,http://[::1]:1", "https://xn--exmple-cua.com",
			"https://find-your-home.example"},
		"AUTH_AUDIENCE": {"my-project", "123-abc.apps.googleusercontent.com"},
		"WEB_API_URL": {"https://api.example.com/",
			"https://agent-{function}-123456789012.europe-west1.run.app", "http://127.0.0.1:8080"},
		"AUTH_ISSUER": {"http://127.0.0.1:8080/dev/issuer", "https://accounts.google.com",
			"accounts.google.com"},
		"GEMINI_API_KEY":          {"offline-demo-model", "AIzaSyA-1234_5678", "AQ.Ab8RN6-x_y"},
		"GOOGLE_GEMINI_BASE_URL":  {"http://127.0.0.1:8080/dev/gemini"},
		"CALENDAR_API_ENDPOINT":   {"http://127.0.0.1:8080/dev/google/calendar/v3/"},
		"GITHUB_URL":              {"http://127.0.0.1:8080", "https://github.example.com/"},
		"GITHUB_API_URL":          {"http://127.0.0.1:8080/api/v3"},
		"PUSH_ISSUER":             {"http://127.0.0.1:8080/dev/issuer"},
		"PUSH_SERVICE_ACCOUNT":    {"push@countersign-dev.iam.gserviceaccount.com"},
		"FIRESTORE_EMULATOR_HOST": {"localhost:8081", "[::1]:8081"},
		"GOOGLE_CLOUD_PROJECT":    {"countersign-dev", "example.com:proj-123"},
		"RESUME_TOPIC":            {"projects/p-1/topics/agent-resume"},
		"SWEEP_TOPIC":             {"projects/p-1/topics/agent-sweep"},
		"CONSOLE_URL":             {"https://x.example/", "http://127.0.0.1:8080"},
		"ACTIONS":                 {"actions", "/srv/my actions"},

		"OTEL_EXPORTER_OTLP_ENDPOINT": {"http://localhost:4318", "https://x.example/otlp/"},
		"OTEL_EXPORTER_OTLP_HEADERS":  {"x-api-key=abc", "Authorization=Basic%20YTpi, x-tenant=1"},
		"OTEL_RESOURCE_ATTRIBUTES":    {"cloud.region=europe-west1", "a=b%2Cc, d="},

		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": {"delta", "lowmemory", "cumulative"},
		"ACTION_KEY": {strings.Repeat("k", 32),
			"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			strings.Repeat("k", 32) + ", " + strings.Repeat("j", 40)},
		"CHAT_KEY":                {chatKey, chatKey + ", " + chatKey},
		"TOKEN_KEY":               {keyset},
		"RECEIPT_KEY":             {chatKey},
		"RECEIPT_JWKS":            {`{"keys":[{"kty":"OKP"}]}`, "eyJrZXlzIjpbeyJrdHkiOiJPS1AifV19"},
		"TOKEN_KMS_KEY":           {"gcp-kms://projects/p/locations/l/keyRings/r/cryptoKeys/k"},
		"APPROVAL_TTL":            {"1m", "30d", "720h", "90s"},
		"RUN_DEADLINE":            {"24h", "1d", "90d"},
		"MAX_OPEN_APPROVALS":      {"0", "10000"},
		"AUTH_ALLOWED_DOMAINS":    {"example.com", "example.com, mail.example.co.uk,example.com"},
		"PUSH_SUBSCRIPTION":       {"projects/proj-123/subscriptions/agent-resume-push"},
		"MAX_RUNS_PER_MINUTE":     {"0", "10000"},
		"MAX_MODEL_CALLS_PER_DAY": {"0", "1000000"},
		"RETENTION":               {"0", "1", "36500"},
		"AUDIT_RETENTION":         {"0"},
		"MAX_TOKENS_PER_DAY":      {"0", "10000000000"},
		"MODEL_TOKENS_PER_MINUTE": {"0", "1000000000"},
	} {
		for _, v := range values {
			if _, err := load(nil, map[string]string{name: v}); err != nil {
				t.Errorf("%s=%s: %v", name, v, err)
			}
		}
	}
}
