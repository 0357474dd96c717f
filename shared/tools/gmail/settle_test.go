package gmail_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const (
	compose  = "https://www.googleapis.com/auth/gmail.compose"
	send     = "https://www.googleapis.com/auth/gmail.send"
	metadata = "https://www.googleapis.com/auth/gmail.metadata"
)

// world is a local Gmail with a tool that uses it.
type world struct {
	*fakegoogle.Server
	tool *tool.Tool

	mu     sync.Mutex
	faults map[string][]fakegoogle.Fault // by operation, used up in order
	calls  map[string]int
}

func newWorld(t *testing.T, o gmail.Options, scopes ...string) *world {
	t.Helper()
	w := &world{faults: map[string][]fakegoogle.Fault{}, calls: map[string]int{}}
	var err error
	w.Server, err = fakegoogle.New(fakegoogle.Options{
		User: func(b string) (string, []string, bool) { return "me@example.com", scopes, b == "good" },
		Fault: func(op string) (f fakegoogle.Fault) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.calls[op]++
			if q := w.faults[op]; len(q) > 0 {
				f, w.faults[op] = q[0], q[1:]
			}
			return f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	o.Endpoint, o.Timeout = srv.URL+"/", 300*time.Millisecond
	w.tool = gmail.New(fakegoogle.Accounts{}, o)
	return w
}

func (w *world) breaks(op string, f ...fakegoogle.Fault) { w.faults[op] = f }

func call(t *testing.T, w *world) tool.Call {
	t.Helper()
	args, err := w.tool.Normalize(
		json.RawMessage(`{"to":["a@example.com"],"bcc":["b@example.com"],"subject":"Grüße","body":"Hello\nworld\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{UID: "good", RunID: "run", ActionID: "action_0123456789", Args: args}
}

// end is the result of a call.
type end string

const (
	completed end = "completed"
	failed    end = "failed"
	review    end = "needs_review"
)

// carryOut executes a call as the loop does: prepare, record, execute, and after an unclear outcome reconcile before
// anything else.
func (w *world) carryOut(t *testing.T, c *tool.Call) (end, error) {
	t.Helper()
	var err error
	if w.tool.Prepares() && c.Handle == "" {
		for range 3 {
			if c.Handle, err = w.tool.Prepare(t.Context(), *c); !tool.IsTransient(err) {
				break
			}
		}
		if err != nil {
			return failed, err
		}
	}
	for range 3 {
		if _, err = w.tool.Execute(t.Context(), *c); err == nil {
			return completed, nil
		}
		switch {
		case tool.IsTransient(err):
			continue
		case !tool.IsAmbiguous(err):
			return failed, err
		}
		if over, verdict := w.reconcile(t, c); over {
			return verdict, err
		}
	}
	return failed, err
}

func (w *world) reconcile(t *testing.T, c *tool.Call) (over bool, verdict end) {
	t.Helper()
	for range 3 {
		out, err := w.tool.Reconcile(t.Context(), *c)
		if err != nil {
			continue
		}
		switch out.Verdict {
		case tool.Done:
			return true, completed
		case tool.NotDone:
			return false, ""
		}
		if out.Reason == "" {
			t.Error("unknown without a reason")
		}
		return true, review
	}
	t.Fatal("the mailbox never answered")
	return true, review
}

func status(code int, reason string) fakegoogle.Fault {
	return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: code, Reason: reason, Text: "Bearer ya29.SECRET"}
}

func kind(k fakegoogle.Kind) fakegoogle.Fault { return fakegoogle.Fault{Kind: k} }

// TestDraftModeSettlesEveryFault implements reliability §2, the table "How C18-C20 are settled", column "Gmail (compose
// scope)".
func TestDraftModeSettlesEveryFault(t *testing.T) {
	const create, get, sendOp = "gmail.drafts.create", "gmail.drafts.get", "gmail.drafts.send"
	for name, c := range map[string]struct {
		op     string
		faults []fakegoogle.Fault
		want   end
		sent   int
		class  fault.Class
		code   fault.Code
	}{
		"nothing breaks":        {"", nil, completed, 1, "", ""},
		"create 503, then well": {create, []fakegoogle.Fault{status(503, "")}, completed, 1, "", ""},
		"create answer lost": {create, []fakegoogle.Fault{kind(fakegoogle.ResetAfter)}, completed, 1,
			"", ""},
		"create without an id": {create, []fakegoogle.Fault{kind(fakegoogle.OddAfter)}, completed, 1, "",
			""},
		"create empty": {create, []fakegoogle.Fault{kind(fakegoogle.EmptyAfter)}, completed, 1,
			"", ""},
		"create hangs": {create, []fakegoogle.Fault{kind(fakegoogle.HangAfter)}, completed, 1,
			"", ""},
		"create 400": {create, []fakegoogle.Fault{status(400, "invalidArgument")}, failed, 0,
			fault.Tool, "provider_refused"},
		"create 401": {create, []fakegoogle.Fault{status(401, "authError")}, failed, 0,
			fault.Auth, fault.CodeReauth},
		"create 403 scope": {create, []fakegoogle.Fault{status(403, "insufficientPermissions")},
			failed, 0, fault.Auth, fault.CodeScope},
		"get 503, then well": {get, []fakegoogle.Fault{status(503, "")}, completed, 1, "", ""},
		"get cut": {get, []fakegoogle.Fault{kind(fakegoogle.CutAfter)}, completed, 1, "",
			""},
		"get hangs": {get, []fakegoogle.Fault{kind(fakegoogle.HangBefore)}, completed, 1, "",
			""},
		"draft edited by its owner": {get, []fakegoogle.Fault{kind(fakegoogle.DraftEdited)}, failed, 0,
			fault.Policy, fault.CodeIntegrity},
		"draft deleted before the send": {get, []fakegoogle.Fault{kind(fakegoogle.DraftDeleted)}, review, 0,
			fault.Tool, "provider_refused"},
		"send 503 before": {sendOp, []fakegoogle.Fault{status(503, "")}, completed, 1, "", ""},
		"send 503 after (PR-001)": {sendOp, []fakegoogle.Fault{kind(fakegoogle.StatusAfter)}, review, 1,
			fault.Tool, "provider_failed"},
		"send reset before": {sendOp, []fakegoogle.Fault{kind(fakegoogle.ResetBefore)}, completed, 1,
			"", ""},
		"send reset after (PR-002)": {sendOp, []fakegoogle.Fault{kind(fakegoogle.ResetAfter)}, review, 1,
			fault.Tool, "provider_failed"},
		"send hangs before": {sendOp, []fakegoogle.Fault{kind(fakegoogle.HangBefore)}, completed, 1,
			"", ""},
		"send hangs after": {sendOp, []fakegoogle.Fault{kind(fakegoogle.HangAfter)}, review, 1,
			fault.Tool, "provider_failed"},
		"send empty 200": {sendOp, []fakegoogle.Fault{kind(fakegoogle.EmptyAfter)}, review, 1,
			fault.Tool, "provider_failed"},
		"send 200 without an id": {sendOp, []fakegoogle.Fault{kind(fakegoogle.OddAfter)}, review, 1,
			fault.Tool, "provider_failed"},
		"send answer cut": {sendOp, []fakegoogle.Fault{kind(fakegoogle.CutAfter)}, review, 1,
			fault.Tool, "provider_failed"},
		"send redirected": {sendOp, []fakegoogle.Fault{kind(fakegoogle.Redirect)}, completed, 1, "",
			""},
		"send 429 before (PR-004)": {sendOp, []fakegoogle.Fault{status(429, "rateLimitExceeded")}, completed,
			1, "", ""},
		"send 429 without a reason": {sendOp, []fakegoogle.Fault{status(429, "quota")}, completed, 1, "", ""},
		"send 400 (PR-007)": {sendOp, []fakegoogle.Fault{status(400, "invalidArgument")}, failed, 0,
			fault.Tool, "provider_refused"},
		"send 401 (PR-005)": {sendOp, []fakegoogle.Fault{status(401, "authError")}, failed, 0,
			fault.Auth, fault.CodeReauth},
		"send 403 policy": {sendOp, []fakegoogle.Fault{status(403, "domainPolicy")}, failed, 0,
			fault.Tool, "provider_refused"},
		"draft deleted during the send": {sendOp, []fakegoogle.Fault{kind(fakegoogle.DraftDeleted)}, review, 0,
			fault.Tool, "provider_refused"},
		"slow but well": {sendOp, []fakegoogle.Fault{{Delay: 20 * time.Millisecond}}, completed, 1,
			"", ""},
		"down for the whole time": {sendOp, []fakegoogle.Fault{status(503, ""), status(503, ""),
			status(503, "")}, failed, 0, fault.Tool, "provider_failed"},
		"send 503 before, then answer lost": {sendOp,
			[]fakegoogle.Fault{status(503, ""), kind(fakegoogle.ResetAfter)}, review, 1, fault.Tool,
			"provider_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gmail.Options{}, compose)
			if c.op != "" {
				w.breaks(c.op, c.faults...)
			}
			tc := call(t, w)
			got, err := w.carryOut(t, &tc)
			if got != c.want || len(w.Messages()) != c.sent {
				t.Errorf("%s with %d sent (%v); want %s with %d", got, len(w.Messages()), err, c.want, c.sent)
			}
			var e *fault.Error
			if c.class != "" && (!errors.As(err, &e) || e.Class != c.class || e.Code != c.code) {
				t.Errorf("error %v; want %s %s", err, c.class, c.code)
			}
			if err != nil && strings.Contains(err.Error(), "SECRET") || e != nil && e.Err != nil &&
				strings.Contains(e.Err.Error(), "SECRET") {
				t.Errorf("the provider's words are repeated: %v", err)
			}
		})
	}
}

// TestACrashAtAnyPointSendsOnce covers C17 to C20: the process dies, and the next one knows only what was recorded.
func TestACrashAtAnyPointSendsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		scopes []string
		crash  func(t *testing.T, w *world, c *tool.Call)
		want   end
	}{
		"before the draft": {[]string{compose}, func(*testing.T, *world, *tool.Call) {}, completed},
		"after a draft that was not recorded": {[]string{compose}, func(t *testing.T, w *world, c *tool.Call) {
			if _, err := w.tool.Prepare(t.Context(), *c); err != nil {
				t.Fatal(err)
			}
		}, completed},
		"after the draft was recorded":                {[]string{compose}, prepared, completed},
		"after the answer, sent mail may not be read": {[]string{compose}, executed, review},
		"after the answer, sent mail may be read":     {[]string{compose, metadata}, executed, completed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gmail.Options{}, c.scopes...)
			tc := call(t, w)
			c.crash(t, w, &tc)
			over, got := w.reconcile(t, &tc)
			if !over {
				got, _ = w.carryOut(t, &tc)
			}
			if got != c.want || len(w.Messages()) != 1 {
				t.Errorf("%s with %d sent; want %s with 1", got, len(w.Messages()), c.want)
			}
		})
	}
}

func prepared(t *testing.T, w *world, c *tool.Call) {
	t.Helper()
	var err error
	if c.Handle, err = w.tool.Prepare(t.Context(), *c); err != nil {
		t.Fatal(err)
	}
}

func executed(t *testing.T, w *world, c *tool.Call) {
	t.Helper()
	prepared(t, w, c)
	if _, err := w.tool.Execute(t.Context(), *c); err != nil {
		t.Fatal(err)
	}
}

func TestTheProofOfASentMailIsItsMark(t *testing.T) {
	w := newWorld(t, gmail.Options{}, compose, metadata)
	tc := call(t, w)
	executed(t, w, &tc)
	out, err := w.tool.Reconcile(t.Context(), tc)
	var sent gmail.Sent
	if err != nil || out.Verdict != tool.Done || json.Unmarshal(out.Result, &sent) != nil ||
		sent.MessageID != w.Messages()[0].ID || sent.Inferred {
		t.Fatalf("Reconcile = %+v, %v; want Done with the message's id", out, err)
	}
	other := tc
	other.ActionID = "another_action_0123"
	if out, err := w.tool.Reconcile(t.Context(), other); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile of another action = %+v, %v; want unknown", out, err)
	}
}

func TestADeletedDraftIsNeverTakenAsSentWithoutProof(t *testing.T) {
	w := newWorld(t, gmail.Options{}, compose, metadata)
	tc := call(t, w)
	prepared(t, w, &tc)
	w.breaks("gmail.drafts.get", kind(fakegoogle.DraftDeleted))
	if out, err := w.tool.Reconcile(t.Context(), tc); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile = %+v, %v; want unknown", out, err)
	}
}

func TestInferenceIsOptInAndSaysSo(t *testing.T) {
	w := newWorld(t, gmail.Options{InferSent: true}, compose)
	tc := call(t, w)
	executed(t, w, &tc)
	out, err := w.tool.Reconcile(t.Context(), tc)
	if err != nil || out.Verdict != tool.Done || !strings.Contains(string(out.Result), `"inferred":true`) {
		t.Errorf("Reconcile = %+v, %v; want done, and inferred", out, err)
	}
	tc.UID = "revoked"
	if out, err := w.tool.Reconcile(t.Context(), tc); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile without access = %+v, %v; want unknown", out, err)
	}
}

func TestWithoutARecordedDraftNothingIsSent(t *testing.T) {
	w := newWorld(t, gmail.Options{}, compose)
	for name, h := range map[string]string{"empty": "", "no id": `{"sha256":"00"}`, "rubbish": "r1",
		"another mail's": `{"draft":"r2","sha256":"00"}`} {
		tc := call(t, w)
		tc.Handle = h
		if _, err := w.tool.Execute(t.Context(), tc); !fault.Is(err, fault.Policy, fault.CodeIntegrity) ||
			len(w.Messages()) != 0 {
			t.Errorf("%s: Execute = %v with %d sent; want an integrity error and none", name, err, len(w.Messages()))
		}
	}
}

func TestDirectModeNeverRepeatsWhatMayHaveBeenSent(t *testing.T) {
	const op = "gmail.messages.send"
	for name, c := range map[string]struct {
		faults []fakegoogle.Fault
		want   end
		sent   int
	}{
		"nothing breaks":             {nil, completed, 1},
		"503 before":                 {[]fakegoogle.Fault{status(503, "")}, review, 0},
		"503 after":                  {[]fakegoogle.Fault{kind(fakegoogle.StatusAfter)}, review, 1},
		"reset after":                {[]fakegoogle.Fault{kind(fakegoogle.ResetAfter)}, review, 1},
		"hangs after":                {[]fakegoogle.Fault{kind(fakegoogle.HangAfter)}, review, 1},
		"empty 200":                  {[]fakegoogle.Fault{kind(fakegoogle.EmptyAfter)}, review, 1},
		"200 without an id":          {[]fakegoogle.Fault{kind(fakegoogle.OddAfter)}, review, 1},
		"redirected":                 {[]fakegoogle.Fault{kind(fakegoogle.Redirect)}, review, 0},
		"429 that says not accepted": {[]fakegoogle.Fault{status(429, "userRateLimitExceeded")}, completed, 1},
		"429 that does not":          {[]fakegoogle.Fault{status(429, "quota")}, review, 0},
		"400":                        {[]fakegoogle.Fault{status(400, "invalidArgument")}, failed, 0},
		"401":                        {[]fakegoogle.Fault{status(401, "authError")}, failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gmail.Options{Mode: gmail.Direct}, send)
			w.breaks(op, c.faults...)
			tc := call(t, w)
			got, err := w.carryOut(t, &tc)
			if got != c.want || len(w.Messages()) != c.sent {
				t.Errorf("%s with %d sent (%v); want %s with %d", got, len(w.Messages()), err, c.want, c.sent)
			}
			if got == review && w.calls[op] != 1 {
				t.Errorf("asked %d times", w.calls[op])
			}
		})
	}
}

func TestAfterALimitTheDraftIsAskedBeforeASecondSend(t *testing.T) {
	w := newWorld(t, gmail.Options{}, compose)
	tc := call(t, w)
	prepared(t, w, &tc)
	w.breaks("gmail.drafts.send", status(429, "rateLimitExceeded"))
	if _, err := w.tool.Execute(t.Context(), tc); !tool.IsAmbiguous(err) || tool.IsTransient(err) {
		t.Errorf("Execute = %v; want an ambiguous error", err)
	}
	if out, err := w.tool.Reconcile(t.Context(), tc); err != nil || out.Verdict != tool.NotDone {
		t.Errorf("Reconcile = %+v, %v; want not_done", out, err)
	}
}

func TestAMissingScopeIsToldApart(t *testing.T) {
	w := newWorld(t, gmail.Options{}, send)
	tc := call(t, w)
	if _, err := w.tool.Prepare(t.Context(), tc); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("Prepare = %v; want scope_missing", err)
	}
}

func TestNoServerNoMail(t *testing.T) {
	for _, mode := range []gmail.Mode{gmail.Draft, gmail.Direct} {
		tl := gmail.New(fakegoogle.Accounts{},
			gmail.Options{Mode: mode, Endpoint: "http://127.0.0.1:1/"})
		c := call(t, &world{tool: tl})
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
