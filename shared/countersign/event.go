package countersign

import (
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Event is one thing that happened in an advancing run: *[Thought], *[Text], *[ToolStarted], *[ToolFinished],
// *[Asked], *[ChatCompressed], *[SkillActivated] or *[Finished]. Only this package defines event types, and later
// releases can add some, so a switch over them should ignore unknown types. An event does not change after it was
// yielded.
type Event interface{ event() }

// Text is a piece of the model's text as it arrived. Pieces that arrive while the loop's body is busy are joined.
// Pieces are not stored, so a process that continues the run later does not yield them again.
type Text struct{ Delta string }

// Thought is a piece of the model's thoughts, as the service summarises them. They precede the text that they lead to.
// An agent with Options.Thoughts has them, if its model shows any.
type Thought struct{ Delta string }

// ToolStarted reports that a call is about to run.
type ToolStarted struct {
	Seq      int64  // the number of the run's stored event; 0 if the call stores nothing before its result
	ActionID string // the call's ID, the same after a crash
	Tool     string
	Args     json.RawMessage // canonical JSON; the approved arguments if the call was approved
}

// ToolFinished reports the end of a call.
type ToolFinished struct {
	Seq      int64
	ActionID string
	Tool     string
	Result   json.RawMessage // the tool's result as the model gets it; nil if there is none
	// the error of the tool, or of encoding its result, in the process that ran it; otherwise an [*Error]
	Err       error
	Truncated bool // whether the result exceeded 64 KiB and was cut
}

// Asked reports that a call waits for a decision, and that its approval is stored.
type Asked struct {
	Seq      int64
	Approval Approval
}

// ChatCompressed reports that the model gets a shorter view of the conversation from now on.
type ChatCompressed struct {
	Seq                       int64
	TokensBefore, TokensAfter int // of the request, estimated from the service's last count
}

// Finished is the last event of a stream that ends without an error. The run has ended, or waits for a decision.
type Finished struct{ Result }

func (*Text) event()           {}
func (*Thought) event()        {}
func (*ToolStarted) event()    {}
func (*ToolFinished) event()   {}
func (*Asked) event()          {}
func (*ChatCompressed) event() {}
func (*Finished) event()       {}

// Status is the state of a run.
type Status string

// The statuses of a run.
const (
	Running   Status = "running"   // a process is moving it
	CutOff    Status = "cut_off"   // no process is moving it: call [Session.Continue]
	Waiting   Status = "waiting"   // it waits for decisions: call [Agent.Resolve] or [Session.Abandon]
	Completed Status = "completed" //
	Failed    Status = "failed"    //
)

// Usage is the number of the model's tokens, as the service reports them.
type Usage struct{ Prompt, Cached, Output, Thoughts, Total int }

// Result is the result of a run.
type Result struct {
	SessionID string
	RunID     string
	Status    Status // [Completed], [Failed] or [Waiting]
	Text      string // the model's last text, also for a failed run; empty while the run waits
	Usage     Usage
	Cost      int64      // the model's costs so far, in millionths of the currency of Budget.Prices
	Approvals []Approval // the approvals that the run waits for
	Files     []File     // of answers and of MCP servers' results ([Session.Read])
}

// ended reports whether a run with the status has ended.
func ended(s run.Status) bool { return s == run.Completed || s == run.Failed }
