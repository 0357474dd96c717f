package gmail_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const (
	compose  = "https://www.googleapis.com/auth/gmail.compose"
	send     = "https://www.googleapis.com/auth/gmail.send"
	metadata = "https://www.googleapis.com/auth/gmail.metadata"
)

// The operations of Gmail.
const (
	create      = "gmail.drafts.create"
	get         = "gmail.drafts.get"
	sendDraft   = "gmail.drafts.send"
	sendMessage = "gmail.messages.send"
)

// env is a local Gmail with a tool that uses it, and a call.
type env struct {
	*toolstest.Google
	toolstest.Provider
}

func newEnv(t *testing.T, o gmail.Options, scopes ...string) *env {
	t.Helper()
	g := toolstest.OpenGoogle(t, scopes...)
	o.Endpoint, o.Timeout = g.URL+"/", await.Most
	return &env{g, *provider(t, g, gmail.New(fakegoogle.Accounts{}, o))}
}

func provider(t *testing.T, g *toolstest.Google, tl *tool.Tool) *toolstest.Provider {
	t.Helper()
	args, err := tl.Normalize(
		json.RawMessage(`{"to":["a@example.com"],"bcc":["b@example.com"],"subject":"Grüße","body":"Hello\nworld\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	c := tool.Call{UID: toolstest.GoogleUser, RunID: "run", ActionID: "action_0123456789", Args: args}
	return &toolstest.Provider{Tool: tl, Call: c, Break: g.Break, Calls: g.Calls,
		Effects: func() int { return len(g.Messages()) }}
}

// opened returns a fresh provider for [toolstest.Settling].
func opened(o gmail.Options, scopes ...string) func(t *testing.T) *toolstest.Provider {
	return func(t *testing.T) *toolstest.Provider { return &newEnv(t, o, scopes...).Provider }
}

var status, kind = toolstest.Status, toolstest.Kind

// What becomes of an e-mail.
var (
	sent   = toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	lost   = toolstest.Settled{Want: toolstest.Review, Effects: 1, Class: fault.Tool, Code: "provider_failed"}
	unsent = func(class fault.Class, code fault.Code) toolstest.Settled {
		return toolstest.Settled{Want: toolstest.Failed, Class: class, Code: code}
	}
	deleted = toolstest.Settled{Want: toolstest.Review, Class: fault.Tool, Code: "provider_refused"}
)

func TestDraftModeSettles(t *testing.T) {
	toolstest.Settling{Open: opened(gmail.Options{}, compose),
		Broken: gmail.New(toolstest.Panicking{}, gmail.Options{}),
		Acts:   []string{create, get, sendDraft}, Cases: draftCases}.Run(t)
}

// Where sent e-mail may be read, a lost answer is settled.
func TestDraftModeSettlesByReading(t *testing.T) {
	toolstest.Settling{Open: opened(gmail.Options{}, compose, metadata), Found: true,
		Broken: gmail.New(toolstest.Panicking{}, gmail.Options{}),
		Acts:   []string{create, get, sendDraft}, Looks: []string{"gmail.messages.list"},
		Cases: map[string]toolstest.Settled{
			"503 after":   sent.After(sendDraft, kind(fakegoogle.StatusAfter)),
			"reset after": sent.After(sendDraft, kind(fakegoogle.ResetAfter)),
			"cut after":   sent.After(sendDraft, kind(fakegoogle.CutAfter)),
			"a number":    sent.After(sendDraft, kind(fakegoogle.NumberAfter)),
		}}.Run(t)
}

func TestDirectModeSettles(t *testing.T) {
	direct := gmail.Options{Mode: gmail.Direct}
	toolstest.Settling{Open: opened(direct, send), Broken: gmail.New(toolstest.Panicking{}, direct),
		Acts: []string{sendMessage}, Cases: directCases}.Run(t)
}

// draftCases implement reliability §2, the table "How C18-C20 are settled", column "Gmail (compose scope)".
var draftCases = map[string]toolstest.Settled{
	"nothing breaks":        sent,
	"create 503, then well": sent.After(create, status(503, "")),
	"create 429":            sent.After(create, status(429, "rateLimitExceeded")),
	"get reset":             sent.After(get, kind(fakegoogle.ResetBefore)),
	"create answer lost":    sent.After(create, kind(fakegoogle.ResetAfter)),
	"create without an id":  sent.After(create, kind(fakegoogle.OddAfter)),
	"create empty":          sent.After(create, kind(fakegoogle.EmptyAfter)),
	"create hangs":          sent.After(create, kind(fakegoogle.HangAfter)),
	"create 400": unsent(fault.Tool, "provider_refused").After(create,
		status(400, "invalidArgument")),
	"create 401": unsent(fault.Auth, fault.CodeReauth).After(create, status(401, "authError")),
	"create 403 scope": unsent(fault.Auth, fault.CodeScope).After(create,
		status(403, "insufficientPermissions")),
	"get 503, then well": sent.After(get, status(503, "")),
	"get cut":            sent.After(get, kind(fakegoogle.CutAfter)),
	"get hangs":          sent.After(get, kind(fakegoogle.HangBefore)),
	"draft edited by its owner": unsent(fault.Policy, fault.CodeIntegrity).After(get,
		kind(fakegoogle.DraftEdited)),
	"draft deleted before the send": deleted.After(get, kind(fakegoogle.DraftDeleted)),
	"send 503 before":               sent.After(sendDraft, status(503, "")),
	"send 503 after (PR-001)":       lost.After(sendDraft, kind(fakegoogle.StatusAfter)),
	"send reset before":             sent.After(sendDraft, kind(fakegoogle.ResetBefore)),
	"send reset after (PR-002)":     lost.After(sendDraft, kind(fakegoogle.ResetAfter)),
	"send hangs before":             sent.After(sendDraft, kind(fakegoogle.HangBefore)),
	"send hangs after":              lost.After(sendDraft, kind(fakegoogle.HangAfter)),
	"send empty 200":                lost.After(sendDraft, kind(fakegoogle.EmptyAfter)),
	"send 200 without an id":        lost.After(sendDraft, kind(fakegoogle.OddAfter)),
	"send answer cut":               lost.After(sendDraft, kind(fakegoogle.CutAfter)),
	"send redirected":               sent.After(sendDraft, kind(fakegoogle.Redirect)),
	"send 429 before (PR-004)":      sent.After(sendDraft, status(429, "rateLimitExceeded")),
	"send 429 without a reason":     sent.After(sendDraft, status(429, "quota")),
	"send 400 (PR-007)": unsent(fault.Tool, "provider_refused").After(sendDraft,
		status(400, "invalidArgument")),
	"send 401 (PR-005)": unsent(fault.Auth, fault.CodeReauth).After(sendDraft,
		status(401, "authError")),
	"send 403 policy": unsent(fault.Tool, "provider_refused").After(sendDraft,
		status(403, "domainPolicy")),
	"draft deleted during the send": deleted.After(sendDraft, kind(fakegoogle.DraftDeleted)),
	"slow but well":                 sent.After(sendDraft, fakegoogle.Fault{Delay: 20 * time.Millisecond}),
	"down for the whole time": unsent(fault.Tool, "provider_failed").After(sendDraft, status(503, ""),
		status(503, ""), status(503, "")),
	"at the day's limit": unsent(fault.Tool, "provider_limited").After(sendDraft, status(429, "dailyLimitExceeded"),
		status(429, "dailyLimitExceeded"), status(429, "dailyLimitExceeded")),
	"send 503 before, then answer lost": lost.After(sendDraft, status(503, ""), kind(fakegoogle.ResetAfter)),
}

// TestReconcileCrashAnywhere covers C17 to C20: the process dies, and the next one knows only the record.
func TestReconcileCrashAnywhere(t *testing.T) {
	for name, c := range map[string]struct {
		scopes []string
		crash  func(t *testing.T, w *env)
		want   toolstest.End
	}{
		"before the draft": {[]string{compose}, func(*testing.T, *env) {}, toolstest.Completed},
		"after a draft that was not recorded": {[]string{compose}, func(t *testing.T, w *env) {
			prepared(t, w)
			w.Call.Handle = ""
		}, toolstest.Completed},
		"after the draft was recorded":                {[]string{compose}, prepared, toolstest.Completed},
		"after the answer, sent mail may not be read": {[]string{compose}, executed, toolstest.Review},
		"after the answer, sent mail may be read":     {[]string{compose, metadata}, executed, toolstest.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t, gmail.Options{}, c.scopes...)
			c.crash(t, w)
			got, _ := w.Reconcile(t)
			if got == "" {
				got, _, _ = w.CarryOut(t)
			}
			if got != c.want || len(w.Messages()) != 1 {
				t.Errorf("%s with %d sent; want %s with 1", got, len(w.Messages()), c.want)
			}
		})
	}
}

func prepared(t *testing.T, w *env) {
	t.Helper()
	var err error
	if w.Call.Handle, err = w.Tool.Prepare(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
}

func executed(t *testing.T, w *env) {
	t.Helper()
	prepared(t, w)
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
}

func TestReconcileSentMark(t *testing.T) {
	w := newEnv(t, gmail.Options{}, compose, metadata)
	executed(t, w)
	tc := w.Call
	out, err := w.Tool.Reconcile(t.Context(), tc)
	var sent gmail.Sent
	if err != nil || out.Verdict != tool.Done || json.Unmarshal(out.Result, &sent) != nil ||
		sent.MessageID != w.Messages()[0].ID || sent.Inferred {
		t.Fatalf("Reconcile = %+v, %v; want Done with the message's id", out, err)
	}
	other := tc
	other.ActionID = "another_action_0123"
	if out, err := w.Tool.Reconcile(t.Context(), other); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile of another action = %+v, %v; want unknown", out, err)
	}
}

func TestReconcileDeletedDraft(t *testing.T) {
	w := newEnv(t, gmail.Options{}, compose, metadata)
	prepared(t, w)
	tc := w.Call
	w.Google.Break("gmail.drafts.get", kind(fakegoogle.DraftDeleted))
	if out, err := w.Tool.Reconcile(t.Context(), tc); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile = %+v, %v; want unknown", out, err)
	}
}

// TestReconcileBySentMail reads the sent message again where the user has allowed that, and says so in the result.
func TestReconcileBySentMail(t *testing.T) {
	for _, c := range []struct {
		scopes []string
		want   string
	}{{[]string{compose, mayRead}, gmail.ReadBack}, {[]string{compose}, gmail.NotReadBack}} {
		w := newEnv(t, gmail.Options{}, c.scopes...)
		prepared(t, w)
		out, err := w.Tool.Execute(t.Context(), w.Call)
		if err != nil || !strings.Contains(string(out), `"`+c.want+`"`) {
			t.Errorf("%v: %s, %v; want %s", c.scopes, out, err, c.want)
		}
	}
}

func TestReconcileInference(t *testing.T) {
	w := newEnv(t, gmail.Options{InferSent: true}, compose)
	executed(t, w)
	tc := w.Call
	out, err := w.Tool.Reconcile(t.Context(), tc)
	if err != nil || out.Verdict != tool.Done || !strings.Contains(string(out.Result), `"inferred":true`) {
		t.Errorf("Reconcile = %+v, %v; want done, and inferred", out, err)
	}
	tc.UID = "revoked"
	if out, err := w.Tool.Reconcile(t.Context(), tc); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile without access = %+v, %v; want unknown", out, err)
	}
}

func TestReconcileWithoutDraft(t *testing.T) {
	w := newEnv(t, gmail.Options{}, compose)
	for name, h := range map[string]string{"empty": "", "no id": `{"sha256":"00"}`, "rubbish": "r1",
		"another mail's": `{"draft":"r2","sha256":"00"}`} {
		tc := w.Call
		tc.Handle = h
		if _, err := w.Tool.Execute(t.Context(), tc); !fault.Is(err, fault.Policy, fault.CodeIntegrity) ||
			len(w.Messages()) != 0 {
			t.Errorf("%s: Execute = %v with %d sent; want an integrity error and none", name, err, len(w.Messages()))
		}
	}
}

// unclear is an e-mail that Gmail was asked once to send, and may have sent.
func unclear(effects int) toolstest.Settled {
	return toolstest.Settled{Want: toolstest.Review, Effects: effects, Asked: map[string]int{sendMessage: 1}}
}

// directCases never repeat what may have been sent.
var directCases = map[string]toolstest.Settled{
	"nothing breaks":             sent,
	"503 before":                 unclear(0).After(sendMessage, status(503, "")),
	"503 after":                  unclear(1).After(sendMessage, kind(fakegoogle.StatusAfter)),
	"reset after":                unclear(1).After(sendMessage, kind(fakegoogle.ResetAfter)),
	"hangs after":                unclear(1).After(sendMessage, kind(fakegoogle.HangAfter)),
	"empty 200":                  unclear(1).After(sendMessage, kind(fakegoogle.EmptyAfter)),
	"200 with a number":          unclear(1).After(sendMessage, kind(fakegoogle.NumberAfter)),
	"200 without an id":          unclear(1).After(sendMessage, kind(fakegoogle.OddAfter)),
	"redirected":                 unclear(0).After(sendMessage, kind(fakegoogle.Redirect)),
	"429 that says not accepted": sent.After(sendMessage, status(429, "userRateLimitExceeded")),
	"429 that does not":          unclear(0).After(sendMessage, status(429, "quota")),
	"400": toolstest.Settled{Want: toolstest.Failed}.After(sendMessage,
		status(400, "invalidArgument")),
	"401": toolstest.Settled{Want: toolstest.Failed}.After(sendMessage,
		status(401, "authError")),
}

func TestReconcileAfterLimit(t *testing.T) {
	w := newEnv(t, gmail.Options{}, compose)
	prepared(t, w)
	tc := w.Call
	w.Google.Break("gmail.drafts.send", status(429, "rateLimitExceeded"))
	if _, err := w.Tool.Execute(t.Context(), tc); !tool.IsAmbiguous(err) || tool.IsTransient(err) {
		t.Errorf("Execute = %v; want an ambiguous error", err)
	}
	if out, err := w.Tool.Reconcile(t.Context(), tc); err != nil || out.Verdict != tool.NotDone {
		t.Errorf("Reconcile = %+v, %v; want not_done", out, err)
	}
}

func TestReconcileMissingScope(t *testing.T) {
	w := newEnv(t, gmail.Options{}, send)
	tc := w.Call
	if _, err := w.Tool.Prepare(t.Context(), tc); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("Prepare = %v; want scope_missing", err)
	}
}

func TestSendWithoutServer(t *testing.T) {
	for _, mode := range []gmail.Mode{gmail.Draft, gmail.Direct} {
		tl := gmail.New(fakegoogle.Accounts{},
			gmail.Options{Mode: mode, Endpoint: "http://127.0.0.1:1/"})
		c := provider(t, new(toolstest.Google), tl).Call
		var err error
		if tl.Prepares() {
			_, err = tl.Prepare(t.Context(), c)
		} else {
			_, err = tl.Execute(t.Context(), c)
		}
		if !tool.IsTransient(err) || tool.IsAmbiguous(err) {
			t.Errorf("%s: %v; want a transient error", mode, err)
		}
	}
}
