package hostile

import (
	"maps"
	"strings"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/testkit"
)

// local and deployed are valid environments: one of a local server, and one of a function in the cloud.
var (
	local = map[string]string{
		"GEMINI_API_KEY": "AIzaSyA-key-that-looks-like-one-000000000", "AUTH_ISSUER": userIssuer,
		"AUTH_AUDIENCE": project,
		"PUSH_AUDIENCE": testkit.PushAudience, "PUSH_SERVICE_ACCOUNT": testkit.PushAccount,
		"PUBLIC_URL":                 "https://agent.example.com",
		"GOOGLE_OAUTH_CLIENT_ID":     "123-abc.apps.googleusercontent.com",
		"GOOGLE_OAUTH_CLIENT_SECRET": "GOCSPX-0123456789abcdef",
	}
	inCloud = map[string]string{
		"K_SERVICE": "run", "GOOGLE_CLOUD_PROJECT": project,
		"TOKEN_KMS_KEY": "projects/p/locations/l/keyRings/r/cryptoKeys/k",
	}
	everyPart = []config.Part{config.Store, config.Queue, config.Users, config.Push, config.Model, config.Accounts,
		config.Consent}
)

// boot runs a case of config:boot. A valid environment with the case's variables must not start, and a line must name
// one of those variables.
func boot(s *env) got {
	v, _ := s.take("env")
	env, ok := v.(map[string]any)
	if !ok {
		s.unknown("env: %v", v)
	}
	base := maps.Clone(local)
	if env["K_SERVICE"] != nil {
		maps.Copy(base, inCloud)
	}
	s.must(load(base)) // it starts without the case's variables
	for name, v := range env {
		base[name] = textOf(v)
	}
	err := load(base)
	if err == nil {
		return got{class: "none", detail: "it starts"}
	}
	for name := range env {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if name != "K_SERVICE" && strings.Contains(line, name) {
				return got{class: "ValidationError", detail: line}
			}
		}
	}
	s.stop("no line names the variable: %w", err)
	return got{}
}

func load(env map[string]string) error {
	_, err := config.Load(func(name string) string { return env[name] }, everyPart...)
	return err
}
