// Package tell tells a run to a client, from its stored events and whatever protocol the client speaks: each thing that
// happens once and in its order, whoever moves the run, and wherever the client takes up.
package tell

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
)

// A Voice says in a protocol what happens.
type Voice interface {
	Begin(r Run)   // before all else
	Changed(r Run) // its status, or what it waits for
	StartStep()    // one answer of the model, with the calls that it makes
	EndStep()
	StartText(id string)
	Text(id, delta string)
	EndText(id string)
	Thought(id, text string)
	Call(a *run.Action, args json.RawMessage)
	Ask(a *run.Action) // its user may say yes or no to the call
	Done(a *run.Action, result json.RawMessage)
	Denied(a *run.Action)
	Failed(a *run.Action, why string)
	CaughtUp()       // with what is stored: what follows happens now
	Rest(r Run)      // it has ended, or waits for somebody
	Fail(why string) // the stream ends, and the run may go on
}

// Run is a run as it stands.
type Run struct {
	ID, ThreadID string
	State        *run.State
	Approvals    []run.ApprovalView // that it waits for, where it rests
}

// Agent returns the name of the run's agent.
func (r Run) Agent() string { return cmp.Or(r.State.Input.Agent, run.Assistant) }

// Error returns why the run has failed, or "".
func (r Run) Error() string {
	if end := r.State.End; end != nil && end.Error != nil {
		return cmp.Or(end.Error.Message, "This failed.")
	}
	return ""
}

// Teller tells a run by a voice. What it is told twice it passes over.
type Teller struct {
	Voice
	run  Run
	told int64 // number of the last event that was added
	seen int64 // number of the last event that the client has been told of in an earlier stream

	answered []string   // ids of the approvals that show how far that is
	status   run.Status // that the client was told last

	begun, step bool
	text        string // id of the text that is open
	streamed    string // of the turn that the model is at
	parts       int    // texts and thoughts so far
}

// New returns what tells a run. A client that has answered approvals has it up to where it was asked about the last of
// them, and is told what came after that.
func New(runID, threadID string, answered []string, by Voice) *Teller {
	return &Teller{Voice: by, run: Run{ID: runID, ThreadID: threadID, State: &run.State{}}, answered: answered}
}

// Told returns the number of the last event that was added.
func (t *Teller) Told() int64 { return t.told }

// Delta adds a piece of the model's words, as they come.
func (t *Teller) Delta(text string) {
	t.begin()
	t.streamed += text
	t.say(text)
}

// Add adds the run's events that were not added yet.
func (t *Teller) Add(events []run.Event) error {
	var fresh []run.Event
	for _, e := range events {
		if e.Seq <= t.told {
			continue
		}
		if err := t.run.State.Apply(e); err != nil {
			return err
		}
		t.told, fresh = e.Seq, append(fresh, e)
		if e.Wait != nil && slices.Contains(t.answered, e.Wait.ApprovalID) {
			t.seen = e.Seq
		}
	}
	for _, e := range fresh {
		if e.Seq > t.seen {
			t.begin()
			t.tell(e)
		}
	}
	if t.begun {
		t.CaughtUp()
	}
	if len(fresh) > 0 && t.told > t.seen && t.status != t.run.State.Status {
		t.changed()
	}
	return nil
}

// Rest ends the telling for now: the run has ended, or waits for somebody, who is shown the approvals.
func (t *Teller) Rest(approvals []run.ApprovalView) {
	t.begin()
	t.endStep()
	if len(approvals) > 0 {
		t.run.Approvals = approvals
		t.changed()
	}
	t.Voice.Rest(t.run)
}

// Fail ends the stream.
func (t *Teller) Fail(why string) {
	t.endText()
	t.Voice.Fail(cmp.Or(why, "This failed."))
}

func (t *Teller) begin() {
	if !t.begun {
		t.begun = true
		t.Begin(t.run)
		t.changed()
	}
}

func (t *Teller) changed() {
	t.status = t.run.State.Status
	t.Changed(t.run)
}

// tell tells of one event. The state is that after all that are known: what was asked and has been decided since is not
// asked any more.
func (t *Teller) tell(e run.Event) {
	a := t.run.State.Action(e.ActionID)
	switch {
	case e.Turn != nil:
		t.tellTurn(e.Turn)
	case e.Proposed != nil:
		t.think(a.Reasoning)
		t.startStep()
		t.tellCall(a)
	case e.Wait != nil:
		t.tellWait(a, e.Wait)
	case e.Decided != nil:
		t.tellDecision(a, e.Decided.Decision)
	case e.Finished != nil:
		t.tellOutcome(a, e.Finished)
	case e.End != nil:
		t.tellEnd(e.End)
	}
}

// tellTurn tells what the model has said, as far as that was not told as it came.
func (t *Teller) tellTurn(turn *run.Turn) {
	streamed := t.streamed
	t.streamed = ""
	if streamed == "" {
		t.endStep()
	}
	if turn.OwnWork() || turn.Correction != "" {
		t.endText()
		return
	}
	t.think(model.Thoughts(turn.Content))
	rest, follows := strings.CutPrefix(turn.Text, streamed)
	if !follows && strings.HasPrefix(model.Words(turn.Content), streamed) {
		rest = "" // it was cut
	} else if !follows { // another process has asked the model again
		t.endText()
	}
	t.say(rest)
	t.endText()
}

// tellCall tells a call with the arguments that it has now: its user may have edited them.
func (t *Teller) tellCall(a *run.Action) {
	args := a.Args
	if args == nil { // they could not be read
		args = json.RawMessage("{}")
	}
	t.Call(a, args)
}

// tellWait asks the user for what may be answered with yes or no. A review may not.
func (t *Teller) tellWait(a *run.Action, w *run.Wait) {
	asks := w.Kind == run.KindApproval || w.Kind == run.KindPlan
	if !asks || !a.Waiting() || a.ApprovalID != w.ApprovalID {
		return
	}
	if w.Args != nil { // they have changed since they were proposed
		t.tellCall(a)
	}
	t.Ask(a)
}

// tellDecision tells of a decision that is the end of its call.
func (t *Teller) tellDecision(a *run.Action, d run.Decision) {
	switch d {
	case run.Reject, run.TakeBack, run.Undo:
		t.Denied(a)
	case run.ConfirmDone, run.Refine:
		t.Done(a, result(a.Result))
	}
}

func (t *Teller) tellOutcome(a *run.Action, f *run.Finished) {
	switch {
	case f.Status == run.ActionCompleted:
		t.Done(a, result(f.Result))
	case f.Status == run.ActionRejected:
		t.Denied(a)
	case f.Error != nil && f.Error.Message != "":
		t.Failed(a, f.Error.Message)
	default:
		t.Failed(a, "This was not done.")
	}
}

func result(of json.RawMessage) json.RawMessage {
	if of == nil {
		return json.RawMessage("null")
	}
	return of
}

// tellEnd tells the run's last words, without those of the model that were told with its turn. Why it has failed is
// told when it rests.
func (t *Teller) tellEnd(end *run.End) {
	if end.Status == run.Failed {
		return
	}
	own := end.Summary
	if n := len(t.run.State.Turns); n > 0 {
		if last := t.run.State.Turns[n-1]; last.Calls == 0 && last.Correction == "" && !last.OwnWork() {
			own = end.Summary[min(end.Words, len(end.Summary)):]
		}
	}
	if own = strings.TrimSpace(own); own != "" {
		t.endStep()
		t.say(own)
	}
}

// say adds to the text that is open, or opens one.
func (t *Teller) say(text string) {
	if text == "" {
		return
	}
	t.startStep()
	if t.text == "" {
		t.text = t.part("text")
		t.StartText(t.text)
	}
	t.Text(t.text, text)
}

// think tells what the model shows of its thoughts.
func (t *Teller) think(text string) {
	if text == "" {
		return
	}
	t.endText()
	t.startStep()
	t.Thought(t.part("reasoning"), text)
}

func (t *Teller) part(kind string) (id string) {
	t.parts++
	return kind + "-" + strconv.Itoa(t.parts)
}

func (t *Teller) endText() {
	if t.text != "" {
		t.EndText(t.text)
		t.text = ""
	}
}

func (t *Teller) startStep() {
	if !t.step {
		t.step = true
		t.StartStep()
	}
}

func (t *Teller) endStep() {
	t.endText()
	if t.step {
		t.step = false
		t.EndStep()
	}
}
