package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testBase = "http://127.0.0.1:8080"

func TestSettingsInvalid(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ variable, value, named string }{
		"no audience":     {"AUTH_ISSUER", "https://issuer.example", "AUTH_AUDIENCE is not set; it needs "},
		"no project":      {"STORE", "firestore", "GOOGLE_CLOUD_PROJECT is not set; it needs "},
		"no topic's home": {"QUEUE", "pubsub", "GOOGLE_CLOUD_PROJECT is not set; it needs "},
		"every origin":    {"ALLOWED_ORIGINS", "*", `ALLOWED_ORIGINS is "*"; it needs `},
		"no such directory": {"DATA_DIR", filepath.Join(file, "data"),
			`DATA_DIR is "` + filepath.Join(file, "data") + `"; it must be `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DATA_DIR", t.TempDir())
			t.Setenv(c.variable, c.value)
			s, err := newServer(t.Context(), testBase, options{})
			if err == nil {
				t.Fatal("the server starts", s.close())
			}
			if said := err.Error(); !strings.HasPrefix(said, c.named) || strings.Contains(said, "\n") {
				t.Errorf("got %q, want one line that begins %q", said, c.named)
			}
		})
	}
}

// TestSettingsGeminiKey checks that a key in the file selects Gemini, like a key in the environment.
func TestSettingsGeminiKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gemini.yaml")
	if err := os.WriteFile(path, []byte("apiKey: AIzaFromFile\nmodel: gemini-from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEMINI_CONFIG", path)
	s := startTestServer(t)
	if got := s.env.parts(false)[2][1]; got != "Gemini, gemini-from-file" || s.env.get("GOOGLE_GEMINI_BASE_URL") != "" {
		t.Errorf("the model is %s at %q", got, s.env.get("GOOGLE_GEMINI_BASE_URL"))
	}
}

// TestSettingsPlaceholderKey starts with the template that setup writes. The demo model answers, and the greeting says
// why.
func TestSettingsPlaceholderKey(t *testing.T) {
	template, err := os.ReadFile("../../ops/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "gemini.yaml")
	if err := os.WriteFile(path, template, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEMINI_CONFIG", path)
	s := startTestServer(t)
	want := "offline demo model: the key in " + path + " is still the placeholder"
	if got := s.env.parts(false)[2][1]; !strings.HasPrefix(got, want) {
		t.Errorf("the model is %s", got)
	}
	if err := os.WriteFile(path, append(template, "\nmodell: m\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = newServer(t.Context(), testBase, options{})
	if err == nil {
		t.Error("the other mistake in the file is not reported", s.close())
	}
}

// TestGreetingModelAndAgents checks that the greeting names the model, and the examples that AGENTS replaces.
func TestGreetingModelAndAgents(t *testing.T) {
	for agents, want := range map[string]string{"": "the examples concierge, reader, shop-support, shop",
		"own": "those in own, which replace the examples concierge, reader, shop-support, shop"} {
		theirs := map[string]string{"AGENTS": agents, "GEMINI_API_KEY": "AIzaKey"}
		s := &server{env: newEnvironment(func(name string) string { return theirs[name] })}
		if got := s.agentsPart(); got != want {
			t.Errorf("the agents are %s", got)
		}
		if got := s.env.parts(false)[2][1]; got != "Gemini, gemini-flash-latest" {
			t.Errorf("the model is %s", got)
		}
	}
}

// TestExampleAgents checks that the server has the example agents, and the shop's agents only with the shop's actions.
func TestExampleAgents(t *testing.T) {
	for actions, want := range map[string]string{
		"": "assistant concierge page planner reader secretary shop shop-support terminal " +
			"terminal-chat",
		"../../cookbook/actions": "assistant concierge page planner reader secretary terminal terminal-chat"} {
		t.Setenv("ACTIONS", actions)
		t.Setenv("ACTION_KEY", strings.Repeat("0123456789abcdef", 2))
		s := startTestServer(t)
		if got := strings.Join(s.app.API.Loop.Agents.Names(), " "); got != want {
			t.Errorf("with ACTIONS=%s the agents are %s", actions, got)
		}
		for name, agent := range s.app.API.Loop.Agents {
			shops := agent.Of(s.app.API.Loop.Tools)["action_submitRating"] != nil
			if shops != (actions == "" && strings.HasPrefix(name, "shop")) {
				t.Errorf("with ACTIONS=%s the agent %s has the shop's actions: %v", actions, name, shops)
			}
			if bound := len(agent.Origins) > 0; bound != (name == "shop") {
				t.Errorf("with ACTIONS=%s the agent %s answers pages of %v", actions, name, agent.Origins)
			}
		}
	}
}

// TestGreeting checks that the greeting describes each part once, and ends with the URLs.
func TestGreeting(t *testing.T) {
	s := startTestServer(t)
	var said strings.Builder
	s.greet(&said)
	head, parts, _ := strings.Cut(said.String(), "\n")
	parts, last, _ := strings.Cut(parts, "\n\n")
	var names []string
	for line := range strings.Lines(parts) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		names = append(names, name)
	}
	want := "store; queue; model; mail, calendar; sign-in; host; web; containers; agents"
	if got := strings.Join(names, "; "); got != want ||
		head != "Countersign" || last != "Open "+testBase+"/, or the example shop at "+testBase+
		"/shop. The API is documented at "+testBase+"/docs, with example pages at "+
		testBase+"/examples. Break it at "+
		testBase+fmt.Sprintf("/chaos\nPress Ctrl-C to stop, or kill -9 %d to simulate a crash: the next "+
		"start continues.\n", os.Getpid()) ||
		!strings.Contains(parts, fmt.Sprintf("demo host at 127.0.0.1:%d, simulated", s.demo.port)) {
		t.Errorf("the greeting is %s", said.String())
	}
}

func TestPortInMessage(t *testing.T) {
	for port, ok := range map[string]bool{"": true, "8081": true, "0": true, "abc": false, "70000": false,
		"-1": false} {
		addr, err := address(port)
		if ok != (err == nil) || ok && !strings.HasPrefix(addr, "127.0.0.1:") || !ok &&
			!strings.HasPrefix(err.Error(), "PORT is ") {
			t.Errorf("PORT %q: %q, %v", port, addr, err)
		}
	}
}

func startTestServer(t *testing.T) *server {
	t.Helper()
	t.Setenv("DATA_DIR", t.TempDir())
	t.Setenv("LOG_LEVEL", "silent")
	s, err := newServer(t.Context(), testBase, options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestUncleanPaths checks that no such path is redirected, because a redirect could drop a body.
func TestUncleanPaths(t *testing.T) {
	s := startTestServer(t)
	for _, path := range []string{"//api/agent/run", "/x/../api/agent/run", "/./api/agent/run",
		"/api/agent/approvals/../run", "/dev/../api/agent/run"} {
		r := httptest.NewRequest(http.MethodPost, testBase+path, strings.NewReader(`{"prompt":"x"}`))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no_such_path") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestTokenOrigins checks that a page of another origin cannot make the local issuer issue a token, not even one that
// it could not read.
func TestTokenOrigins(t *testing.T) {
	s := startTestServer(t)
	for origin, want := range map[string]int{"": http.StatusOK, testBase: http.StatusOK,
		"https://evil.example": http.StatusForbidden, "null": http.StatusForbidden} {
		r := httptest.NewRequest(http.MethodPost, testBase+"/dev/token",
			strings.NewReader(`{"uid":"ana","email":"ana@example.com"}`))
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from origin %q: %d %s, want %d", origin, w.Code, w.Body, want)
		}
	}
}
