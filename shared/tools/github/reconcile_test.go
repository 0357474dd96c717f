package github_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

const action = "action_0123456789"

// effect is a tool, with a call that succeeds on the local GitHub.
type effect struct {
	name  string
	args  map[string]any
	acts  []string
	looks []string
	// rereads means that the data for the handle is read again before the effect.
	rereads bool
	// lost is the outcome of a call whose effect took place and whose answer was lost. undone is the outcome of a call
	// that never reached GitHub.
	lost, undone toolstest.Settled
	with         string // a part of the completed call's result
}

var where = map[string]any{"owner": toolstest.GoogleUser, "repo": "site"}

// in returns arguments in the repository.
func in(more map[string]any) map[string]any {
	all := map[string]any{}
	for _, part := range []map[string]any{where, more} {
		for k, v := range part {
			all[k] = v
		}
	}
	return all
}

// long is more than the number of reads of a call.
const long = 1000

// The outcomes of a call.
var (
	done   = toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	review = toolstest.Settled{Want: toolstest.Review}
	unseen = toolstest.Settled{Want: toolstest.Review, Effects: 1}
)

// found lists the tools that find their effects by a mark, without a record.
var found = []string{github.CreateIssue, github.CreateComment, github.ReplyToReviewComment, github.CreatePullRequest}

var effects = []effect{
	{name: github.CreateIssue, args: in(map[string]any{"title": "Broken", "body": "The link.",
		"labels": []string{"bug"}}),
		acts: []string{"repos/get", "issues/create"}, looks: []string{"users/get-authenticated",
			"issues/list-for-repo"},
		lost: done, undone: review, with: `"number":4`},
	{name: github.CreateComment, args: in(map[string]any{"issueNumber": 1, "body": "Seen."}),
		acts:  []string{"issues/get", "issues/create-comment"},
		looks: []string{"users/get-authenticated", "issues/list-comments"}, lost: done, undone: review, with: `"id":`},
	{name: github.ReplyToReviewComment, args: in(map[string]any{"prNumber": 3, "commentId": 6, "body": "Because."}),
		acts:  []string{"pulls/get-review-comment", "pulls/create-reply-for-review-comment"},
		looks: []string{"users/get-authenticated", "pulls/list-review-comments"}, lost: done, undone: review,
		with: `"inReplyTo":6`},
	{name: github.CreatePullRequest, args: in(map[string]any{"title": "Mend", "head": "fix", "base": "main"}),
		acts: []string{"repos/get", "pulls/create"}, looks: []string{"users/get-authenticated", "pulls/list"},
		lost: done, undone: done, with: `"number":4`},
	{name: github.CreateRepository, args: map[string]any{"name": "new", "description": "New.", "isPrivate": true},
		acts: []string{"users/get-authenticated", "repos/get", "repos/create-for-authenticated-user"},
		lost: done, undone: done, with: `"name":"new"`},
	{name: github.UpdateIssue, args: in(map[string]any{"issueNumber": 1,
		"updates": map[string]any{"title": "Mended", "labels": []string{"fixed"}, "assignees": []string{"other"}}}),
		acts: []string{"issues/get", "issues/update"}, rereads: true, lost: done, undone: done,
		with: `"title":"Mended"`},
	{name: github.CloseIssue, args: in(map[string]any{"issueNumber": 1}),
		acts: []string{"issues/get", "issues/update"}, rereads: true, lost: done, undone: done, with: `"closed"`},
	{name: github.UpdatePullRequest, args: in(map[string]any{"prNumber": 3,
		"updates": map[string]any{"body": "Better.", "base": "next"}}),
		acts: []string{"pulls/get", "pulls/update"}, rereads: true, lost: done, undone: done, with: `"base":"next"`},
	{name: github.ClosePullRequest, args: in(map[string]any{"prNumber": 3}),
		acts: []string{"pulls/get", "pulls/update"}, rereads: true, lost: done, undone: done, with: `"closed"`},
	{name: github.CommitFiles, args: in(map[string]any{"branch": "main", "message": "Mend it",
		"files": []any{map[string]any{"path": "README.md", "content": "# Mended\n"},
			map[string]any{"path": "docs/a.md", "delete": true}}}),
		acts:  []string{"git/get-ref", "git/get-tree", "git/create-commit", "git/update-ref"},
		looks: []string{"repos/list-commits"}, lost: done, undone: done, with: `"branch":"main"`},
}

func (e effect) last() string { return e.acts[len(e.acts)-1] }

// env is a local GitHub with a tool on it, and a call.
type env struct {
	*toolstest.GitHub
	toolstest.Provider
}

// local returns the tools for the local GitHub of each test. They are made once, because that takes longer than most
// tests.
var local = sync.OnceValue(func() tool.Set {
	return github.New(accounts{}, github.Options{Endpoint: "http://github.test/", Timeout: await.Most,
		Containers: box{}, Strangers: netguard.Strangers(false)})
})

// accounts provides users whose IDs contain their login and the address of their GitHub.
type accounts struct{ fakegoogle.Accounts }

// as returns the ID of a user of this GitHub.
func (w *env) as(login string) string { return login + "@" + strings.Trim(w.URL, "htp:/") }

// Client returns an HTTP client for the user's GitHub.
func (a accounts) Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error) {
	login, host, _ := strings.Cut(uid, "@")
	a.Token = func(string) string { return login }
	c, err := a.Accounts.Client(ctx, uid, in)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: to{host, c.Transport}}, nil
}

// to sends requests to a host.
type to struct {
	host string
	base http.RoundTripper
}

func (t to) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = t.host
	return t.base.RoundTrip(r)
}

func open(t *testing.T, name string, args map[string]any, op string) *env {
	t.Helper()
	g := toolstest.OpenGitHub(t, nil)
	tl := local()[name]
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	normal, err := tl.Normalize(raw)
	if err != nil {
		t.Fatal(err)
	}
	w := &env{GitHub: g}
	w.Provider = toolstest.Provider{Tool: tl, Break: g.Break, Calls: g.Calls,
		Call:    tool.Call{UID: w.as(toolstest.GoogleUser), ActionID: action, Args: normal},
		Effects: func() int { return g.Effects(op) }}
	return w
}

func (e effect) open(t *testing.T) *env {
	t.Helper()
	w := open(t, e.name, e.args, e.last())
	w.Result = func(t *testing.T, out json.RawMessage) {
		if !strings.Contains(string(out), e.with) {
			t.Errorf("the result is %s; it lacks %s", out, e.with)
		}
	}
	return w
}

// TestReconcileEachFault makes each operation of each effect fail in each way.
func TestReconcileEachFault(t *testing.T) {
	for _, e := range effects {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &e.open(t).Provider },
				Broken: github.New(toolstest.Panicking{}, github.Options{})[e.name],
				Acts:   e.acts, Looks: e.looks, Rereads: e.rereads, Found: slices.Contains(found, e.name),
				Cases: e.cases()}.Run(t)
		})
	}
}

func (e effect) cases() map[string]toolstest.Settled {
	op, status, kind := e.last(), toolstest.Status, toolstest.Kind
	refused := toolstest.Settled{Want: toolstest.Failed, Class: fault.Tool, Code: "provider_refused"}
	return map[string]toolstest.Settled{
		"nothing breaks": done,
		"accepted, then 500": e.lost.After(op,
			fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500}),
		"cut after":         e.lost.After(op, kind(fakegoogle.ResetAfter)),
		"hangs after":       e.lost.After(op, kind(fakegoogle.HangAfter)),
		"answer cut":        e.lost.After(op, kind(fakegoogle.CutAfter)),
		"empty 200":         e.lost.After(op, kind(fakegoogle.EmptyAfter)),
		"odd 200":           e.lost.After(op, kind(fakegoogle.OddAfter)),
		"503 before":        e.undone.After(op, status(503, "")),
		"cut before":        e.undone.After(op, kind(fakegoogle.ResetBefore)),
		"hangs before":      e.undone.After(op, kind(fakegoogle.HangBefore)),
		"asked to wait":     done.After(op, status(403, "rateLimitExceeded")),
		"asked to wait 429": done.After(op, status(429, "rateLimitExceeded")),
		"forbidden":         refused.After(op, status(403, "")),
		"gone":              refused.After(op, status(404, "")),
		"moved":             refused.After(op, kind(fakegoogle.Redirect)),
		"no account any more": toolstest.Settled{Want: toolstest.Failed, Class: fault.Auth,
			Code: fault.CodeReauth}.After(op, status(401, "")),
		"accepted, then 500, seen later": done.After(op,
			fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500, Hidden: 1}),
		"accepted, then 500, unseen": unseen.After(op, slices.Repeat([]fakegoogle.Fault{
			{Kind: fakegoogle.StatusAfter, Status: 500, Hidden: long}}, 3)...),
		"accepted, then odd, unseen": unseen.After(op, slices.Repeat([]fakegoogle.Fault{
			{Kind: fakegoogle.OddAfter, Hidden: long}}, 3)...),
		"slow but well": done.After(op, fakegoogle.Fault{Delay: 20 * time.Millisecond}),
	}
}

// TestReconcileMark checks the text that GitHub received: the approved text, followed by the mark.
func TestReconcileMark(t *testing.T) {
	body := func(v fakegithub.View) string { return v.Issues[3].Body }
	for name, of := range map[string]func(fakegithub.View) string{
		github.CreateIssue: body, github.CreatePullRequest: body,
		github.CreateComment:        func(v fakegithub.View) string { return v.Issues[0].Comments[1] },
		github.ReplyToReviewComment: func(v fakegithub.View) string { return v.Issues[2].Reviews[1] },
	} {
		for _, e := range effects {
			if e.name != name {
				continue
			}
			w := e.open(t)
			if end, _, err := w.CarryOut(t); end != toolstest.Completed {
				t.Fatalf("%s: %s, %v; want end %v", name, end, err, toolstest.Completed)
			}
			if got := of(w.View()[0]); !strings.HasSuffix(got, "<!-- countersign:"+action+" -->") {
				t.Errorf("%s: it is %q", name, got)
			}
		}
	}
}

// TestReconcileForeignMark makes another user create an issue with the mark.
func TestReconcileForeignMark(t *testing.T) {
	for _, e := range effects[:3] {
		w := e.open(t)
		var err error
		if w.Call.Handle, err = w.Tool.Prepare(t.Context(), w.Call); err != nil {
			t.Fatal(err)
		}
		stranger := w.Call
		stranger.UID = w.as("other")
		if _, err := w.Tool.Execute(t.Context(), stranger); err != nil {
			t.Fatal(err)
		}
		if out, err := w.Tool.Reconcile(t.Context(), w.Call); err != nil || out.Verdict != tool.Unknown {
			t.Errorf("%s: %+v, %v; want unknown", e.name, out, err)
		}
	}
}

// TestReconcileBehindPage hides the issue after a page of newer ones.
func TestReconcileBehindPage(t *testing.T) {
	w := effects[0].open(t)
	var err error
	if w.Call.Handle, err = w.Tool.Prepare(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	for range 101 {
		other := w.Call
		other.ActionID = "action_of_another"
		if _, err := w.Tool.Execute(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	out, err := w.Tool.Reconcile(t.Context(), w.Call)
	if err != nil || out.Verdict != tool.Done || !strings.Contains(string(out.Result), `"number":4`) {
		t.Errorf("%+v, %v; want done with 4", out, err)
	}
}

// TestReconcileWithForeignChange makes another user change an issue after its change was prepared.
func TestReconcileWithForeignChange(t *testing.T) {
	w := effects[5].open(t)
	var err error
	if w.Call.Handle, err = w.Tool.Prepare(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	other := w.Call
	other.UID, other.Args = w.as("other"), json.RawMessage(strings.Replace(string(w.Call.Args), "Mended", "Theirs", 1))
	if _, err := w.Tool.Execute(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Tool.Execute(t.Context(), w.Call); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("Execute = %v; want stale_view", err)
	}
	if got := w.View()[0].Issues[0].Title; got != "Theirs" {
		t.Errorf("the title is %q; it is overwritten", got)
	}
	if out, err := w.Tool.Reconcile(t.Context(), w.Call); err != nil || out.Verdict != tool.Unknown {
		t.Errorf("Reconcile = %+v, %v; want unknown", out, err)
	}
}
