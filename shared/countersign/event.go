package countersign

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Event is one thing that happened while a run moved: *[Text], *[ToolStarted], *[ToolFinished], *[Asked],
// *[ChatCompressed], *[SkillActivated] or *[Finished]. Its types are those of this package, and later releases may add
// some: a switch over them needs no default. An event is never changed after it was yielded.
type Event interface{ event() }

// Text is a piece of the model's text as it came. Pieces that came while the loop's body was busy are joined. They are
// not stored: what a later process tells of the run are its stored events.
type Text struct{ Delta string }

// ToolStarted says that a call is about to be carried out.
type ToolStarted struct {
	Seq      int64  // the number of the run's stored event; 0 of a call that leaves no trace before its result
	ActionID string // the call's id, the same across crashes
	Tool     string
	Args     json.RawMessage // canonical, as they were approved if they were
}

// ToolFinished says what became of a call.
type ToolFinished struct {
	Seq       int64
	ActionID  string
	Tool      string
	Result    json.RawMessage // the tool's result, as the model reads it; nil if there is none
	Err       error           // of the tool, or of encoding its result, in the process that called it; or an [*Error]
	Truncated bool            // the result was longer than 64 KiB, and was cut
}

// Asked says that a call waits for a decision, and that the question is stored.
type Asked struct {
	Seq      int64
	Approval Approval
}

// ChatCompressed reports that the model sees less of the conversation from here on.
type ChatCompressed struct {
	Seq                       int64
	TokensBefore, TokensAfter int // of the request, estimated from what the service counted last
}

// Finished is the last event of a stream that ends without an error: the run has ended, or it waits.
type Finished struct{ Result }

func (*Text) event()           {}
func (*ToolStarted) event()    {}
func (*ToolFinished) event()   {}
func (*Asked) event()          {}
func (*ChatCompressed) event() {}
func (*Finished) event()       {}

// Status says how far a run is.
type Status string

// The statuses of a run.
const (
	Running   Status = "running"   // a process moves it
	CutOff    Status = "cut_off"   // no process moves it: [Session.Continue] does
	Waiting   Status = "waiting"   // for decisions: [Agent.Resolve], or [Session.Abandon]
	Completed Status = "completed" //
	Failed    Status = "failed"    //
)

// Usage is the number of the model's tokens, as the service reports them.
type Usage struct{ Prompt, Cached, Output, Thoughts, Total int }

// Result is what came of a run.
type Result struct {
	SessionID string
	RunID     string
	Status    Status // [Completed], [Failed] or [Waiting]
	Text      string // the model's last words, of a failed run too; empty while the run waits
	Usage     Usage
	Cost      int64      // of the model so far, in millionths of the currency of Budget.Prices
	Approvals []Approval // that the run waits for
}

// ended reports whether a stored run of the status has ended.
func ended(s run.Status) bool { return s == run.Completed || s == run.Failed }
