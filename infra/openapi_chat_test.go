package infra_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/hosts"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// page is a page that talks to the agent. It sends back the history of the last response.
type page struct {
	*stand
	t       *testing.T
	says    string
	lines   bool // requests a stream of lines
	history []json.RawMessage
}

// reply holds the used fields of a response to a page.
type reply struct {
	Type    string
	History []json.RawMessage
	Calls   []struct {
		ID, Category, RunID string
		Approval            *testkit.Approval
	}
}

var basket = []any{map[string]any{"name": "basket", "description": "What lies in it.",
	"inputSchema": map[string]any{"type": "object"}, "category": "page-automation"}}

// post sends a request of the page.
func (p *page) post(status int, op string, more map[string]any) (r reply) {
	p.t.Helper()
	if p.history == nil {
		p.history = []json.RawMessage{}
	}
	body := map[string]any{"history": p.history, "toolDefinitions": basket,
		"pageState": map[string]any{"viewState": map[string]any{}}}
	maps.Copy(body, more)
	q := ask{op: op, body: inJSON(p.t, body)}
	if p.lines {
		q.header = []string{"Accept", "application/x-ndjson"}
	}
	a := p.want(p.t, status, q)
	if status != http.StatusOK {
		return r
	}
	a.last().into(p.t, &r)
	p.history = r.History
	return r
}

func (p *page) say(status int) reply {
	p.t.Helper()
	return p.post(status, "chat", map[string]any{"message": p.says})
}

func chats(t *testing.T, d *described) {
	s := d.open(t, func(c *testkit.Cloud) { c.Handle("/shop/", http.HandlerFunc(shop)) }, "MAX_OPEN_APPROVALS=1")
	for says, lines := range map[string]bool{"Please.": false, "In lines, please.": true} {
		pageTool(&page{stand: s, t: t, says: says, lines: lines})
		serverAction(&page{stand: s, t: t, says: says, lines: lines})
	}
	p := &page{stand: s, t: t, says: "Once more."}
	p.post(400, "chatResults", map[string]any{"results": []any{}}) // no call is pending
	goneBehind(p)
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Thought: "It needs a tool.",
			Calls: []fakegemini.Call{{Name: "no_such_tool", Args: map[string]any{}}}}
	})
	s.App.API.Chat.Core.Agents["page"].Model.Thoughts = true
	// This request ends in an error.
	s.want(t, 200, ask{op: "chat", body: `{"message":"Do it."}`, header: []string{"Accept", "application/x-ndjson"}})
	usedUp(t, d)
	withdrawn(t, d)
}

// withdrawn removes the agent while a page waits for its answer. An agent that pages cannot use does not exist for
// them.
func withdrawn(t *testing.T, d *described) {
	s := d.open(t, nil)
	for name, status := range map[string]int{"page": 200, "nobody": 404, "assistant": 404, "No Name": 400, "": 400} {
		s.want(t, status, ask{op: "chat", body: inJSON(t, map[string]any{"message": "Please.", "agent": name})})
	}
	s.want(t, 200, ask{op: "chat", body: `{"message":"Please.","agent":null}`})
	s.SetModel(testkit.Wants("basket", map[string]any{}))
	p := &page{stand: s, t: t, says: "Please."}
	r := p.say(200)
	delete(s.App.API.Loop.Agents, "page")
	done := []any{map[string]any{"callId": r.Calls[0].ID, "result": `{"ok":true}`, "isError": false}}
	p.post(404, "chatResults", map[string]any{"results": done})
	p.say(404)
}

// usedUp makes a page exhaust its user's daily model budget.
func usedUp(t *testing.T, d *described) {
	s := d.open(t, nil, "MAX_MODEL_CALLS_PER_DAY=1")
	s.SetModel(testkit.Wants("basket", map[string]any{}))
	p := &page{stand: s, t: t, says: "Please."}
	r := p.say(200)
	done := []any{map[string]any{"callId": r.Calls[0].ID, "result": `{"ok":true}`, "isError": false}}
	p.post(429, "chatResults", map[string]any{"results": done})
	p.post(429, "chat", map[string]any{"message": "Please."})
}

// goneBehind deletes the run of an action while the page waits for it, sends the page's message again, and exhausts the
// cap of pending approvals. The model gets these as results; the conversation does not fail.
func goneBehind(p *page) {
	p.SetModel(testkit.Wants("action_cart_add", map[string]any{"id": "mug"}))
	before := p.history
	message := map[string]any{"message": p.says, "messageId": "0d1f6c3e-2f55-4a0c-9d3a-0a6f0b8f9d11"}
	r := p.post(200, "chat", message)
	var of run
	p.want(p.t, 200, ask{op: "cancelRun", params: []string{r.Calls[0].RunID}}).into(p.t, &of)
	p.want(p.t, 200, ask{op: "deleteThread", params: []string{of.ThreadID}})
	p.post(200, "chatResults", map[string]any{"results": []any{}})
	p.history = before
	p.post(200, "chat", message)
	p.says = "Another."
	for _, want := range []string{"tool-calls", "response"} {
		p.SetModel(testkit.Wants("action_cart_add", map[string]any{"id": "mug"}))
		if r := p.say(200); r.Type != want {
			p.t.Errorf("the answer is %s, want %s: one approval may be pending", r.Type, want)
		}
	}
}

// pageTool makes the model call a tool of the page, and answers the call as the page.
func pageTool(p *page) {
	p.SetModel(testkit.Wants("basket", map[string]any{}))
	r := p.say(200)
	if r.Type != "tool-calls" || len(r.Calls) != 1 || r.Calls[0].Category != "page-automation" {
		p.t.Fatalf("the page is asked for %v", r)
	}
	done := []any{map[string]any{"callId": r.Calls[0].ID, "result": `{"ok":true}`, "isError": false}}
	if r := p.post(200, "chatResults", map[string]any{"results": done}); r.Type != "response" {
		p.t.Fatalf("the page is told %v", r)
	}
}

// serverAction makes the model call an action that waits for approval. The user polls once more, and approves.
func serverAction(p *page) {
	p.SetModel(testkit.Wants("action_cart_add", map[string]any{"id": "mug"}))
	r := p.say(200)
	if len(r.Calls) != 1 || r.Calls[0].Approval == nil {
		p.t.Fatalf("no approval waits: %v", r)
	}
	if again := p.post(200, "chatResults", map[string]any{"results": []any{}}); again.Type != "tool-calls" {
		p.t.Fatalf("no approval is pending after the poll: %v", again)
	}
	p.resolve(p.t, 200, "ada", *r.Calls[0].Approval, "approve_once")
	p.deliver(p.t)
	if r := p.post(200, "chatResults", map[string]any{"results": []any{}}); r.Type != "response" {
		p.t.Fatalf("the page is told %v", r)
	}
}

// turns takes turns of the agent on a terminal by hand.
func turns(t *testing.T, d *described) {
	s := d.open(t, nil, "MAX_MODEL_CALLS_PER_DAY=5")
	on := s.terminalOf(t, newNetwork(t))
	s.SetModel(testkit.Wants("run_command", testkit.Command("uptime")))
	body := func(history []json.RawMessage, says string) string {
		if says != "" {
			history = append(slices.Clone(history), json.RawMessage(`{"role":"user","parts":[{"text":"`+says+`"}]}`))
		}
		return inJSON(t, map[string]any{"history": history, "terminalId": on})
	}
	take := func(status int, history []json.RawMessage, says string) (r reply) {
		t.Helper()
		a := s.want(t, status, ask{op: "geminiAgent", body: body(history, says)})
		if status == http.StatusOK {
			a.into(t, &r)
		}
		return r
	}
	first := take(200, nil, "Look.")
	if len(first.Calls) != 1 || first.Calls[0].Approval == nil || first.Calls[0].RunID == "" {
		t.Fatalf("%+v", first)
	}
	take(200, first.History, "") // the command still waits
	take(400, append(slices.Clone(first.History), json.RawMessage(
		`{"role":"user","parts":[{"functionResponse":{"name":"run_command","response":{"output":"ok"}}}]}`)), "")
	take(400, nil, "")
	s.want(t, 404, ask{op: "geminiAgent", body: body(nil, "Look."), uid: "eve"})
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "run_command", Args: testkit.Command("df")}}}
	})
	take(409, first.History, "Never mind.") // no other command can begin there
	s.resolve(t, 200, "ada", *first.Calls[0].Approval, "reject")
	s.SetModel(testkit.Wants("run_command", testkit.Command("uptime")))
	last := take(200, first.History, "")
	if len(last.Calls) != 0 {
		t.Errorf("%+v; want len(last.Calls) 0", last)
	}
	for range 5 {
		if a := s.call(t, ask{op: "geminiAgent", body: body(nil, "Look.")}); a.status == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("the model is called without end")
}

// terminalOf opens a terminal of ada's on a host of the network.
func (s *stand) terminalOf(t *testing.T, n *network) string {
	t.Helper()
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.App.API.Hosts = hosts.New(hosts.Config{Store: s.store, Vault: terminal.Vault{AEAD: key}, Remote: n, Now: s.now})
	h := s.added(t, map[string]any{"kind": "generated"}, []terminal.HostKey{n.key})
	var on struct{ TerminalID string }
	s.want(t, 200, ask{op: "openTerminal",
		body: inJSON(t, map[string]any{"hostId": h, "cols": 80, "rows": 24})}).into(t, &on)
	return on.TerminalID
}
