package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// kind is a kind of effect: a tool, and the evidence that its provider gives after a crash.
type kind struct {
	name, tool, mode string
	readable         bool   // the mailbox can be read, so sent e-mails can be found
	alias            bool   // e-mails are sent from another address of the account
	file             bool   // e-mails have a file from an e-mail that the user has received
	onHost           bool   // a command on a host
	readsOnly        bool   // a command that only reads, and needs no approval
	plans            bool   // part of a plan
	contained        bool   // runs in a container
	patches          bool   // replaces text in a file
	mailed           bool   // the user gets an e-mail while it waits
	commit           string // the commit whose lock file is installed
}

var kinds = []kind{
	{name: "gmail", tool: "gmail_send", mode: "draft"},
	{name: "gmail, readable", tool: "gmail_send", mode: "draft", readable: true},
	{name: "gmail, direct", tool: "gmail_send", mode: "direct"},
	{name: "gmail, alias", tool: "gmail_send", mode: "draft", readable: true, alias: true},
	{name: "gmail, file", tool: "gmail_send", mode: "draft", readable: true, file: true},
	{name: "calendar", tool: "calendar_event_create", mode: "draft"},
	{name: "no handle", tool: "note", mode: "draft"},
	ownNote, onMCPServer, issue, pull, commit, patch, create, script, edit, fetch, reminded,
}

// commands are the kinds of -on host.
var commands = []kind{
	{name: "command", tool: "run_command", mode: "draft", onHost: true},
	{name: "command that looks", tool: "run_command", mode: "draft", onHost: true, readsOnly: true},
	commandList, upload,
}

// everyKind lists all kinds.
var everyKind = slices.Concat(kinds, commands)

// proves reports whether the provider can always report what happened, so that a crash never leads to a review by the
// user.
func (k kind) proves() bool {
	return k.readable || k.tool == "calendar_event_create" || k.tool == pull.tool || k.tool == commit.tool ||
		k.tool == memory.Remember || k.contained
}

// desk is the address from which e-mails of the kind with an alias are sent. It is another address of the user's
// account. The subjects of these e-mails end in fromDesk.
const desk, fromDesk = "desk@example.com", ", from the desk"

// withFile is in the subjects of e-mails with a file. The ID of the e-mail that has the file follows. fileMail is that
// e-mail.
const (
	withFile = ", with the file of "
	fileMail = "From: bob@example.org\r\nSubject: Contract\r\nContent-Type: application/pdf\r\n" +
		"Content-Disposition: attachment; filename=contract.pdf\r\n\r\n%PDF-1.7\r\n \t\r\n"
)

// eventStart is late enough for every run.
var eventStart = time.Now().AddDate(0, 2, 0).Truncate(time.Hour)

func (k kind) args(name string) map[string]any {
	switch k.tool {
	case "gmail_send":
		m := testkit.Mail("bob@example.org", name, "hello")
		if strings.HasSuffix(name, fromDesk) {
			m["from"] = desk
		}
		if _, id, ok := strings.Cut(name, withFile); ok {
			m["attachments"] = []any{map[string]any{"messageId": id}}
		}
		return m
	case "note", mcpTool, memory.Remember:
		return map[string]any{"text": name}
	case "run_command":
		return testkit.Command(name)
	case commandList.tool:
		return listed(name)
	case upload.tool:
		return uploading(name)
	}
	e := testkit.Event(name, eventStart)
	e["attendees"] = []string{"bob@example.org"}
	return e
}

// edited returns the arguments after the user's edit.
func (k kind) edited(name string) map[string]any {
	a := k.args(name)
	switch k.tool {
	case "gmail_send":
		a["body"] = "hello again"
	case "note", mcpTool, memory.Remember:
		a["text"] = name + ", edited"
	case "run_command":
		a["command"] = strings.Replace(name, " run ", " edited run ", 1)
	case commandList.tool:
		return listed(strings.Replace(name, " run ", " edited run ", 1))
	case upload.tool:
		a["path"] = putInto + "/" + otherName(name)
	default:
		a["location"] = "at home"
	}
	return a
}

// answer calls the tool in the prompt once.
func answer(r fakegemini.Request) fakegemini.Turn {
	if turn, ok := plansAnswer(r); ok {
		return turn
	}
	if len(r.Responses()) > 0 || r.NoTools {
		return fakegemini.Turn{Text: "That is what came of it."}
	}
	tool, name, _ := strings.Cut(r.User(), " ")
	for _, k := range everyKind {
		if k.tool == tool {
			return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: k.args(name)}}}
		}
	}
	return fakegemini.Turn{Text: "I do not know that."}
}

// step is one action of a client, the queue or the scheduler. One worker handles it. If that worker dies, the step is
// repeated as its caller would repeat it.
type step struct {
	name  string
	ready func(*trial) bool // the precondition; nil: none
	do    func(t *trial, to *process)
}

// scenario is a sequence of steps.
type scenario struct {
	name    string
	ttl     time.Duration // the lifetime of an approval
	steps   []step
	fits    func(kind) bool
	effects func(n int) bool // reports whether n effects, apart from reviews, are allowed at the end
	ends    bool             // the run can end during an effect, which then becomes a review
	lasts   time.Duration    // how long a command runs
	within  time.Duration    // time from the session's start to its deadline; 0: two days
}

const (
	longTTL  = time.Hour
	shortTTL = 400 * time.Millisecond
)

var (
	once      = func(n int) bool { return n == 1 }
	twice     = func(n int) bool { return n == 2 }
	never     = func(n int) bool { return n == 0 }
	either    = func(n int) bool { return n <= 1 }
	anyOf     = func(k kind) bool { return !k.readsOnly && !k.plans && !k.mailed }
	readsOnly = func(k kind) bool { return k.readsOnly }
	// calls that reach only people, and use nothing else such as another address of the account
	people = func(k kind) bool { return k.tool == "gmail_send" && !k.alias && !k.file || makesEvents(k) }
	// commands that last, unlike an upload
	lasting = func(k kind) bool { return k.onHost && !k.readsOnly && k.tool != upload.tool }

	makesEvents = func(k kind) bool { return k.tool == calendar.Name }
)

// Durations of commands. A command takes longer if the scenario must act while it runs.
const (
	shortly = 200 * time.Millisecond
	longer  = 8 * time.Second
)

var scenarios = slices.Concat([]scenario{
	{"approve", longTTL, []step{start(0), decide("approve_once"), deliver}, anyOf, once, false, shortly, 0},
	{"edit", longTTL, []step{start(0), decide("approve_with_edits"), deliver}, anyOf, once, false, shortly, 0},
	{"always allow", longTTL, []step{start(0), decide("approve_and_always_allow_recipient"), deliver, start(1)}, people,
		twice, false, shortly, 0},
	{"auto-run", longTTL, []step{start(0), deliver}, readsOnly, once, false, 0, 0},
	{"reject", longTTL, []step{start(0), decide("reject"), deliver}, anyOf, never, false, shortly, 0},
	{"cancel", longTTL, []step{start(0), cancel, deliver}, anyOf, never, false, shortly, 0},
	{"cancel after the yes", longTTL, []step{start(0), decide("approve_once"), cancel, deliver}, anyOf, either, true,
		shortly, 0},
	{"cancel in the middle", longTTL, []step{start(0), decide("approve_once"), cancelAmid, deliver}, lasting, either,
		true, longer, 0},
	{"hold", longTTL, []step{start(0), hold(time.Second), deliver}, anyOf, once, false, shortly, 0},
	{"undo", longTTL, []step{start(0), hold(undoable), undo, deliver}, anyOf, never, false, shortly, 0},
	{"take back", longTTL, []step{start(0), decide("approve_once"), deliver, takeBack, approveIt, deliver}, makesEvents,
		twice, false, shortly, 0},
	{"expire", shortTTL, []step{start(0), expire, deliver, tooLate}, anyOf, never, false, shortly, 0},
}, planScenarios, waitScenarios, reminderScenarios)

// want ends the step unless the response has one of the statuses.
func want(what string, a testkit.Answer, err error, statuses ...int) {
	if proof.Must(err); !slices.Contains(statuses, a.HTTP) {
		proof.Must(fmt.Errorf("%s: %d %s", what, a.HTTP, a.Body))
	}
}

// start requests the n-th run of the trial, with the run's idempotency key.
func start(n int) step {
	name := fmt.Sprintf("start %d", n+1)
	return step{name, func(t *trial) bool { return n == 0 || t.over(n-1) }, func(t *trial, to *process) {
		ask := t.at(to).Ask
		if t.kind.onHost {
			ask = func(ctx context.Context, prompt string, header ...string) (testkit.Answer, error) {
				return t.at(to).AskOn(ctx, t.terminal, "", prompt, header...)
			}
		}
		if t.kind.tool == upload.tool {
			ask = t.askWithFile(to, n)
		}
		if t.kind.plans {
			ask = t.openSession(to)
		}
		a, err := ask(t.ctx, t.prompt(n), "Idempotency-Key", t.key(n))
		if want(name, a, err, http.StatusOK, http.StatusAccepted); a.RunID != t.runs[n] {
			proof.Must(fmt.Errorf("%s: unexpected run %s", name, a.RunID))
		}
	}}
}

func decide(decision string) step {
	return step{decision, (*trial).asked, func(t *trial, to *process) {
		if t.slow {
			return
		}
		var edited any
		if decision == "approve_with_edits" {
			edited = t.kind.edited(t.subject(0))
		}
		a, err := t.at(to).Decide(t.ctx, t.approval, decision, edited)
		want(decision, a, err, http.StatusOK)
	}}
}

// undoable is how long an approval can be undone in the scenario that undoes it.
const undoable = time.Minute

// hold approves an action that can be undone for the given time.
func hold(d time.Duration) step {
	return step{fmt.Sprintf("hold for %s", d), (*trial).asked, func(t *trial, to *process) {
		if t.slow {
			return
		}
		a, err := t.at(to).Hold(t.ctx, t.approval, "approve_once", int(d.Seconds()))
		want("hold", a, err, http.StatusOK)
	}}
}

// undo withdraws the approval while the action is held.
var undo = step{"undo", nil, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to).Resolve(t.ctx, t.approval, "undo")
	want("undo", a, err, http.StatusOK)
}}

// tooLate approves an expired approval. A run that was interrupted at its start may have none.
var tooLate = step{"a late yes", func(t *trial) bool { return t.over(0) }, func(t *trial, to *process) {
	late := testkit.Approval{ApprovalID: run.ApprovalID(t.runs[0], 1)}
	a, err := t.at(to).Resolve(t.ctx, late, "approve_once")
	want("a late yes", a, err, http.StatusGone, http.StatusNotFound)
}}

var cancel = step{"cancel", (*trial).asked, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to).Cancel(t.ctx, t.runs[0])
	want("cancel", a, err, http.StatusOK)
}}

// cancelAmid cancels the run while its command runs.
var cancelAmid = step{"cancel in the middle", nil, func(t *trial, to *process) {
	t.env.worker = to
	moved := make(chan error, 1)
	go func() { moved <- t.env.deliver(t.ctx, to) }()
	over := false
	for len(t.effects()) == 0 && !over {
		select {
		case err := <-moved:
			moved <- err
			over = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	a, err := t.at(to).Cancel(t.ctx, t.runs[0])
	want("cancel", a, err, http.StatusOK, http.StatusConflict)
	proof.Must(t.env.deliver(t.ctx, to)) // this interrupts the command, whatever happened to the first delivery
	proof.Must(<-moved)
}}

// deliver pushes the queue's messages to the worker.
var deliver = step{"deliver", nil, func(t *trial, to *process) {
	t.env.worker = to
	proof.Must(t.env.deliver(t.ctx, to))
}}

// expire sweeps after the approval has expired.
var expire = step{"sweep", (*trial).expired, func(t *trial, to *process) { proof.Must(t.env.sweep(t.ctx, to)) }}

// errDown means that the worker did not answer, for example because it died.
var errDown = errors.New("the worker does not answer")
