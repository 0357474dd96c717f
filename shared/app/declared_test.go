package app_test

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/all"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// agentFiles returns a folder with two agents: one for bookings and one for the shop.
func agentFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"concierge": "description: Books.\ninstruction: You are the concierge.\ntools: [calendar_event_create]\n" +
			"limits: {modelCalls: 1}\nmodel: gemini-2.5-pro\ntemperature: 0.25\n",
		"shop": "instruction: You serve the shop.\ntools:\n  - name: action_look\n    approval: required\n" +
			"  - {name: action_cart_note, approval: required}\n  - action_cart_add\nonReject: failed\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".agent.yaml"), []byte("name: "+name+"\n"+text),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// askOf starts a run of the agent.
func (w *proved) askOf(name string) testkit.Answer {
	w.t.Helper()
	a := w.call("POST", "/api/agent/run", `{"prompt":"please do it","agent":"`+name+`"}`)
	if a.HTTP != http.StatusOK && a.HTTP != http.StatusAccepted { // 202: another function continues it
		w.t.Fatalf("%d %s", a.HTTP, a.Body)
	}
	return a
}

// TestAgentsInFiles checks that agents in files are listed, and that their runs follow the files.
func TestAgentsInFiles(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		e := newEndpoint(t)
		w := withActions(t, e, append(settings, "AGENTS="+agentFiles(t))...)
		if got := string(w.call("GET", "/api/agent/agents", "").Body); !strings.Contains(got,
			`{"name":"concierge","description":"Books.","tools":["calendar_event_create"]}`) ||
			!strings.Contains(got, `"tools":["action_cart_add","action_cart_note","action_look"]`) {
			t.Errorf("the agents are %s", got)
		}
		t.Run("what it is told and offered", func(t *testing.T) { told(t, w) })
		t.Run("a tool of others", func(t *testing.T) {
			w.mail()
			if r := w.askOf("shop"); len(r.Actions) != 1 || r.Actions[0].ErrorReason != "unknown_tool" {
				t.Errorf("%s; want len(r.Actions) 1, r.Actions[0].ErrorReason “unknown_tool”", r.Body)
			}
		})
		for tool, sent := range map[string]int{"action_look": 1, "action_cart_note": 1} {
			t.Run("stricter approval of "+tool, func(t *testing.T) {
				w.SetModel(testkit.Wants(tool, map[string]any{"id": "mug"}))
				before := len(e.requests())
				r := w.askOf("shop")
				if r.Status != "awaiting_confirmation" || len(e.requests()) != before {
					t.Fatalf("%s, %v; want r.Status “awaiting_confirmation”, len(e.requests()) %v",
						r.Body, e.requests(), before)
				}
				if got := w.approve(r); got.Status != "completed" || len(e.requests()) != before+sent {
					t.Errorf("%s, %v", got.Body, e.requests())
				}
				if r := w.ask(); r.Status != "completed" || len(e.requests()) != before+2*sent {
					t.Errorf("the assistant's: %s, %v", r.Body, e.requests())
				}
			})
		}
		t.Run("a no", func(t *testing.T) {
			w.SetModel(testkit.Wants("action_cart_add", map[string]any{"id": "mug"}))
			r := w.askOf("shop")
			if _, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "reject"); err != nil {
				t.Fatal(err)
			}
			w.deliver()
			if got := w.call("GET", "/api/agent/runs/"+r.RunID, ""); got.Status != "failed" {
				t.Errorf("%s; want got.Status “failed”", got.Body)
			}
		})
		if a := w.call("POST", "/api/agent/run", `{"prompt":"x","agent":"butler"}`); a.HTTP != http.StatusNotFound {
			t.Errorf("an agent that no file declares: %d %s", a.HTTP, a.Body)
		}
	})
}

// told checks what the model gets for the concierge, whose file permits one call.
func told(t *testing.T, w *proved) {
	var asked []fakegemini.Request
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		asked = append(asked, r)
		return fakegemini.Turn{Text: "Hello."}
	})
	if r := w.askOf("concierge"); r.Status != "completed" || !strings.Contains(string(r.Body), `"agent":"concierge"`) {
		t.Fatalf("%s; want r.Status “completed”, r.Body with %q", r.Body, `"agent":"concierge"`)
	}
	if len(asked) != 1 || len(asked[0].Tools) != 1 || asked[0].Tools[0].Name != "calendar_event_create" ||
		!strings.HasPrefix(asked[0].System, "You are the concierge.\n\nThe run began at ") ||
		strings.Contains(asked[0].System, "Rules:") {
		t.Errorf("%+v", asked)
	}
}

func TestAgentFileBroken(t *testing.T) {
	for _, name := range []string{"fly", "github.createIssue"} {
		dir := seller(t, name)
		w, err := testkit.New(t.Context(), testkit.Options{Dir: t.TempDir(), Settings: []string{"AGENTS=" + dir}})
		if err == nil {
			t.Errorf("an agent with %s is started (%v)", name, w.Stop())
			continue
		}
		if !strings.Contains(err.Error(), "AGENTS: shop.agent.yaml:4: tools: there is no tool \""+name+"\"; "+
			"expected: calendar_event_create, calendar_event_update, calendar_events_list, calendar_freebusy, "+
			"calendar_respond, forget, gmail_draft, gmail_send, remember") {
			t.Errorf("with %s the start returns %v", name, err)
		}
	}
}

// seller returns a folder with an agent that has the tool.
func seller(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shop.agent.yaml"),
		[]byte("name: shop\ninstruction: Sell.\ntools:\n  - "+name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAgentFileToolOfOtherFunction checks an agent in a file that names a tool that, deployed, only another function
// can execute.
func TestAgentFileToolOfOtherFunction(t *testing.T) {
	w := deploy(t, "DOCKER_HOST=unix:///none/docker.sock", "DOCKER_IMAGES=localhost/go:1", "TERMINAL=on")
	for _, name := range []string{"run_command", "docker.executeScript"} {
		for _, deployed := range []bool{false, true} {
			cfg := w.App.Config
			cfg.Agents, cfg.DataDir, cfg.OnCloudRun = seller(t, name), t.TempDir(), deployed
			a, err := app.New(t.Context(), cfg, slog.New(slog.DiscardHandler), all.Parts)
			if err == nil {
				err = a.Close()
			}
			if refused := err != nil && strings.Contains(err.Error(), "there is no tool"); refused != deployed {
				t.Errorf("%s, deployed: %t: %v", name, deployed, err)
			}
		}
	}
}
