package api_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestAgents lists the agents, starts a run with a named agent, and checks that every other name is answered as not
// found.
func TestAgents(t *testing.T) {
	w := newEnv(t)
	clerk, page := *w.loop.Agents[run.Assistant], *w.loop.Agents[run.Assistant]
	clerk.Name, clerk.Description, clerk.Tools = "clerk", "Looks things up.", []string{}
	clerk.Examples = []string{"look it up"}
	page.Name, page.Page = run.Page, true
	w.loop.Agents = registry.Set{run.Assistant: w.loop.Agents[run.Assistant], "clerk": &clerk, run.Page: &page}
	got := w.send("GET", "/api/agent/agents", "ana", "")
	want := `{"ok":true,"agents":[{"name":"assistant","description":"Sends mail.","tools":["mail"]},` +
		`{"name":"clerk","description":"Looks things up.","tools":[],"examples":["look it up"]},` +
		`{"name":"page","description":"Sends mail.","tools":["mail"],"page":true}]}`
	if got.StatusCode != 200 || strings.TrimSpace(string(got.body)) != want {
		t.Errorf("%d %s\nwant %s", got.StatusCode, got.body, want)
	}
	if got := w.send("GET", "/api/agent/agents", "", ""); got.StatusCode != 401 {
		t.Errorf("without a token: %d", got.StatusCode)
	}
	key := header("Idempotency-Key", "k1")
	w.model.Then(script.Turn{Text: "Hello."})
	r := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hello","agent":"clerk"}`, key)
	if r.StatusCode != 200 || r.at("agent") != "clerk" {
		t.Fatalf("%d %s; want r.StatusCode 200, r.at(\"agent\") “clerk”", r.StatusCode, r.body)
	}
	if got := w.send("GET", "/api/agent/runs/"+r.at("runId"), "ana", ""); got.at("agent") != "clerk" {
		t.Errorf("the run reads %s", got.body)
	}
	events := w.send("GET", "/api/agent/runs/"+r.at("runId")+"/events", "ana", "")
	if first, _, _ := strings.Cut(string(events.body), "\n"); !strings.Contains(first, `"agent":"clerk"`) {
		t.Errorf("the first event is %s", first)
	}
	for body, status := range map[string]int{
		`{"prompt":"hello","agent":"clerk"}`:     200, // a repeat of the first request
		`{"prompt":"hello","agent":"assistant"}`: 409,
		`{"prompt":"hello"}`:                     409,
		`{"prompt":"hello","agent":"nobody"}`:    404,
		`{"prompt":"hello","agent":"page"}`:      404,
		`{"prompt":"hello","agent":"No name"}`:   400,
	} {
		if got := w.send("POST", "/api/agent/run", "ana", body, key); got.StatusCode != status {
			t.Errorf("%s: %d %s; want got.StatusCode %v", body, got.StatusCode, got.body, status)
		}
		if got := w.send("POST", "/api/agent/run/stream", "ana", body, key); got.StatusCode != status {
			t.Errorf("%s, streamed: %d %s", body, got.StatusCode, got.body)
		}
	}
}

// TestThreadOfMissingAgent checks that the error names the missing agent and the next step, and reveals nothing about
// the conversation.
func TestThreadOfMissingAgent(t *testing.T) {
	w := newEnv(t)
	clerk := *w.loop.Agents[run.Assistant]
	clerk.Name = "clerk"
	w.loop.Agents["clerk"] = &clerk
	w.model.Then(script.Turn{Text: "Hello."})
	r := w.send("POST", "/api/agent/run", "ana", `{"prompt":"hello","agent":"clerk"}`)
	if r.StatusCode != 200 {
		t.Fatalf("%d %s; want r.StatusCode 200", r.StatusCode, r.body)
	}
	delete(w.loop.Agents, "clerk")
	for _, uid := range []string{"ana", "eve"} {
		for _, path := range []string{"/api/agent/run", "/api/agent/run/stream"} {
			got := w.send("POST", path, uid, `{"prompt":"again","agent":"clerk","threadId":"`+r.at("threadId")+`"}`)
			const want = `The agent \"clerk\" is no longer available. Please begin a new conversation.`
			if got.StatusCode != 404 || !strings.Contains(string(got.body), want) ||
				!strings.Contains(string(got.body), `"code":"not_found"`) {
				t.Errorf("%s to %s: %d %s", uid, path, got.StatusCode, got.body)
			}
		}
	}
	w.model.Then(script.Turn{Text: "Hello again."})
	if got := w.send("POST", "/api/agent/run", "ana", `{"prompt":"again"}`); got.StatusCode != 200 {
		t.Errorf("a new conversation: %d %s", got.StatusCode, got.body)
	}
}
