package infra_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/agenttoken"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

const nobody = "aaaaaaaaaaaaaaaaaaaaaaaaaa" // an ID that does not exist

// TestDescribedAnswers calls every described operation. It checks requests and responses against the description, and
// checks that every described response occurs or is listed in unprovoked.
func TestDescribedAnswers(t *testing.T) {
	realpart.Long(t, "it asks for each described answer of the API")
	d := newDescribed(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *described)
	}{
		{"runs", runs}, {"taking back", takingBack}, {"clients", clients},
		{"approvals", approvals}, {"chat", chats}, {"turns", turns},
		{"actions", actions},
		{"records", ownRecords}, {"devices", onDevices}, {"passkeys", onPasskeys},
		{"reminders", reminders},
		{"memory", notes}, {"files", ofFiles},
		{"connections", connections}, {"connections of GitHub", onGitHub}, {"hosts", onHosts}, {"plans", plans},
		{"internal", internal}, {"configuration", configuration}, {"refused by all", refusedByAll},
		{"bodies", refusedBodies}, {"parameters", parameters}, {"limits", atLimits}, {"slow", slowBodies},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, d) })
	}
	for id, op := range d.ops {
		for status := range op.Responses.Map() {
			answered, excuse := d.seen[id][number(t, status)], unprovoked[id+" "+status]
			if answered == (excuse != "") {
				t.Errorf("%s %s: answered is %t, and the reason why it is not provoked is %q", id, status, answered,
					excuse)
			}
		}
	}
	for _, stream := range []string{"StreamLine", "ChatLine"} {
		for _, kind := range d.doc.Components.Schemas[stream].Value.OneOf {
			name := stream + " " + kind.Value.Properties["type"].Value.Const.(string)
			if silence := strings.HasSuffix(name, " ping"); d.lines[name] == silence {
				t.Errorf("%s: answered is %t", name, d.lines[name]) // a ping comes only after seconds of silence
			}
		}
	}
	for key := range unprovoked {
		if id, status, _ := strings.Cut(key, " "); d.ops[id].Operation == nil ||
			d.ops[id].Responses.Value(status) == nil {
			t.Errorf("%s is not described", key)
		}
	}
}

// unprovoked lists the statuses that this test does not provoke, with the reasons.
var unprovoked = map[string]string{
	"refinePlan 200":             "it is answered 202, unless the client waits (shared/api)",
	"addPasskey 429":             "the challenge is refused before",
	"run 202":                    "a run of several steps whose client does not wait for it (shared/api)",
	"sweep 500":                  "what fails in a sweep is answered with 503; a fault of ours would do it",
	"sweep 400":                  "the connection breaks before the body is there, so that nobody hears it",
	"resume 400":                 "the connection breaks before the body is there, so that nobody hears it",
	"resumeTerminal 400":         "as with resume",
	"resumePlan 400":             "as with resume",
	"tell 400":                   "as with resume",
	"tell 500":                   "it asks nothing where VAPID_KEY is not set (shared/app)",
	"tell 503":                   "likewise",
	"health 500":                 "it asks nothing; a fault of ours alone would do it",
	"attachTerminal 101":         "shared/terminal/attach and shared/app open the sockets",
	"attachTerminal 404":         "that is where the operator has switched terminals off",
	"attachTerminal 500":         "it asks nothing before the socket is open; a fault of ours would do it",
	"attachTerminal 503":         "it asks nothing before the socket is open; an instance at its limits would do it",
	"receiptKeys 500":            "it asks the key that signs alone; a fault of ours would do it",
	"receiptKeys 503":            "Cloud KMS does not answer (shared/receipts/receiptkey)",
	"protectedResource 404":      "where MCP_ISSUER is not set (shared/app)",
	"protectedResourceOfMCP 404": "likewise",
	"configuration 500":          "it asks the issuer alone; a fault of ours would do it",
}

// run holds the used fields of a response about a run.
type run struct {
	RunID, ThreadID, Status string
	Approvals               []testkit.Approval
}

// asked starts a run of the user and returns it.
func (s *stand) asked(t *testing.T, uid string) (r run) {
	t.Helper()
	s.want(t, 200, ask{op: "run", uid: uid, body: `{"prompt":"Please."}`}).into(t, &r)
	return r
}

// waits starts a run of the user that waits for the approval of an e-mail.
func (s *stand) waits(t *testing.T, uid string) run {
	t.Helper()
	s.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "Lunch", "At noon?")))
	r := s.asked(t, uid)
	if len(r.Approvals) != 1 {
		t.Fatalf("no pending approval: %v", r)
	}
	return r
}

func (s *stand) resolve(t *testing.T, status int, uid string, a testkit.Approval, decision string) answer {
	t.Helper()
	return s.want(t, status,
		ask{op: "resolveApproval", uid: uid,
			body: inJSON(t, map[string]string{"approvalId": a.ApprovalID, "decision": decision,
				"argsHash": a.ArgsHash})})
}

// deliver delivers the queue's messages, so decided actions run.
func (s *stand) deliver(t *testing.T) {
	t.Helper()
	q, ok := s.App.Queue.(*embedded.Queue)
	if !ok {
		t.Fatal("the queue delivers by itself")
	}
	if _, err := q.Deliver(t.Context(), s.Push(s.Base)); err != nil {
		t.Fatal(err)
	}
}

// withFile sends a file with a prompt, and downloads it.
func withFile(t *testing.T, s *stand) {
	t.Helper()
	var r struct{ RunID string }
	s.want(t, 200, ask{op: "run", body: `{"prompt":"Read it.","attachments":[{"name":"a.txt","data":"YQ=="}]}`}).into(t, &r)
	s.want(t, 200, ask{op: "getAttachment", params: []string{r.RunID, "1"}})
	s.want(t, 404, ask{op: "getAttachment", params: []string{r.RunID, "2"}})
}

func runs(t *testing.T, d *described) {
	s := d.open(t, nil, "MAX_OPEN_APPROVALS=1")
	r := s.asked(t, "ada")
	s.want(t, 200, ask{op: "getRun", params: []string{r.RunID}})
	s.want(t, 200, ask{op: "getReceipt", params: []string{r.RunID}})
	withFile(t, s)
	s.want(t, 200, ask{op: "receiptKeys"})
	s.want(t, 200, ask{op: "agents"})
	s.want(t, 200, ask{op: "run", body: `{"prompt":"Please.","agent":"assistant"}`})
	for name, status := range map[string]int{"nobody": 404, "page": 404, "No Name": 400, "": 400} {
		s.want(t, status, ask{op: "run", body: inJSON(t, map[string]string{"prompt": "Please.", "agent": name})})
		s.want(t, status, ask{op: "runStream", body: inJSON(t, map[string]string{"prompt": "x", "agent": name})})
	}
	s.want(t, 200, ask{op: "runEvents", params: []string{r.RunID}})
	s.want(t, 200, ask{op: "runEvents", params: []string{r.RunID}, query: "after=2"})
	s.want(t, 200, ask{op: "cancelRun", params: []string{r.RunID}})
	for _, id := range []string{"getRun", "getReceipt", "runEvents", "cancelRun"} {
		s.want(t, 404, ask{op: id, params: []string{r.RunID}, uid: "eve"})
	}
	narrow := d.open(t, nil, "FUNCTION_CONCURRENCY=4")
	open := []string{narrow.waits(t, "ada").RunID}
	if _, err := testkit.Stream(t.Context(), direct, narrow.Base, narrow.signIn(t, "ada"), "GET",
		d.ops["runEvents"].at(open...), nil, func(testkit.Line) bool {
			narrow.want(t, 429, ask{op: "runEvents", params: open})
			narrow.want(t, 429, ask{op: "actionOutput", params: append(open, nobody)})
			narrow.want(t, 429, ask{op: "resumeUI", params: []string{"chat"}})
			return false
		}); err != nil {
		t.Fatal(err)
	}
	for prefer, applied := range map[string]string{"wait=7": "wait=7", "wait=-1": "wait=0", "wait=51": "wait=50",
		"wait=x": "", "respond-async": ""} {
		a := s.want(t, 200, ask{op: "run", body: `{"prompt":"Hello."}`, uid: "pat", header: []string{"Prefer", prefer}})
		if got := a.header.Get("Preference-Applied"); got != applied {
			t.Errorf("of %q is applied %q", prefer, got)
		}
	}
	key := []string{"Idempotency-Key", "once"}
	for _, id := range []string{"run", "runStream"} {
		s.want(t, 200, ask{op: id, body: `{"prompt":"One.","threadId":null}`, header: key, uid: id})
		s.want(t, 409, ask{op: id, body: `{"prompt":"Another."}`, header: key, uid: id})
		s.want(t, 200, ask{op: id, body: inJSON(t, map[string]string{"prompt": "More.", "threadId": r.ThreadID})})
		s.want(t, 404, ask{op: id, body: inJSON(t, map[string]string{"prompt": "More.", "threadId": nobody})})
	}
	waiting := s.waits(t, "ada")
	for _, id := range []string{"run", "runStream"} {
		if a := s.want(t, 429, ask{op: id, body: `{"prompt":"More."}`}); a.header.Get("Retry-After") != "60" {
			t.Errorf("%s: one should wait for %q seconds", id, a.header.Get("Retry-After"))
		}
	}
	s.want(t, 429, ask{op: "callAction", params: []string{"cart.add"}, body: `{"id":"mug"}`})
	s.chatsByUI(t)
	s.chatsByAGUI(t)
	s.want(t, 200, ask{op: "getRun", params: []string{waiting.RunID}})
	s.want(t, 200, ask{op: "cancelRun", params: []string{waiting.RunID}})
	s.want(t, 200, ask{op: "runStream", uid: "bea", body: `{"prompt":"Please."}`}) // its result waits for an approval
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "calendar_event_create", Args: map[string]any{}}}}
	})
	// a run that fails, with refused actions
	s.want(t, 200, ask{op: "runStream", uid: "cy", body: `{"prompt":"Please."}`})
}

// takingBack undoes the creation of an event, and tries to undo an e-mail, which is impossible.
func takingBack(t *testing.T, d *described) {
	s := d.open(t, nil, "MAX_OPEN_APPROVALS=1")
	s.SetModel(testkit.Wants("calendar_event_create", testkit.Event("Lunch", time.Now().AddDate(0, 1, 0))))
	event := s.asked(t, "ada")
	of := func(r run, status int) answer {
		return s.want(t, status, ask{op: "compensateAction", params: []string{r.RunID},
			body: inJSON(t, map[string]string{"actionId": r.Approvals[0].ActionID})})
	}
	of(event, 409)
	s.resolve(t, 200, "ada", event.Approvals[0], "approve_once")
	s.deliver(t)
	s.want(t, 200, ask{op: "getRun", params: []string{event.RunID}})
	mail := s.waits(t, "ada")
	of(mail, 409)
	of(event, 429)
	s.want(t, 200, ask{op: "cancelRun", params: []string{mail.RunID}})
	var r run
	of(event, 200).into(t, &r)
	s.resolve(t, 200, "ada", r.Approvals[0], "approve_once")
	s.deliver(t)
	of(event, 200)
	s.want(t, 200, ask{op: "getRun", params: []string{event.RunID}})
	s.want(t, 200, ask{op: "getReceipt", params: []string{r.RunID}})
	s.want(t, 404, ask{op: "compensateAction", params: []string{event.RunID}, uid: "eve",
		body: inJSON(t, map[string]string{"actionId": event.Approvals[0].ActionID})})
	s.want(t, 400, ask{op: "compensateAction", params: []string{event.RunID}, body: `{}`})
}

// chatsByUI sends requests as the AI SDK does, and answers the approval requests.
func (s *stand) chatsByUI(t *testing.T) {
	says := func(id, words string) string {
		return inJSON(t, map[string]any{"id": "chat", "messages": []any{map[string]any{"id": id, "role": "user",
			"parts": []any{map[string]string{"type": "text", "text": words}}}}})
	}
	resume := ask{op: "resumeUI", params: []string{"chat"}, uid: "ui"}
	s.want(t, 204, resume)
	s.want(t, 200, ask{op: "chatUI", uid: "ui", body: says("m1", "Please.")})
	if a := s.want(t, 200, resume); !strings.Contains(a.body, "tool-approval-request") {
		t.Errorf("it is resumed with %s", a.body)
	}
	var card struct {
		Approvals []struct{ ApprovalID, ArgsHash string }
	}
	s.want(t, 200, ask{op: "pendingApprovals", uid: "ui"}).into(t, &card)
	id := card.Approvals[0].ApprovalID
	bound := id + "~" + card.Approvals[0].ArgsHash
	s.want(t, 409, ask{op: "chatUI", uid: "ui", body: answersByUI(t, id+"~another")})
	s.want(t, 404, ask{op: "chatUI", uid: "eve", body: answersByUI(t, bound)})
	s.want(t, 200, ask{op: "chatUI", uid: "ui", body: answersByUI(t, bound)})
	s.want(t, 429, ask{op: "chatUI", body: says("m1", "More.")})
	s.want(t, 400, ask{op: "chatUI", body: `{"id":"chat","messages":[]}`})
}

// chatsByAGUI sends requests as an AG-UI client does, and answers the approval requests.
func (s *stand) chatsByAGUI(t *testing.T) {
	of := func(uid, runID string, more map[string]any) ask {
		in := map[string]any{"threadId": "agui", "runId": runID, "messages": []any{}}
		maps.Copy(in, more)
		return ask{op: "runAGUI", uid: uid, body: inJSON(t, in)}
	}
	says := func(words string) map[string]any {
		return map[string]any{"messages": []any{map[string]string{"id": "m", "role": "user", "content": words}}}
	}
	s.want(t, 200, of("agui", "r0", nil))
	s.want(t, 200, of("agui", "r1", says("Please.")))
	s.want(t, 409, of("agui", "r1", says("Something else.")))
	var card struct {
		Approvals []struct{ ApprovalID, ArgsHash string }
	}
	s.want(t, 200, ask{op: "pendingApprovals", uid: "agui"}).into(t, &card)
	no := func(hash string) map[string]any {
		return map[string]any{"resume": []any{map[string]any{"interruptId": card.Approvals[0].ApprovalID,
			"status": "resolved", "payload": map[string]string{"decision": "reject", "argsHash": hash}}}}
	}
	if a := s.want(t, 200, of("agui", "r2", no("another"))); !strings.Contains(a.body, "countersign.refused") {
		t.Errorf("a no to something else is answered %s", a.body)
	}
	s.want(t, 404, of("eve", "r2", no(card.Approvals[0].ArgsHash)))
	s.want(t, 200, of("agui", "r2", no(card.Approvals[0].ArgsHash)))
	s.want(t, 429, of("", "r1", says("More.")))
	s.want(t, 400, of("agui", "", nil))
}

// answersByUI returns the body that rejects an approval, with the AI SDK's ID for it.
func answersByUI(t *testing.T, id string) string {
	return inJSON(t, map[string]any{"id": "chat", "messages": []any{map[string]any{"id": "a", "role": "assistant",
		"parts": []any{map[string]any{"type": "dynamic-tool", "state": "approval-responded",
			"approval": map[string]any{"id": id, "approved": false}}}}}})
}

// clients executes calls of a stored run whose tool exists only on the client.
func clients(t *testing.T, d *described) {
	s := d.open(t, nil)
	s.App.API.Loop.Agents["assistant"].Tools = nil // no tools of the server
	scan, err := tool.Remote("scan", "Scans a page.", json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	s.App.API.Loop.Tools["scan"] = scan
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "scan", Args: map[string]any{"page": 1}}}}
	})
	r := s.asked(t, "ada")
	var waiting struct{ Calls []struct{ CallID string } }
	s.want(t, 200, ask{op: "getRun", params: []string{r.RunID}}).into(t, &waiting)
	of := func(result string) ask {
		return ask{op: "answerCalls", params: []string{r.RunID}, body: inJSON(t,
			map[string]any{"results": []any{map[string]string{"callId": waiting.Calls[0].CallID, "result": result}}})}
	}
	s.want(t, 200, of(`{"text":"one"}`))
	s.want(t, 200, of(`{"text":"one"}`))
	s.want(t, 409, of(`{"text":"two"}`))
	stranger := of("three")
	stranger.uid = "eve"
	s.want(t, 404, stranger)
	s.want(t, 200, ask{op: "cancelRun", params: []string{r.RunID}})
	printing(t, s)
	late := ask{op: "answerCalls", params: []string{r.RunID},
		body: inJSON(t, map[string]any{"results": []any{map[string]string{"callId": nobody}}})}
	s.want(t, 410, late)
	leavesToPage(t, s)
}

// leavesToPage delegates a call of a page's tool to the page's AG-UI client, which answers it.
func leavesToPage(t *testing.T, s *stand) {
	s.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "Painted."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "paint"}}}
	})
	said := map[string]string{"id": "m", "role": "user", "content": "Paint it."}
	of := func(runID, tool string, messages ...any) ask {
		return ask{op: "runAGUI", body: inJSON(t, map[string]any{"threadId": "page", "runId": runID,
			"protocolVersion": "1.0", "messages": messages,
			"tools": []any{map[string]any{"name": tool, "description": "Paints the page."}}})}
	}
	s.want(t, 400, of("r1", "scan", said)) // this tool belongs to the server
	told := s.want(t, 200, of("r1", "paint", said)).body
	_, ids, left := strings.Cut(told, `"pendingToolCallIds":["`)
	id, _, _ := strings.Cut(ids, `"`)
	told = s.want(t, 200, of("r2", "paint", said,
		map[string]string{"id": "n", "role": "tool", "toolCallId": id, "content": "done"})).body
	if !left || strings.Contains(told, "pendingToolCallIds") {
		t.Errorf("%s was delegated to the page, and then the request was %s", id, told)
	}
}

// pngHeader is the beginning of a PNG picture.
const pngHeader = "\x89PNG\r\n\x1a\n"

// printing follows a run whose tool prints output.
func printing(t *testing.T, s *stand) {
	type none struct{}
	s.App.API.Loop.Tools["print"] = tool.Define(tool.Def[none, none]{Name: "print", Description: "Prints.",
		Execute: func(_ context.Context, c tool.Call, _ none) (none, error) {
			c.Attach([]byte(pngHeader))
			_, err := io.WriteString(c.Output, "one\x1b[0m\ntwo\n")
			return none{}, err
		}})
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Thought: "It prints.", Calls: []fakegemini.Call{{Name: "print", Args: map[string]any{}}}}
	})
	s.want(t, 200, ask{op: "runStream", body: `{"prompt":"Print.","thoughts":true}`})
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Files: []fakegemini.File{{Type: "image/png", Data: []byte(pngHeader)}}}
	})
	s.want(t, 200, ask{op: "runStream", body: `{"prompt":"Paint."}`})
	s.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Thought: "It prints.", Calls: []fakegemini.Call{{Name: "print", Args: map[string]any{}}}}
	})
	s.App.API.Loop.Tools["print"] = tool.Define(tool.Def[none, none]{Name: "print", Description: "Prints.",
		SideEffect: true, Approval: tool.NotRequired, KeepsOutput: true,
		Preview: func(none) tool.Preview { return tool.Preview{Title: "Print"} },
		Execute: func(_ context.Context, c tool.Call, _ none) (none, error) {
			_, err := io.WriteString(c.Output, "one\x1b[0m\xfftwo\n")
			return none{}, err
		}})
	s.want(t, 200, ask{op: "runStream", body: `{"prompt":"Print."}`})
	var r struct {
		RunID   string
		Actions []struct{ ActionID string }
	}
	s.want(t, 200, ask{op: "run", body: `{"prompt":"Print."}`}).into(t, &r)
	for _, query := range []string{"", "output=" + r.Actions[0].ActionID + ":2"} {
		s.want(t, 200, ask{op: "runEvents", params: []string{r.RunID}, query: query})
	}
	s.want(t, 400, ask{op: "runEvents", params: []string{r.RunID}, query: "output=" + r.Actions[0].ActionID})
	of := []string{r.RunID, r.Actions[0].ActionID}
	if got := s.want(t, 200, ask{op: "actionOutput", params: of, query: "from=4"}); got.body != "[0m\xfftwo\n" {
		t.Errorf("output from offset 4: %q", got.body)
	}
	s.want(t, 404, ask{op: "actionOutput", params: of, uid: "eve"})
}

func approvals(t *testing.T, d *described) {
	s := d.open(t, nil)
	for _, decision := range []string{"approve_once", "approve_and_always_allow_recipient", "reject"} {
		r := s.waits(t, decision)
		s.want(t, 200, ask{op: "pendingApprovals", uid: decision})
		s.resolve(t, 404, "eve", r.Approvals[0], decision)
		s.resolve(t, 200, decision, r.Approvals[0], decision)
		s.resolve(t, 200, decision, r.Approvals[0], decision)
		s.resolve(t, 409, decision, r.Approvals[0], "start_new")
		s.deliver(t)
		s.want(t, 200, ask{op: "getRun", uid: decision, params: []string{r.RunID}})
		s.want(t, 200, ask{op: "runEvents", uid: decision, params: []string{r.RunID}})
		s.want(t, 200, ask{op: "audit", uid: decision, query: "runId=" + r.RunID})
	}
	r := s.waits(t, "eda")
	edited := map[string]any{"approvalId": r.Approvals[0].ApprovalID, "decision": "approve_with_edits",
		"argsHash":   r.Approvals[0].ArgsHash,
		"editedArgs": testkit.Mail("bob@example.com", "Dinner", "At eight?"), "comment": "Later."}
	s.want(t, 200, ask{op: "resolveApproval", uid: "eda", body: inJSON(t, edited)})
	late := s.waits(t, "lea")
	s.shift.Add(int64(2 * time.Minute))
	s.resolve(t, 410, "lea", late.Approvals[0], "approve_once")
	s.want(t, 410, ask{op: "chatUI", uid: "lea", body: answersByUI(t, late.Approvals[0].ApprovalID+"~"+
		late.Approvals[0].ArgsHash)})
}

func actions(t *testing.T, d *described) {
	s := d.open(t, func(c *testkit.Cloud) { c.Handle("/shop/", http.HandlerFunc(shop)) })
	key := []string{"Idempotency-Key", "once"}
	s.want(t, 200, ask{op: "callAction", params: []string{"look"}, body: `{"id":"mug"}`})
	s.want(t, 200, ask{op: "callAction", params: []string{"cart.add"}, body: `{"id":"mug"}`, header: key})
	s.want(t, 409, ask{op: "callAction", params: []string{"cart.add"}, body: `{"id":"cup"}`, header: key})
	s.want(t, 404, ask{op: "callAction", params: []string{"cart.remove"}, body: `{"id":"mug"}`})
	s.want(t, 400, ask{op: "callAction", params: []string{"look"}, body: `{}`})
	s.want(t, 501, ask{op: "callAction", params: []string{"later"}, body: `{}`}) // it has no handler
}

// usesAgents creates tokens for agents, calls a tool with one, and revokes it.
func (s *stand) usesAgents(t *testing.T) {
	both := []string{"Accept", "application/json, text/event-stream"}
	s.want(t, 200, ask{op: "mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, header: both})
	s.want(t, 200, ask{op: "protectedResource"})
	s.want(t, 200, ask{op: "protectedResourceOfMCP"})
	s.want(t, 202, ask{op: "mcp", body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header: both})
	var made struct{ TokenID string }
	s.want(t, 200, ask{op: "addToken", body: `{"name":"One more"}`}).into(t, &made)
	s.want(t, 400, ask{op: "addToken", body: `{"name":"One more"}`})
	s.want(t, 200, ask{op: "tokens"})
	s.want(t, 200, ask{op: "deleteToken", params: []string{made.TokenID}})
	s.want(t, 404, ask{op: "deleteToken", params: []string{made.TokenID}})
	for n := range agenttoken.Most - 1 {
		s.want(t, 200, ask{op: "addToken", body: fmt.Sprintf(`{"name":"%d"}`, n)})
	}
	s.want(t, 429, ask{op: "addToken", body: `{"name":"more"}`})
}

// onDevices adds, lists and deletes a browser of the user for notifications, and tries to add one while they are off.
func onDevices(t *testing.T, d *described) {
	s := d.open(t, nil, "VAPID_KEY=yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
	var added struct{ SubscriptionID string }
	s.want(t, 200, ask{op: "addDevice", body: s.ops["addDevice"].example(t)}).into(t, &added)
	s.want(t, 200, ask{op: "devices"})
	s.want(t, 200, ask{op: "deleteDevice", params: []string{added.SubscriptionID}})
	without := d.open(t, nil)
	without.want(t, 409, ask{op: "addDevice", body: s.ops["addDevice"].example(t)})
}

// onPasskeys adds, names, lists and removes a passkey, and decides with one.
func onPasskeys(t *testing.T, d *described) {
	strong, err := testkit.Strong(t.TempDir(), "calls: [{tool: gmail_send}]")
	if err != nil {
		t.Fatal(err)
	}
	s := d.open(t, nil, append(strong, "ALLOWED_ORIGINS="+testkit.Console)...)
	r := s.waits(t, "ada")
	s.resolve(t, 403, "ada", r.Approvals[0], "approve_once")
	s.want(t, 403, ask{op: "addPasskey", body: s.ops["addPasskey"].example(t)})
	s.want(t, 400, ask{op: "addPasskey", body: `{"credential":[]}`})
	var begun struct{ PublicKey struct{ Challenge string } }
	s.want(t, 200, ask{op: "passkeyChallenge"}).into(t, &begun)
	strongly, err := s.FactorToken("ada")
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, ask{op: "addPasskey", bare: true, header: []string{"Authorization", "Bearer " + strongly}, body: `{` +
		`"name":"Key","credential":` + string(testkit.NewKey().Create(begun.PublicKey.Challenge)) + `}`})
	var list struct{ Passkeys []struct{ ID string } }
	s.want(t, 200, ask{op: "passkeys"}).into(t, &list)
	s.want(t, 403, ask{op: "resolveApproval", header: []string{"Origin", testkit.Console}, body: inJSON(t,
		map[string]string{"approvalId": r.Approvals[0].ApprovalID, "decision": "approve_once"})})
	id := list.Passkeys[0].ID
	s.want(t, 200, ask{op: "renamePasskey", params: []string{id}, body: `{"name":"Old"}`})
	s.want(t, 400, ask{op: "renamePasskey", params: []string{id}, body: `{}`})
	s.want(t, 400, ask{op: "removePasskey", params: []string{"a.b"}})
	s.want(t, 200, ask{op: "removePasskey", params: []string{id}})
	s.want(t, 404, ask{op: "removePasskey", params: []string{id}})
	s.want(t, 404, ask{op: "renamePasskey", params: []string{id}, body: `{"name":"Old"}`})
	for range passkey.Most {
		if err := s.Enrol(t.Context(), "ada", testkit.NewKey()); err != nil {
			t.Fatal(err)
		}
	}
	s.want(t, 429, ask{op: "passkeyChallenge"})
	without := d.open(t, nil)
	without.want(t, 200, ask{op: "passkeys"})
	without.want(t, 404, ask{op: "passkeyChallenge"})
	without.want(t, 404, ask{op: "addPasskey", body: s.ops["addPasskey"].example(t)})
}

// notes reads, edits and deletes a note of ada, and sets her preferences.
func notes(t *testing.T, d *described) {
	s := d.open(t, nil)
	const id = "4f1c0a9be2d37685"
	_, err := s.store.Commit(t.Context(), store.Create(document.NotesPath("ada"), nil,
		[]byte(`{"uid":"ada","notes":[{"id":"`+id+`","text":"t",`+
			`"createdAt":"2026-03-02T10:00:00Z","after":"your mail"},`+
			`{"id":"`+nobody+`","text":"other","createdAt":"2026-03-02T10:00:00Z"}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, ask{op: "notes"})
	s.want(t, 200, ask{op: "editNote", params: []string{id}, body: s.ops["editNote"].example(t)})
	s.want(t, 409, ask{op: "editNote", params: []string{id}, body: `{"text":"other"}`})
	s.want(t, 400, ask{op: "editNote", params: []string{id}, body: `{}`})
	s.want(t, 200, ask{op: "setPreferences", body: s.ops["setPreferences"].example(t)})
	s.want(t, 200, ask{op: "notes"})
	s.want(t, 400, ask{op: "setPreferences", body: `{"preferences":{"meetingMinutes":1441}}`})
	s.want(t, 409, ask{op: "setPreferences", body: `{"preferences":{"meetingMinutes":20}}`})
	s.want(t, 200, ask{op: "deleteNote", params: []string{id}})
	s.want(t, 404, ask{op: "deleteNote", params: []string{id}})
	s.want(t, 404, ask{op: "editNote", params: []string{id}, body: s.ops["editNote"].example(t)})
}

// ofFiles uploads files, more files than are allowed, and one file to a server without a bucket.
func ofFiles(t *testing.T, d *described) {
	s := d.open(t, nil)
	var f struct{ FileID string }
	s.want(t, 200, ask{op: "uploadFile", header: formHeader, body: formOf("a")}).into(t, &f)
	s.want(t, 200, ask{op: "run", body: `{"prompt":"read it","attachments":[{"fileId":"` + f.FileID + `"}]}`})
	s.want(t, 400, ask{op: "run", uid: "bob", body: `{"prompt":"read it","attachments":[{"fileId":"` + f.FileID + `"}]}`})
	s.want(t, 400, ask{op: "uploadFile", header: formHeader, body: formOf("PK\x03\x04")})
	for n := range attachment.MaxUnused {
		s.want(t, 200, ask{op: "uploadFile", header: formHeader, body: formOf(fmt.Sprint("file ", n))})
	}
	s.want(t, 429, ask{op: "uploadFile", header: formHeader, body: formOf("one more")})
	s.App.API.Records.Files = nil
	s.want(t, 501, ask{op: "uploadFile", header: formHeader, body: formOf("a")})
	s.want(t, 501, ask{op: "chat", body: `{"message":"read it","attachments":[{"name":"a.txt","data":"YQ=="}]}`})
}

// reminders reads and sets the user's choice about e-mails, also where no e-mails are sent.
func reminders(t *testing.T, d *described) {
	s := d.open(t, nil, "NOTIFY=mail", "NOTIFY_FROM=countersign@example.com", "SMTP_URL=smtp://localhost")
	s.want(t, 200, ask{op: "reminders"})
	s.want(t, 200, ask{op: "setReminders", body: s.ops["setReminders"].example(t)})
	s.want(t, 400, ask{op: "setReminders", body: `{}`})
	without := d.open(t, nil)
	without.want(t, 200, ask{op: "reminders"})
	without.want(t, 409, ask{op: "setReminders", body: s.ops["setReminders"].example(t)})
}

func ownRecords(t *testing.T, d *described) {
	s := d.open(t, nil)
	s.resolve(t, 200, "ada", s.waits(t, "ada").Approvals[0], "approve_and_always_allow_recipient")
	s.deliver(t)
	var allowed struct{ Entries []struct{ ID string } }
	s.want(t, 200, ask{op: "allowlist"}).into(t, &allowed)
	s.want(t, 200, ask{op: "deleteAllowed", params: []string{allowed.Entries[0].ID}})
	s.want(t, 404, ask{op: "deleteAllowed", params: []string{allowed.Entries[0].ID}})
	s.usesAgents(t)
	waiting := s.waits(t, "ada")
	rename := func(title, thread string) ask {
		return ask{op: "renameThread", params: []string{thread}, body: fmt.Sprintf(`{"title":%q}`, title)}
	}
	s.want(t, 200, rename("The demo", waiting.ThreadID))
	s.want(t, 400, rename("The\u202edemo", waiting.ThreadID))
	s.want(t, 404, rename("The demo", nobody))
	s.want(t, 409, ask{op: "deleteThread", params: []string{waiting.ThreadID}})
	s.want(t, 200, ask{op: "cancelRun", params: []string{waiting.RunID}})
	s.want(t, 404, ask{op: "audit", query: "runId=" + nobody})
	for _, list := range []string{"threads", "audit"} {
		var page struct{ NextCursor string }
		s.want(t, 200, ask{op: list, query: "limit=1"}).into(t, &page)
		s.want(t, 200, ask{op: list, query: url.Values{"cursor": {page.NextCursor}}.Encode()})
		s.want(t, 400, ask{op: list, query: "cursor=xyz"})
	}
	s.want(t, 400, ask{op: "pendingApprovals", query: "cursor=xyz"})
	s.want(t, 200, ask{op: "messages", params: []string{waiting.ThreadID}})
	var page struct{ Before int }
	s.want(t, 200, ask{op: "messages", params: []string{waiting.ThreadID}, query: "limit=1"}).into(t, &page)
	s.want(t, 200, ask{op: "messages", params: []string{waiting.ThreadID}, query: "before=2"})
	s.want(t, 404, ask{op: "messages", params: []string{nobody}})
	marked := faulty.Commits(faulty.Each(func(n int) bool { return n > 1 }, faulty.Down))
	s.store.While(marked, func() { s.want(t, 202, ask{op: "deleteThread", params: []string{waiting.ThreadID}}) })
	s.want(t, 404, ask{op: "messages", params: []string{waiting.ThreadID}})
	s.want(t, 404, ask{op: "getRun", params: []string{waiting.RunID}})
	s.want(t, 200, ask{op: "deleteThread", params: []string{waiting.ThreadID}})
	s.want(t, 404, ask{op: "deleteThread", params: []string{waiting.ThreadID}})
}

func internal(t *testing.T, d *described) {
	s := d.open(t, nil)
	r := s.waits(t, "ada")
	s.want(t, 204, ask{op: "resume",
		body: inJSON(t, map[string]any{"message": map[string]any{"data": []byte(`{"runId":"` + r.RunID + `"}`)}})})
	s.want(t, 204, ask{op: "resume", body: "{}"})
	s.want(t, 204, ask{op: "resumeTerminal", body: "{}"})
	s.want(t, 204, ask{op: "resumePlan", body: "{}"})
	s.want(t, 204, ask{op: "tell", body: "{}"})
	s.want(t, 204, ask{op: "notify", params: []string{"crm"}, body: "{}"})
	s.want(t, 413, ask{op: "resume", body: `{"message":{"data":""},"more":"` + strings.Repeat("x", 64<<10) + `"}`})
	s.want(t, 200, ask{op: "sweep"})
	s.want(t, 200, ask{op: "sweep",
		body: inJSON(t, map[string]any{"message": map[string]any{"data": []byte(`{"shard":7}`)}})})
	s.want(t, 200, ask{op: "sweep",
		body: inJSON(t, map[string]any{"message": map[string]any{"data": []byte(`{"shard":64}`)}})})
	s.want(t, 200, ask{op: "sweep", body: "{}"})
	s.want(t, 413, ask{op: "sweep", body: `{"message":{"data":""},"more":"` + strings.Repeat("x", 64<<10) + `"}`})
	s.shift.Add(int64(2 * time.Minute))
	var swept struct{ Due int }
	if s.want(t, 200, ask{op: "sweep"}).into(t, &swept); swept.Due != 1 {
		t.Errorf("the sweep found %d runs", swept.Due)
	}
	s.want(t, 200, ask{op: "health"})
}
