package gmail_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const (
	mayModify  = "https://www.googleapis.com/auth/gmail.modify"
	listLabels = "gmail.labels.list"
	getMessage = "gmail.messages.get"
	modify     = "gmail.messages.modify"
)

// filing is a change as the server has read it.
func filing(subject string) map[string]any {
	return map[string]any{"account": map[string]any{"id": "a1", "name": "me@example.com"},
		"add":    []any{map[string]any{"id": "Label_1", "name": "Invoices"}},
		"remove": []any{map[string]any{"id": "INBOX", "name": "INBOX"}},
		"mails": []any{map[string]any{"id": "18c1", "from": "eve@example.com", "subject": subject,
			"date": "2026-11-21T12:00:00Z", "labels": []any{"INBOX"}}}}
}

// modifying is the tool with an e-mail that is archived under a label.
var modifying = toolstest.Suite{
	Tool: gmail.NewModify(nil, gmail.Options{}),
	Args: map[string]any{"messageIds": []any{"18c1"}, "addLabels": []any{"Invoices"}, "removeLabels": []any{"INBOX"}},
	Other: map[string]map[string]any{"messageIds": {"messageIds": []any{"18c2"}},
		"threadId":  {"messageIds": nil, "threadId": "18c2"},
		"addLabels": {"addLabels": []any{"Taxes"}}, "removeLabels": {"removeLabels": []any{"UNREAD"}},
		"filing": {"filing": filing("Lunch")}},
	Free:   []string{"filing"},
	Labels: []string{"Change", "Conversation", "E-mails"},
	Previews: map[string]toolstest.Shown{
		"before the mails are read": {Want: []string{"Change the labels of one e-mail",
			"Change: Add the label “Invoices”\nArchive (remove from the inbox)", "E-mails: 18c1"}},
		"a mail": {Change: map[string]any{"filing": filing("Your invoice")},
			Want: []string{"E-mails: “Your invoice”, from eve@example.com, 2026-11-21T12:00:00Z"}},
		"a star, unread": {Change: map[string]any{"addLabels": []any{"STARRED", "UNREAD"}, "removeLabels": nil},
			Want: []string{"Change: Add a star\nMark as unread"}},
		"a conversation": {Change: map[string]any{"messageIds": nil, "threadId": "18c2",
			"removeLabels": []any{"unread"}},
			Want: []string{"Change the labels of a conversation", "Mark as read", "Conversation: 18c2"}},
	},
	Refused: map[string]toolstest.Refused{
		"neither":        {Change: map[string]any{"messageIds": nil}, Field: "messageIds"},
		"both":           {Change: map[string]any{"threadId": "18c2"}, Field: "messageIds"},
		"no ID":          {Change: map[string]any{"messageIds": []any{"../drafts"}}, Field: "messageIds"},
		"no thread":      {Change: map[string]any{"messageIds": nil, "threadId": "x"}, Field: "threadId"},
		"no change":      {Change: map[string]any{"addLabels": nil, "removeLabels": nil}, Field: "addLabels"},
		"both ways":      {Change: map[string]any{"addLabels": []any{"inbox"}}, Field: "removeLabels"},
		"the trash":      {Change: map[string]any{"addLabels": []any{"Trash"}}, Field: "addLabels"},
		"out of spam":    {Change: map[string]any{"removeLabels": []any{" SPAM "}}, Field: "removeLabels"},
		"a blank name":   {Change: map[string]any{"addLabels": []any{"\u2028"}}, Field: "addLabels"},
		"a line break":   {Change: map[string]any{"addLabels": []any{"a\nb"}}, Field: "addLabels"},
		"too long":       {Change: map[string]any{"addLabels": []any{strings.Repeat("é", 120)}}, Field: "addLabels"},
		"too many mails": {Change: map[string]any{"messageIds": mailIDs(gmail.MaxModified + 1)}, Field: "messageIds"},
	},
	Unsaid: []string{"../drafts"},
}

func mailIDs(n int) (ids []any) {
	for range n {
		ids = append(ids, "18c1")
	}
	return ids
}

func TestModifySuite(t *testing.T) {
	modifying.Run(t)
	if s := modifying.Tool.Spec; s.Approval != tool.Required || strings.Join(s.Scopes, " ") != mayModify {
		t.Errorf("%+v; want s.Approval %v, strings.Join(s.Scopes, \" \") %v", s, tool.Required, mayModify)
	}
}

// filed is a Gmail with an e-mail and a label of the user's own, and the tool that changes labels.
type filed struct {
	*env
	label string
}

func newFiled(t *testing.T, args map[string]any) filed {
	t.Helper()
	g := toolstest.OpenGoogle(t, mayModify)
	label, err := g.AddLabel("me@example.com", "Invoices")
	if err != nil {
		t.Fatal(err)
	}
	w := filed{&env{g, toolstest.Provider{Break: g.Break, Calls: g.Calls,
		Call: tool.Call{UID: toolstest.GoogleUser, ActionID: "action_0123456789"},
		Tool: gmail.NewModify(fakegoogle.Accounts{},
			gmail.Options{Endpoint: g.URL + "/", Timeout: await.Most})}}, label}
	w.receive(t, "Your invoice")
	w.Effects = func() (n int) {
		if strings.Join(w.labels(), " ") != "INBOX UNREAD" {
			n++
		}
		return n
	}
	w.completes(t, args)
	return w
}

// receive adds an e-mail of the conversation.
func (w filed) receive(t *testing.T, subject string) {
	t.Helper()
	if err := w.Receive("me@example.com", []byte("From: Eve <eve@example.com>\r\nSubject: "+subject+
		"\r\nMessage-ID: <1@example.com>\r\nReferences: <1@example.com>\r\n\r\nPay\r\n")); err != nil {
		t.Fatal(err)
	}
}

func (w filed) labels() []string { return w.Labels("me@example.com", w.Newest("me@example.com")) }

// completes sets the call's arguments, with the newest e-mail unless they name a conversation.
func (w filed) completes(t *testing.T, args map[string]any) {
	t.Helper()
	if args["threadId"] == nil {
		args["messageIds"] = []string{w.Newest("me@example.com")}
	}
	raw, err := json.Marshal(args)
	if err == nil {
		w.Call.Args, err = w.Tool.Normalize(raw)
	}
	if err == nil {
		w.Call.Args, err = w.Tool.Complete(t.Context(), w.Call)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func archiving() map[string]any {
	return map[string]any{"addLabels": []string{"invoices"}, "removeLabels": []string{"INBOX", "UNREAD"}}
}

func TestModifyReconcileEachFault(t *testing.T) {
	toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &newFiled(t, archiving()).Provider },
		Broken: gmail.NewModify(toolstest.Panicking{}, gmail.Options{}),
		Acts:   []string{listLabels, getMessage, modify}, Cases: map[string]toolstest.Settled{
			"nothing breaks": sent,
			"503 before":     sent.After(modify, status(503, "")),
			"429":            sent.After(modify, status(429, "rateLimitExceeded")),
			"500 after":      sent.After(modify, fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500}),
			"reset after":    sent.After(modify, kind(fakegoogle.ResetAfter)),
			"hangs after":    sent.After(modify, kind(fakegoogle.HangAfter)),
			"empty 200":      sent.After(modify, kind(fakegoogle.EmptyAfter)),
			"another answer": sent.After(modify, kind(fakegoogle.OddAfter)),
			"400":            unsent(fault.Tool, "provider_refused").After(modify, status(400, "invalid")),
			"403 scope":      unsent(fault.Auth, fault.CodeScope).After(modify, status(403, "insufficientPermissions")),
			"401":            unsent(fault.Auth, fault.CodeReauth).After(listLabels, status(401, "authError")),
			"lost, then no access": toolstest.Settled{Want: toolstest.Review, Effects: 1, Class: fault.Tool,
				Code: "provider_failed"}.After(modify, kind(fakegoogle.ResetAfter)).
				After(getMessage, fakegoogle.Fault{}, status(401, "authError")),
		}}.Run(t)
}

// TestModifyShownMails has an e-mail arrive in a conversation after its card.
func TestModifyShownMails(t *testing.T) {
	w := newFiled(t, archiving())
	first := w.Newest("me@example.com")
	w.completes(t, map[string]any{"threadId": first, "addLabels": []string{"Invoices"},
		"removeLabels": []string{"INBOX"}})
	w.receive(t, "A reminder")
	if end, _, err := w.CarryOut(t); end != toolstest.Completed {
		t.Fatal(end, err)
	}
	if got := strings.Join(w.Labels("me@example.com", first), " "); got != w.label+" UNREAD" {
		t.Errorf("the shown mail has %s", got)
	}
	if got := strings.Join(w.labels(), " "); got != "INBOX UNREAD" {
		t.Errorf("the mail that arrived later has %s", got)
	}
	if end, _, err := w.CarryOut(t); end != toolstest.Completed || w.Calls(modify) != 1 {
		t.Errorf("a second call: %v, %v; Gmail was asked %d times to change labels", end, err, w.Calls(modify))
	}
}

// TestModifyChangedMail has the user change labels after the card, or edit the call.
func TestModifyChangedMail(t *testing.T) {
	w := newFiled(t, map[string]any{"addLabels": []string{"STARRED"}, "removeLabels": []string{"INBOX"}})
	shown := w.Call.Args
	w.completes(t, map[string]any{"removeLabels": []string{"INBOX"}})
	if end, _, err := w.CarryOut(t); end != toolstest.Completed {
		t.Fatal(end, err)
	}
	edited, err := w.Tool.Revise(shown, json.RawMessage(strings.Replace(string(shown), `["INBOX"]`, `["UNREAD"]`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]json.RawMessage{"archived meanwhile": shown, "edited": edited} {
		w.Call.Args = args
		_, err := w.Tool.Execute(t.Context(), w.Call)
		if now := tool.AskedAnew(err); !fault.Is(err, fault.Policy, fault.CodeStaleView) ||
			!strings.Contains(string(now), `"subject":"Your invoice"`) {
			t.Errorf("%s: %v, and the user is asked about %s", name, err, now)
		}
	}
	if got := strings.Join(w.labels(), " "); got != "UNREAD" {
		t.Errorf("the mail has %s", got)
	}
}

// TestModifyAlwaysAllow compares the calls that one permission covers.
func TestModifyAlwaysAllow(t *testing.T) {
	key := func(change func(f map[string]any)) string {
		f := filing("Your invoice")
		change(f)
		r, err := modifying.Tool.Rule(t.Context(), tool.Call{Args: modifying.With(map[string]any{"filing": f})})
		if err != nil || r.Mode != tool.RuleAsk || r.Always == nil {
			t.Fatalf("%+v, %v; want r.Mode %v, r.Always set", r, err, tool.RuleAsk)
		}
		return r.Always.Key
	}
	same := key(func(map[string]any) {})
	for name, tt := range map[string]struct {
		change func(f map[string]any)
		same   bool
	}{
		"another mail": {func(f map[string]any) { f["mails"] = filing("Lunch")["mails"] }, true},
		"another account": {func(f map[string]any) {
			f["account"] = map[string]any{"id": "a2", "name": "me@example.com"}
		}, false},
		"one label fewer": {func(f map[string]any) { delete(f, "add") }, false},
		"renamed": {func(f map[string]any) { f["add"] = []any{map[string]any{"id": "Label_1", "name": "X"}} },
			false},
		"the other way": {func(f map[string]any) { f["add"], f["remove"] = f["remove"], f["add"] },
			false},
	} {
		if got := key(tt.change) == same; got != tt.same {
			t.Errorf("%s: covered %t; want %t", name, got, tt.same)
		}
	}
	if r, err := modifying.Tool.Rule(t.Context(), tool.Call{Args: modifying.With(nil)}); err != nil || r.Always != nil {
		t.Errorf("a call whose labels were not read can be always allowed: %+v, %v", r, err)
	}
}

func TestModifyUnknownLabels(t *testing.T) {
	w := newFiled(t, archiving())
	raw := json.RawMessage(`{"addLabels":["CANARY"],"messageIds":["` + w.Newest("me@example.com") + `"]}`)
	_, err := w.Tool.Complete(t.Context(), tool.Call{UID: toolstest.GoogleUser, Args: raw})
	if f := fault.As(err); f.Field != "addLabels" || strings.Contains(f.Message, "CANARY") {
		t.Errorf("%v", err)
	}
}
