// Package stream streams a run to a client from the run's stored events, in the client's protocol. Each event is sent
// once and in order, whichever process advances the run and wherever the client resumes.
package stream

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/attachment"
)

// An Encoder encodes the events of a run in one protocol.
type Encoder interface {
	Begin(r Run)   // before anything else
	Changed(r Run) // the run's status or its waiting approvals changed
	StartStep()    // a step is one answer of the model and the calls that it makes
	EndStep()
	StartText(id string)
	Text(id, delta string)
	EndText(id string)
	StartThought(id string)
	Thought(id, delta string)
	EndThought(id string)
	File(f File) // a file of the answer, with its bytes and facts
	Call(a *run.Action, args json.RawMessage)
	Ask(a *run.Action) // the user can approve or reject the call
	Done(a *run.Action, result json.RawMessage)
	Denied(a *run.Action)
	Failed(a *run.Action, why string)
	CaughtUp()       // the stored events are sent; what follows happens now
	Rest(r Run)      // the run has ended, or waits for someone
	Fail(why string) // the stream ends; the run may continue
}

// Run is the current state of a run.
type Run struct {
	ID, ThreadID string
	State        *run.State
	Approvals    []run.ApprovalView // waiting approvals, if the run rests
}

// Agent returns the name of the run's agent.
func (r Run) Agent() string { return cmp.Or(r.State.Input.Agent, run.Assistant) }

// Error returns why the run failed, or "".
func (r Run) Error() string {
	if end := r.State.End; end != nil && end.Error != nil {
		return cmp.Or(end.Error.Message, "This failed.")
	}
	return ""
}

// Stream streams a run to an Encoder. It ignores events that it already has.
type Stream struct {
	Encoder
	run  Run
	told int64 // number of the last event added
	seen int64 // number of the last event that the client got in an earlier stream

	answered []string   // IDs of approvals that the client has answered, which determine seen
	status   run.Status // last status sent to the client

	begun, step bool
	text        string // ID of the open text
	thought     string // ID of the open thought
	streamed    string // the part of the current turn's text that is already sent
	thoughts    string // the part of its thoughts that is already sent
	parts       int    // number of texts and thoughts so far

	// Load reads a file of an answer; nil: none can be read. A file that was deleted has no bytes and is not sent.
	Load func(number int) []byte
}

// New returns a Stream for the run. A client that has answered approvals already has the run up to the last of those
// approvals, so it gets only what follows.
func New(runID, threadID string, answered []string, by Encoder) *Stream {
	return &Stream{Encoder: by, run: Run{ID: runID, ThreadID: threadID, State: &run.State{}}, answered: answered}
}

// Delivered returns the number of the last event added.
func (t *Stream) Delivered() int64 { return t.told }

// Think adds a piece of the model's thoughts as it arrives.
func (t *Stream) Think(text string) {
	t.begin()
	t.thoughts += text
	t.think(text)
}

// Delta adds a piece of the model's text as it arrives.
func (t *Stream) Delta(text string) {
	t.begin()
	t.streamed += text
	t.say(text)
}

// Add adds those of the run's events that are new.
func (t *Stream) Add(events []run.Event) error {
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

// Rest reports that the run has ended, or that it waits for someone to decide the approvals.
func (t *Stream) Rest(approvals []run.ApprovalView) {
	t.begin()
	t.endStep()
	if len(approvals) > 0 {
		t.run.Approvals = approvals
		t.changed()
	}
	t.Encoder.Rest(t.run)
}

// Fail ends the stream with an error.
func (t *Stream) Fail(why string) {
	t.endText()
	t.Encoder.Fail(cmp.Or(why, "This failed."))
}

func (t *Stream) begin() {
	if !t.begun {
		t.begun = true
		t.Begin(t.run)
		t.changed()
	}
}

func (t *Stream) changed() {
	t.status = t.run.State.Status
	t.Changed(t.run)
}

// tell sends one event. The state already includes every later event that is known, so an approval that has been
// decided since is not asked again.
func (t *Stream) tell(e run.Event) {
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

// tellTurn sends the part of the model's answer that was not streamed as it arrived.
func (t *Stream) tellTurn(turn *run.Turn) {
	streamed, thoughts := t.streamed, t.thoughts
	t.streamed, t.thoughts = "", ""
	if streamed+thoughts == "" {
		t.endStep()
	}
	if turn.OwnWork() || turn.Correction != "" {
		t.endText()
		return
	}
	if thoughts == "" { // otherwise they were sent before the text
		t.think(model.Thoughts(turn.Content))
	}
	rest, follows := strings.CutPrefix(turn.Text, streamed)
	if !follows && strings.HasPrefix(model.Words(turn.Content), streamed) {
		rest = "" // the text was shortened when it was stored
	} else if !follows { // another process has asked the model again
		t.endText()
	}
	t.say(rest)
	t.endText()
	t.tellFiles(turn.Files)
}

// tellFiles sends the files of an answer or of a result.
func (t *Stream) tellFiles(files []attachment.Stored) {
	for _, f := range attachment.Made(files) {
		if t.Load == nil {
			return
		}
		if data := t.Load(f.Number); data != nil {
			t.startStep()
			t.File(File{Name: f.Name, Data: data, Facts: f})
		}
	}
}

// tellCall sends a call with its current arguments, which the user may have edited.
func (t *Stream) tellCall(a *run.Action) {
	args := a.Args
	if args == nil { // the arguments could not be parsed
		args = json.RawMessage("{}")
	}
	t.Call(a, args)
}

// tellWait asks the user about a call that they can approve or reject. A review has other answers, so it is not asked
// here.
func (t *Stream) tellWait(a *run.Action, w *run.Wait) {
	asks := w.Kind == run.KindApproval || w.Kind == run.KindPlan
	if !asks || !a.Waiting() || a.ApprovalID != w.ApprovalID {
		return
	}
	if w.Args != nil { // the arguments have changed since the proposal
		t.tellCall(a)
	}
	t.Ask(a)
}

// tellDecision sends a decision that ends its call.
func (t *Stream) tellDecision(a *run.Action, d run.Decision) {
	switch d {
	case run.Reject, run.TakeBack, run.Undo:
		t.Denied(a)
	case run.ConfirmDone, run.Refine:
		t.Done(a, result(a, a.Result))
	}
}

func (t *Stream) tellOutcome(a *run.Action, f *run.Finished) {
	switch {
	case f.Status == run.ActionCompleted:
		t.Done(a, result(a, f.Result))
		t.tellFiles(f.Files)
	case f.Status == run.ActionRejected:
		t.Denied(a)
	case f.Error != nil && f.Error.Message != "":
		t.Failed(a, f.Error.Message)
	default:
		t.Failed(a, "This was not done.")
	}
}

// result returns the result of a call as the model gets it: a browser would round 9007199254740993. The result of a
// page's own tool stays as the page sent it.
func result(a *run.Action, of json.RawMessage) json.RawMessage {
	switch {
	case of == nil:
		return json.RawMessage("null")
	case a.Kind == run.KindCall:
		return of
	}
	return strictjson.Portable(of)
}

// tellEnd sends the run's summary, without the words of the model that its last turn already sent. Rest reports why a
// run failed.
func (t *Stream) tellEnd(end *run.End) {
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

// say adds to the open text, or opens one.
func (t *Stream) say(text string) {
	if text == "" {
		return
	}
	t.endThought()
	t.startStep()
	if t.text == "" {
		t.text = t.part("text")
		t.StartText(t.text)
	}
	t.Text(t.text, text)
}

// think sends the thoughts that the model shows.
func (t *Stream) think(text string) {
	if text == "" {
		return
	}
	if t.thought == "" {
		t.endText()
		t.startStep()
		t.thought = t.part("reasoning")
		t.StartThought(t.thought)
	}
	t.Thought(t.thought, text)
}

func (t *Stream) part(kind string) (id string) {
	t.parts++
	return kind + "-" + strconv.Itoa(t.parts)
}

func (t *Stream) endThought() {
	if t.thought != "" {
		t.EndThought(t.thought)
		t.thought = ""
	}
}

// endText ends the open text and the open thought.
func (t *Stream) endText() {
	t.endThought()
	if t.text != "" {
		t.EndText(t.text)
		t.text = ""
	}
}

func (t *Stream) startStep() {
	if !t.step {
		t.step = true
		t.StartStep()
	}
}

func (t *Stream) endStep() {
	t.endText()
	if t.step {
		t.step = false
		t.EndStep()
	}
}
