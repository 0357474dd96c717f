package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// kind is a tool, with how much its provider reveals afterwards.
type kind struct {
	name, tool, mode string
	readable         bool // the mailbox may be read, so that a sent mail is found
}

var kinds = []kind{
	{"gmail", "gmail_send", "draft", false},
	{"gmail, readable", "gmail_send", "draft", true},
	{"gmail, direct", "gmail_send", "direct", false},
	{"calendar", "calendar_event_create", "draft", false},
	{"no handle", "note", "draft", false},
}

// proves reports whether the kind can always tell afterwards what happened, so that a crash leaves no review to the
// user.
func (k kind) proves() bool { return k.readable || k.tool == "calendar_event_create" }

// eventStart is far enough ahead for every run.
var eventStart = time.Now().AddDate(0, 2, 0).Truncate(time.Hour)

func (k kind) args(name string) map[string]any {
	switch k.tool {
	case "gmail_send":
		return testkit.Mail("bob@example.org", name, "hello")
	case "note":
		return map[string]any{"text": name}
	}
	e := testkit.Event(name, eventStart)
	e["attendees"] = []string{"bob@example.org"}
	return e
}

// edited returns the arguments as the user edits them.
func (k kind) edited(name string) map[string]any {
	a := k.args(name)
	switch k.tool {
	case "gmail_send":
		a["body"] = "hello again"
	case "note":
		a["text"] = name + ", edited"
	default:
		a["location"] = "at home"
	}
	return a
}

// answer calls the tool that the prompt names, once.
func answer(r fakegemini.Request) fakegemini.Turn {
	if len(r.Responses()) > 0 || r.NoTools {
		return fakegemini.Turn{Text: "That is what came of it."}
	}
	tool, name, _ := strings.Cut(r.User(), " ")
	for _, k := range kinds {
		if k.tool == tool {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: k.args(name)}}}
		}
	}
	return fakegemini.Turn{Text: "I do not know that."}
}

// step is one thing that a client, the queue or the scheduler does. It is handled by one worker, which may die, and is
// then repeated as its caller would repeat it.
type step struct {
	name  string
	ready func(*trial) bool // what must be true before; nil: nothing
	do    func(ctx context.Context, t *trial, to *process) error
}

// walk is a sequence of steps.
type walk struct {
	name    string
	ttl     time.Duration // how long an approval may wait
	steps   []step
	fits    func(kind) bool
	effects func(n int) bool // whether n effects are allowed in the end, reviews aside
	ends    bool             // the run may end during an effect, which then becomes a review
}

const (
	longTTL  = time.Hour
	shortTTL = 400 * time.Millisecond
)

var (
	once   = func(n int) bool { return n == 1 }
	twice  = func(n int) bool { return n == 2 }
	never  = func(n int) bool { return n == 0 }
	either = func(n int) bool { return n <= 1 }
	anyOf  = func(kind) bool { return true }
	people = func(k kind) bool { return k.tool != "note" } // a note has no recipient to always allow
)

var walks = []walk{
	{"approve", longTTL, []step{start(0), decide("approve_once"), deliver}, anyOf, once, false},
	{"edit", longTTL, []step{start(0), decide("approve_with_edits"), deliver}, anyOf, once, false},
	{"always allow", longTTL, []step{start(0), decide("approve_and_always_allow_recipient"), deliver, start(1)}, people,
		twice, false},
	{"reject", longTTL, []step{start(0), decide("reject"), deliver}, anyOf, never, false},
	{"cancel", longTTL, []step{start(0), cancel, deliver}, anyOf, never, false},
	{"cancel after the yes", longTTL, []step{start(0), decide("approve_once"), cancel, deliver}, anyOf, either, true},
	{"expire", shortTTL, []step{start(0), expire, deliver, tooLate}, anyOf, never, false},
}

// start requests the n-th run of the trial, with its key.
func start(n int) step {
	return step{fmt.Sprintf("start %d", n+1), func(t *trial) bool { return n == 0 || t.over(n-1) },
		func(ctx context.Context, t *trial, to *process) error {
			a, err := t.at(to).Ask(ctx, t.kind.tool+" "+t.name(n), "Idempotency-Key", t.key(n))
			if err != nil {
				return err
			}
			if a.HTTP != http.StatusOK || a.RunID != t.runs[n] {
				return fmt.Errorf("start: %d %s", a.HTTP, a.Body)
			}
			return nil
		}}
}

func decide(decision string) step {
	return step{decision, (*trial).asked, func(ctx context.Context, t *trial, to *process) error {
		if t.slow {
			return nil
		}
		var edited any
		if decision == "approve_with_edits" {
			edited = t.kind.edited(t.name(0))
		}
		a, err := t.at(to).Decide(ctx, t.approval, decision, edited)
		if err != nil {
			return err
		}
		if a.HTTP != http.StatusOK {
			return fmt.Errorf("%s: %d %s", decision, a.HTTP, a.Body)
		}
		return nil
	}}
}

// tooLate approves an expired approval.
var tooLate = step{"a late yes", func(t *trial) bool { return t.over(0) },
	func(ctx context.Context, t *trial, to *process) error {
		late := testkit.Approval{ApprovalID: run.ApprovalID(t.runs[0], 1)}
		a, err := t.at(to).Resolve(ctx, late, "approve_once")
		if err != nil {
			return err
		}
		// A run that was cut off at its start may have no approval.
		if a.HTTP != http.StatusGone && a.HTTP != http.StatusNotFound {
			return fmt.Errorf("a late yes: %d %s", a.HTTP, a.Body)
		}
		return nil
	}}

var cancel = step{"cancel", func(t *trial) bool { return t.asked() },
	func(ctx context.Context, t *trial, to *process) error {
		a, err := t.at(to).Cancel(ctx, t.runs[0])
		if err != nil {
			return err
		}
		if a.HTTP != http.StatusOK {
			return fmt.Errorf("cancel: %d %s", a.HTTP, a.Body)
		}
		return nil
	}}

// deliver pushes the queue's messages to the worker.
var deliver = step{"deliver", nil, func(ctx context.Context, t *trial, to *process) error {
	t.env.worker = to
	return t.env.deliver(ctx)
}}

// expire sweeps when the approval has expired.
var expire = step{"sweep", (*trial).expired, func(ctx context.Context, t *trial, to *process) error {
	return t.env.sweep(ctx, to)
}}

// errDown means that the worker did not answer, as when it dies.
var errDown = errors.New("the worker does not answer")
