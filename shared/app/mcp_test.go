package app_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/api/mcpserver"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// agent is another program's agent, with an MCP client and a token of ana's.
type agent struct {
	*proved
	token, tokenID string
	session        *mcp.ClientSession
}

// gives creates a token of a user's for an agent, and connects the agent.
func (w *proved) gives(uid, name string) *agent {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "POST", "/api/agent/tokens", `{"name":"`+name+`"}`)
	var made struct{ TokenID, Token string }
	if err == nil {
		err = json.Unmarshal(a.Body, &made)
	}
	if err != nil || a.HTTP != http.StatusOK || made.Token == "" {
		w.t.Fatalf("a token: %d %s, %v", a.HTTP, a.Body, err)
	}
	return &agent{w, made.Token, made.TokenID, w.connects(made.Token, nil)}
}

// connects connects a client with a token.
func (w *proved) connects(token string, o *mcp.ClientOptions) *mcp.ClientSession {
	w.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, o)
	session, err := client.Connect(w.t.Context(), &mcp.StreamableClientTransport{Endpoint: w.Base + "/mcp",
		HTTPClient: &http.Client{Transport: bearing(token)}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return session
}

// bearing sends a token with each request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// heard is an answer to a call.
type heard struct {
	Status, RunID, Link, Error, Code, Field, Summary string
	Waiting                                          []struct{ ApprovalID, Kind, Tool string }
	Result                                           json.RawMessage
	Untrusted                                        bool

	words  string
	failed bool
}

// calls calls a tool, with a key if given.
func (g *agent) calls(name string, args any, key ...string) (a heard) {
	g.t.Helper()
	p := &mcp.CallToolParams{Name: name, Arguments: args}
	if len(key) > 0 {
		p.Meta = mcp.Meta{mcpserver.KeyMeta: key[0]}
	}
	res, err := g.session.CallTool(g.t.Context(), p)
	if err != nil {
		g.t.Fatalf("%s: %v", name, err)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if err != nil || !ok {
		g.t.Fatalf("%s answered %+v, %v", name, res, err)
	}
	a.words, a.failed = text.Text, res.IsError
	return a
}

// card returns ana's only waiting card.
func (g *agent) card() testkit.Approval {
	g.t.Helper()
	a := g.call("GET", "/api/agent/approvals/pending", "")
	if len(a.Approvals) != 1 {
		g.t.Fatalf("what waits: %s", a.Body)
	}
	return a.Approvals[0]
}

func (g *agent) decides(c testkit.Approval, decision string, status int) testkit.Answer {
	g.t.Helper()
	a, err := g.Resolve(g.t.Context(), "ana", c, decision)
	if err != nil || a.HTTP != status {
		g.t.Fatalf("%s: %v, %d %s, want %d", decision, err, a.HTTP, a.Body, status)
	}
	g.deliver()
	return a
}

var bobs = testkit.Mail("bob@example.com", "Lunch", "CANARY-body")

// TestListsWrittenAsTexts sends a list as JSON in a string, null for an absent field, and values that fit in no
// single way. The card shows accepted values; a refusal names the field and the type in its text.
func TestListsWrittenAsTexts(t *testing.T) {
	g := deploy(t).gives("ana", "My editor")
	for name, c := range map[string]struct{ args, refused string }{
		"a list in a text":   {args: `{"to":"[\"ken@example.org\"]","subject":"s","body":"b"}`},
		"null":               {args: `{"to":["ken@example.org"],"cc":null,"bcc":null,"subject":"s","body":"b"}`},
		"one value":          {`{"to":"ken@example.org","subject":"s","body":"b"}`, "to: must be a list"},
		"without recipients": {`{"subject":"s","body":"b"}`, "to: required: a list"},
		"a number":           {`{"to":["ken@example.org"],"subject":5,"body":"b"}`, "subject: must be a text"},
		"an unknown field":   {`{"to":["ken@example.org"],"subject":"s","body":"b","x":1}`, "x: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.calls("gmail_send", json.RawMessage(c.args))
			if c.refused != "" {
				if !got.failed || got.words != c.refused || got.Field == "" {
					t.Errorf("%+v, want %s", got, c.refused)
				}
				return
			}
			if card := g.card(); got.Status != "awaiting_confirmation" ||
				!strings.Contains(string(card.Args), `"to":["ken@example.org"]`) {
				t.Errorf("%+v, %s; want got.Status “awaiting_confirmation”, card.Args with %q",
					got, card.Args, `"to":["ken@example.org"]`)
			}
			g.decides(g.card(), "reject", http.StatusOK)
		})
	}
	for name, c := range map[string]struct{ args, words string }{ // of the tools that the assistant does not have
		"wait_for_approval": {`{"runId":"abcdefghijklmnopqrstuvwxyz","seconds":"0"}`,
			"There is no such thing, or it is not yours."},
		"approval_status": {`{}`, "runId: required: a text"},
		"countersign_run": {`{"prompt":["hello"],"agent":null}`, "prompt: must be a text"},
	} {
		if got := g.calls(name, json.RawMessage(c.args)); !got.failed || got.words != c.words {
			t.Errorf("%s(%s) = %+v, want %s", name, c.args, got, c.words)
		}
	}
	g.SetModel(testkit.Wants("gmail_send", map[string]any{"to": `["ken@example.org"]`, "cc": nil, "subject": "s",
		"body": "b"}))
	r := g.ask()
	if r.Status != "awaiting_confirmation" || !strings.Contains(string(g.card().Args), `["ken@example.org"]`) {
		t.Errorf("by Gemini: %s", r.Body)
	}
}

// TestMCPApproval makes another program's agent send an e-mail. The card names the agent, and the e-mail is sent once.
func TestMCPApproval(t *testing.T) {
	w := deploy(t)
	g := w.gives("ana", "My editor")
	tools, err := g.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tl := range tools.Tools {
		names = append(names, tl.Name)
	}
	for _, want := range []string{"gmail_send", "calendar_event_create", "approval_status", "wait_for_approval",
		"countersign_run"} {
		if !slices.Contains(names, want) {
			t.Errorf("it is offered %v, without %s", names, want)
		}
	}
	asked := g.calls("gmail_send", bobs)
	if asked.failed || asked.Status != "awaiting_confirmation" || len(asked.Waiting) != 1 ||
		len(w.Google.Messages()) != 0 || !strings.Contains(asked.words, asked.Link) ||
		!strings.HasPrefix(asked.Link, w.Base+"/#/t/") {
		t.Fatalf("%+v, %d e-mails", asked, len(w.Google.Messages()))
	}
	card := g.card()
	if text := string(w.call("GET", "/api/agent/approvals/pending", "").Body); card.RunID != asked.RunID ||
		!strings.Contains(text, `"findings":[{"reason":"agent","text":"My editor"}]`) ||
		strings.Contains(text, "always_allow") {
		t.Errorf("the card is %s", text)
	}
	g.decides(card, "approve_and_always_allow_recipient", http.StatusConflict)
	if a := g.calls("wait_for_approval", map[string]any{"runId": asked.RunID, "seconds": 0}); a.failed ||
		a.Status != "awaiting_confirmation" {
		t.Errorf("while it waits, the client gets %+v", a)
	}
	g.decides(card, "approve_once", http.StatusOK)
	done := g.calls("wait_for_approval", map[string]any{"runId": asked.RunID})
	if done.failed || done.Status != "completed" || !strings.Contains(string(done.Result), "messageId") ||
		len(w.Google.Messages()) != 1 {
		t.Errorf("%+v, %d e-mails", done, len(w.Google.Messages()))
	}
	if a := w.call("GET", "/api/agent/runs/"+asked.RunID, ""); !strings.Contains(string(a.Body), `"name":"My editor"`) {
		t.Errorf("the run does not say who began it: %s", a.Body)
	}
	for _, secret := range []string{g.token, "CANARY-body", "bob@example.com", "My editor"} {
		if strings.Contains(w.Logs.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// TestMCPAlwaysAllow checks that a user who always allows e-mails to bob is still asked about an agent's.
func TestMCPAlwaysAllow(t *testing.T) {
	w := deploy(t)
	w.SetModel(testkit.Wants("gmail_send", bobs))
	r := w.call("POST", "/api/agent/run", `{"prompt":"write bob@example.com about lunch"}`)
	g := w.gives("ana", "My editor")
	g.decides(r.Approvals[0], "approve_and_always_allow_recipient", http.StatusOK)
	if r = w.call("POST", "/api/agent/run", `{"prompt":"write bob@example.com again"}`); r.Status != "completed" {
		t.Fatalf("the user's own: %s", r.Body)
	}
	if a := g.calls("gmail_send", bobs); a.Status != "awaiting_confirmation" || len(w.Google.Messages()) != 2 {
		t.Errorf("the agent's call: %+v, %d e-mails", a, len(w.Google.Messages()))
	}
	if a := g.calls("countersign_run", map[string]any{"prompt": "write bob@example.com"}); len(a.Waiting) != 1 ||
		len(w.Google.Messages()) != 2 {
		t.Errorf("the agent's task: %+v, %d e-mails", a, len(w.Google.Messages()))
	}
}

// TestMCPAgentText has a user continue a conversation that an agent began. The agent's text counts as a
// stranger's, so the always-allow list does not apply to it.
func TestMCPAgentText(t *testing.T) {
	w := deploy(t)
	w.SetModel(testkit.Wants("gmail_send", bobs))
	g := w.gives("ana", "My editor")
	r := w.call("POST", "/api/agent/run", `{"prompt":"write bob@example.com about lunch"}`)
	g.decides(r.Approvals[0], "approve_and_always_allow_recipient", http.StatusOK)
	w.SetModel(testkit.Says("Noted."))
	const link = "https://pay.example/invoice/7781"
	begun := g.calls("countersign_run", map[string]any{"prompt": "Keep this for later: " + link})
	thread := begun.Link[strings.LastIndex(begun.Link, "/")+1:]
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "Hello", "Please see "+link)))
	a := w.call("POST", "/api/agent/run", `{"prompt":"write bob@example.com","threadId":"`+thread+`"}`)
	if a.Status != "awaiting_confirmation" || !strings.Contains(string(a.Body), "your agent “My editor”") ||
		len(w.Google.Messages()) != 1 {
		t.Errorf("what the agent wrote goes out: %s, %d e-mails", a.Body, len(w.Google.Messages()))
	}
	if m := w.call("GET", "/api/agent/threads/"+thread+"/messages", ""); !strings.Contains(string(m.Body),
		`"read":{"origin":"your agent “My editor”"}`) {
		t.Errorf("the conversation does not say whose words they are: %s", m.Body)
	}
}

// TestMCPFromPage uses an MCP client in a page of an allowed origin. The browser may send each header that the client
// sets.
func TestMCPFromPage(t *testing.T) {
	w := deploy(t, "ALLOWED_ORIGINS=https://chat.example")
	g := w.gives("ana", "My page")
	sent := http.Header{}
	client := mcp.NewClient(&mcp.Implementation{Name: "page", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: w.Base + "/mcp",
		DisableStandaloneSSE: true, HTTPClient: &http.Client{Transport: noting{bearing(g.token), sent}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "gmail_send", Arguments: bobs}); err != nil {
		t.Fatal(err)
	}
	asked, err := testkit.Connect(nil, w.Base, "")(t.Context(), "OPTIONS", "/mcp", "", "Origin", "https://chat.example",
		"Access-Control-Request-Method", "POST")
	if err != nil || asked.HTTP != http.StatusNoContent {
		t.Fatalf("%v, %d %s; want asked.HTTP %v", err, asked.HTTP, asked.Body, http.StatusNoContent)
	}
	allowed := strings.Split(asked.Header.Get("Access-Control-Allow-Headers"), ", ")
	sent.Set("Authorization", "")
	sent.Del("Accept") // every page may send it
	for name := range sent {
		if !slices.Contains(allowed, name) {
			t.Errorf("a page may send %v, and its client sends %s", allowed, name)
		}
	}
}

// noting records the headers sent.
type noting struct {
	http.RoundTripper
	sent http.Header
}

func (n noting) RoundTrip(r *http.Request) (*http.Response, error) {
	maps.Copy(n.sent, r.Header)
	return n.RoundTripper.RoundTrip(r)
}

// TestMCPKeyRace sends a call twenty times at once with one key.
func TestMCPKeyRace(t *testing.T) {
	w := deploy(t, testkit.Unlimited...)
	g := w.gives("ana", "My editor")
	runs := make([]string, 20)
	var all sync.WaitGroup
	for i := range runs {
		all.Go(func() {
			res, err := g.session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "gmail_send",
				Arguments: bobs, Meta: mcp.Meta{mcpserver.KeyMeta: "once"}})
			if err == nil {
				b, _ := json.Marshal(res.StructuredContent)
				var a heard
				_ = json.Unmarshal(b, &a)
				runs[i] = a.RunID
			}
		})
	}
	all.Wait()
	if slices.Sort(runs); runs[0] == "" || len(slices.Compact(runs)) != 1 {
		t.Fatalf("one key began %v", runs)
	}
	g.decides(g.card(), "approve_once", http.StatusOK)
	if a := g.calls("gmail_send", bobs, "once"); a.Status != "completed" || len(w.Google.Messages()) != 1 {
		t.Errorf("%+v, %d e-mails", a, len(w.Google.Messages()))
	}
	again := json.RawMessage(`{"subject":"Lunch", "to":["bob@example.com"], "body":"CANARY\u002dbody"}`)
	if a := g.calls("gmail_send", again, "once"); a.Status != "completed" || len(w.Google.Messages()) != 1 {
		t.Errorf("the same arguments as another library writes them: %+v, %d e-mails", a, len(w.Google.Messages()))
	}
	if a := g.calls("gmail_send", testkit.Mail("bob@example.com", "Dinner", "x"), "once"); !a.failed ||
		a.Code != "idempotency_key_reused" {
		t.Errorf("the key with other arguments: %+v", a)
	}
	if a := w.gives("ana", "Another").calls("gmail_send", bobs, "once"); a.Status != "awaiting_confirmation" {
		t.Errorf("another agent's call with the same key: %+v", a)
	}
}

// TestMCPOutcomes has one call rejected and one refused as invalid, and asks about runs that are not the agent's.
func TestMCPOutcomes(t *testing.T) {
	w := deploy(t)
	g, other := w.gives("ana", "My editor"), w.gives("ana", "Another")
	asked := g.calls("gmail_send", bobs)
	g.decides(g.card(), "reject", http.StatusOK)
	which := map[string]any{"runId": asked.RunID}
	if a := g.calls("approval_status", which); !strings.Contains(a.words, "rejected") || len(w.Google.Messages()) != 0 {
		t.Errorf("after a no: %+v", a)
	}
	w.SetModel(testkit.Says("Hello."))
	own := w.ask()
	for _, id := range []string{own.RunID, "abcdefghijklmnopqrstuvwxyz"} {
		if a := g.calls("approval_status", map[string]any{"runId": id}); !a.failed || a.Code != "not_found" {
			t.Errorf("of a run that is not the agent's: %+v", a)
		}
	}
	open := map[string]any{"runId": g.calls("gmail_send", bobs).RunID}
	if a := other.calls("wait_for_approval", open); !a.failed || a.Code != "not_found" { // at once
		t.Errorf("of another agent's run that waits: %+v", a)
	}
	if a := other.calls("wait_for_approval", which); !a.failed || a.Code != "not_found" {
		t.Errorf("of another agent's run: %+v", a)
	}
	for name, args := range map[string]map[string]any{
		"gmail_send":        {"to": []string{"nobody"}, "subject": "s", "body": "b"},
		"approval_status":   {"runId": "x"},
		"wait_for_approval": {"runId": asked.RunID, "seconds": 51},
		"countersign_run":   {"prompt": " "},
	} {
		if a := g.calls(name, args); !a.failed || a.Status != "refused" || a.Field == "" {
			t.Errorf("%s with %v: %+v", name, args, a)
		}
	}
	for name, args := range map[string]string{ // from a program without integers
		"wait_for_approval":    `{"runId":"` + asked.RunID + `","seconds":1.0}`,
		"calendar_events_list": `{"from":"2027-01-04","to":"2027-01-05","timeZone":"UTC","limit":5.0}`,
	} {
		if a := g.calls(name, json.RawMessage(args)); a.Status != "completed" {
			t.Errorf("%s with %s: %+v", name, args, a)
		}
	}
	if a := g.calls("countersign_run", map[string]any{"prompt": "say hello"}); a.failed || a.words != "Hello." {
		t.Errorf("a task: %+v", a)
	}
}

// TestMCPPartialOutcome gives a task that leads to an e-mail and an event. The user approves only the e-mail. The agent
// learns which calls wait, and that something was done.
func TestMCPPartialOutcome(t *testing.T) {
	w := deploy(t)
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "Done."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "gmail_send", Args: bobs},
			{Name: "calendar_event_create", Args: testkit.Event("Lunch", time.Now().Add(time.Hour))}}}
	})
	g := w.gives("ana", "My editor")
	asked := g.calls("countersign_run", map[string]any{"prompt": "write to bob, and note it down"})
	for _, want := range []string{"gmail_send waits", "calendar_event_create waits", asked.Link} {
		if !strings.Contains(asked.words, want) {
			t.Errorf("of two that wait it is told %q, without %q", asked.words, want)
		}
	}
	a := w.call("GET", "/api/agent/approvals/pending", "")
	for _, c := range a.Approvals {
		if c.Tool == "gmail_send" {
			g.decides(c, "approve_once", http.StatusOK)
		}
	}
	left := g.calls("approval_status", map[string]any{"runId": asked.RunID})
	if len(w.Google.Messages()) != 1 || len(left.Waiting) != 1 || strings.Contains(left.words, "gmail_send") ||
		strings.Contains(left.words, "Nothing") || !strings.Contains(left.words, "calendar_event_create waits") {
		t.Errorf("with %d e-mails sent, the client gets %+v", len(w.Google.Messages()), left)
	}
}

// TestTokensOfAgentsElsewhere tries an agent's token at every route of the API, and other tokens at /mcp.
func TestTokensOfAgentsElsewhere(t *testing.T) {
	w := deploy(t)
	g := w.gives("ana", "My editor")
	send := testkit.Connect(nil, w.Base, g.token)
	for _, f := range api.Functions {
		for _, r := range f.Routes {
			if calledWithoutAUser[r.Path] && !strings.HasPrefix(r.Path, "/api/agent/resume") &&
				r.Path != "/api/agent/sweep" && f.Name != api.Notify.Name {
				continue
			}
			path := strings.NewReplacer("{runId}", "abcdefghijklmnop", "{", "", "}", "").Replace(r.Path)
			if a, err := send(t.Context(), r.Method, path, `{}`); err != nil || a.HTTP != http.StatusUnauthorized {
				t.Errorf("%s %s: %v, %d %s; want a.HTTP %v",
					r.Method, r.Path, err, a.HTTP, a.Body, http.StatusUnauthorized)
			}
		}
	}
	id, err := w.SignIn(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	altered := g.token[:len(g.token)-2] + "AA"
	for name, token := range map[string]string{"an ID token": id, "none": "", "a changed one": altered,
		"one of nobody": "cs_agent_Ym9i" + g.token[strings.Index(g.token, "."):],
		"a path":        "cs_agent_Li4vYS9i" + g.token[strings.Index(g.token, "."):]} {
		if a, err := testkit.Connect(nil, w.Base, token)(t.Context(), "POST", "/mcp", list); err != nil ||
			a.HTTP != http.StatusUnauthorized || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s opens /mcp: %v, %d %s", name, err, a.HTTP, a.Body)
		}
	}
	if a := w.call("DELETE", "/api/agent/tokens/"+g.tokenID, ""); a.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
	if a, err := send(t.Context(), "POST", "/mcp", list); err != nil || a.HTTP != http.StatusUnauthorized {
		t.Errorf("after it was taken back: %v, %d %s", err, a.HTTP, a.Body)
	}
}

// TestMCPTokenOfDisabledUser disables the user. Their agents can start nothing more.
func TestMCPTokenOfDisabledUser(t *testing.T) {
	w := deploy(t)
	g := w.gives("ana", "My editor")
	g.calls("gmail_send", bobs)
	if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", true); err != nil {
		t.Fatal(err)
	}
	a, err := testkit.Connect(nil, w.Base, g.token)(t.Context(), "POST", "/mcp", `{}`)
	if err != nil || a.HTTP != http.StatusUnauthorized {
		t.Errorf("%v, %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusUnauthorized)
	}
}

// TestNamesOfAgents creates tokens under names that a card could not show unchanged.
func TestNamesOfAgents(t *testing.T) {
	w := deploy(t)
	w.gives("ana", "My editor")
	w.gives("bob", "My editor") // another user's
	for _, name := range []string{``, ` `, `a\nb`, `a\u202eb`, ` a`, `my EDITOR`, strings.Repeat("x", 61)} {
		if a := w.call("POST", "/api/agent/tokens", `{"name":"`+name+`"}`); a.HTTP != http.StatusBadRequest ||
			a.Error.Field != "name" {
			t.Errorf("%q: %d %s; want a.HTTP %v, a.Error.Field “name”", name, a.HTTP, a.Body, http.StatusBadRequest)
		}
	}
	var list struct {
		Tokens []struct{ Name, LastUsedAt string }
	}
	a := w.call("GET", "/api/agent/tokens", "")
	err := json.Unmarshal(a.Body, &list)
	if err != nil || len(list.Tokens) != 1 || list.Tokens[0].Name != "My editor" ||
		list.Tokens[0].LastUsedAt == "" || strings.Contains(string(a.Body), "hash") {
		t.Errorf("the list is %s, %v", a.Body, err)
	}
}
