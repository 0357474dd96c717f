package config_test

import (
	"fmt"
	"testing"

	"github.com/countersign-run/countersign/shared/config"
)

// TestNearMisses checks that a misspelt variable names the setting that is meant, and that other programs' variables
// name none.
func TestNearMisses(t *testing.T) {
	cfg, err := config.Load(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"ALLOWED_ORIGIN": "ALLOWED_ORIGINS", "ALLOWED_ORIGNS": "ALLOWED_ORIGINS", "GEMINI_APIKEY": "GEMINI_API_KEY",
		"GEMINI_KEY": "GEMINI_API_KEY", "GEMINIAPIKEY": "GEMINI_API_KEY", "gemini_api_key": "GEMINI_API_KEY",
		"GEMINI_FALLBACK_MODEL": "GEMINI_FALLBACK_MODELS", "GEMINI_FALLBACKMODELS": "GEMINI_FALLBACK_MODELS",
		"GEMINI_MODLES": "GEMINI_MODELS", "MCP_SERVER": "MCP_SERVERS", "PUBLIC_BASE_URL": "PUBLIC_URL",
		"SIDE_EFFECT": "SIDE_EFFECTS", "AGENT": "AGENTS", "ACTION": "ACTIONS", "RETENTOIN": "RETENTION",
		"GOOGLE_API_KEY": "GEMINI_API_KEY", "CORS_ORIGIN": "ALLOWED_ORIGINS", "AGENTS_DIR": "AGENTS",
		"GEMINI_API_KEY": "", "PATH": "", "HOME": "", "SHELL": "", "TERM": "", "LANG": "", "USER": "", "PWD": "",
		"OLDPWD": "", "HOSTNAME": "", "GOPATH": "", "NODE_ENV": "", "AWS_ACCESS_KEY_ID": "", "GOOGLE_CLOUD_PROJECT": "",
		"EDITOR": "", "STORAGE": "", "LOGNAME": "", "SSH_AUTH_SOCK": "", "XDG_RUNTIME_DIR": "", "LC_ALL": "",
	} {
		got := cfg.NearMisses([]string{name + "=x"})
		if want == "" && len(got) > 0 || want != "" && fmt.Sprint(got) != fmt.Sprint([]config.NearMiss{{name, want}}) {
			t.Errorf("%s: %v, want %q", name, got, want)
		}
	}
	if got := cfg.NearMisses([]string{"MCP_SERVER=x", "MCP_SERVERS=y"}); len(got) > 0 {
		t.Errorf("beside what is meant: %v", got)
	}
}
