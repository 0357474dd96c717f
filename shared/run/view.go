package run

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/timezone"
	"github.com/countersign-run/countersign/shared/tool"
)

// A View is a run as its owner sees it (contract §1; seed 000 §2).
type View struct {
	OK          bool          `json:"ok"`
	RunID       string        `json:"runId"`
	ThreadID    string        `json:"threadId"`
	Terminal    string        `json:"terminalId,omitempty"` // that it is on, if it is on one
	Agent       string        `json:"agent"`
	Via         *Via          `json:"via,omitempty"` // another program's agent that began it
	Status      Status        `json:"status"`
	Summary     string        `json:"summary"`
	Record      string        `json:"record,omitempty"` // what an ended run has done and what it has not
	Actions     []*ActionView `json:"actions"`
	Calls       []CallView    `json:"calls,omitempty"` // that wait for the client
	ErrorCode   fault.Class   `json:"errorCode,omitempty"`
	ErrorReason fault.Code    `json:"errorReason,omitempty"`
	Message     string        `json:"message,omitempty"`
	ModelCalls  int           `json:"modelCalls"`
	Usage       model.Usage   `json:"usage"`
	LastEvent   int64         `json:"lastEvent"`
	TimeZone    string        `json:"timeZone"`
	Locale      string        `json:"locale,omitempty"`
	CreatedAt   time.Time     `json:"createdAt"`
	UpdatedAt   time.Time     `json:"updatedAt"`
	Nonce       []byte        `json:"-"` // the run's
	Moving      bool          `json:"-"` // the server goes on with it by itself, be it elsewhere
	Cost        int64         `json:"-"` // of the model's calls so far, where the agent's budget has prices
	Overrun     *Overrun      `json:"-"` // with the errorReason CodeRunBudget: the limit that the run came to

	// Waiting are the approvals and reviews that the run waits for, as far as they were at hand.
	Waiting []ApprovalView `json:"-"`

	state     *State
	takenBack map[string]string // Run.TakenBack
}

// Answer returns the run's answer where that has a form ([State.Answer]).
func (v *View) Answer() json.RawMessage { return v.state.Answer() }

// LastWords returns what the model said last, whole: its words, or the arguments with which it called a tool.
func (v *View) LastWords() string {
	if len(v.state.Turns) == 0 {
		return ""
	}
	said, err := model.Parse(v.state.Turns[len(v.state.Turns)-1].Content)
	switch {
	case err != nil:
		return ""
	case said.Text == "" && len(said.Calls) > 0:
		return string(said.Calls[len(said.Calls)-1].Args)
	}
	return said.Text
}

// PlanState returns the run as it was folded, for the views of its plan. It is nil for a run that does not plan.
func (v *View) PlanState() *State {
	if v.state == nil || v.state.Plan == nil {
		return nil
	}
	return v.state
}

// Text returns the whole answer of a run that has completed ([State.Text]).
func (v *View) Text() string { return v.state.Text() }

// An ActionView is an action as its owner sees it: the record of seed 000 §9. Its arguments are in
// its record alone, and of them its step shows what it shows, if its tool's calls are shown as steps.
type ActionView struct {
	ActionID         string       `json:"actionId"`
	Tool             string       `json:"tool"`
	ToolName         string       `json:"toolName"` // the same value under the name of seed 000 §9
	Status           ActionStatus `json:"status"`
	RequiresApproval bool         `json:"requiresApproval"`
	ApprovalID       string       `json:"approvalId,omitempty"`
	Kind             Kind         `json:"kind,omitempty"`
	Decision         Decision     `json:"decision,omitempty"`
	Class            tool.Class   `json:"class,omitempty"`
	Edited           bool         `json:"edited,omitempty"`
	ErrorCode        fault.Class  `json:"errorCode,omitempty"`
	ErrorReason      fault.Code   `json:"errorReason,omitempty"`
	Message          string       `json:"message,omitempty"`
	Field            string       `json:"field,omitempty"`
	ExecutionStatus  Execution    `json:"executionStatus"`
	PolicyDecision   string       `json:"policyDecision,omitempty"`
	Unasked          bool         `json:"unasked,omitempty"` // it was done, with its effect, and nobody was asked
	InputHash        string       `json:"inputHash,omitempty"`
	ModelName        string       `json:"modelName,omitempty"`
	Step             *tool.Step   `json:"step,omitempty"`     // where the tool's calls are shown as steps
	HeldUntil        time.Time    `json:"heldUntil,omitzero"` // of a call that is approved and not begun
	ReplacedBy       string       `json:"replacedBy,omitempty"`
	PlannedAt        time.Time    `json:"plannedAt"`
	UpdatedAt        time.Time    `json:"updatedAt"`

	Record *ActionRecord `json:"record,omitempty"` // of GET /runs/{id} ([View.AddRecords])
}

// A CallView is a call that waits for its client, which carries it out and sends what became of it.
type CallView struct {
	CallID    string          `json:"callId"` // the action's id
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`
	ExpiresAt time.Time       `json:"expiresAt"` // from then on an answer is refused
}

// NewView returns the run as its owner sees it; summary describes a run that has not ended.
func NewView(r Run, s *State, summary string) *View {
	v := &View{OK: true, RunID: r.ID, ThreadID: r.ThreadID, Terminal: r.Terminal, Agent: r.AgentName(),
		Via: s.Input.Via, Status: s.Status, Summary: summary,
		Actions:    []*ActionView{},
		ModelCalls: len(s.Turns), Usage: s.Usage, LastEvent: r.Log.Count,
		TimeZone: cmp.Or(r.Region.TimeZone, timezone.UTC), Locale: r.Region.Locale, CreatedAt: r.CreatedAt,
		UpdatedAt: r.UpdatedAt, Nonce: r.Nonce, state: s, Cost: s.Cost, takenBack: r.TakenBack}
	for _, a := range s.Actions {
		v.Actions = append(v.Actions, NewActionView(r.Nonce, s, a))
		if a.WaitsForClient() && s.End == nil {
			v.Calls = append(v.Calls, CallView{a.ID, a.Tool, a.Args, a.ExpiresAt})
		}
	}
	if s.End != nil {
		v.Summary, v.Record = s.End.Summary, s.End.Record
		if info := s.End.Error; info != nil {
			v.ErrorCode, v.ErrorReason, v.Message = info.Class, info.Code, info.Message
			v.Overrun = info.Overrun
		}
	}
	return v
}

// NewActionView returns the action as its owner sees it. Its input hash is the audit's, made with the run's nonce.
func NewActionView(nonce []byte, s *State, a *Action) *ActionView {
	v := &ActionView{ActionID: a.ID, Tool: a.Tool, ToolName: a.Tool, Status: a.Status,
		RequiresApproval: a.RequiresApproval, ApprovalID: a.ApprovalID, Kind: a.Kind,
		Decision: a.Decision, Class: a.Ruled.Of(), Edited: a.Edited, ExecutionStatus: a.Execution,
		PolicyDecision: a.PolicyDecision, Unasked: a.doneUnasked(),
		InputHash:  audit.InputHash(nonce, a.ArgsHash),
		ReplacedBy: a.ReplacedBy, PlannedAt: a.PlannedAt, UpdatedAt: a.UpdatedAt}
	if a.Turn >= 1 && a.Turn <= len(s.Turns) {
		v.ModelName = s.Turns[a.Turn-1].Model
	}
	if a.Runnable() {
		v.HeldUntil = a.HeldUntil
	}
	if info := a.Error; info != nil {
		v.ErrorCode, v.ErrorReason, v.Message, v.Field = info.Class, info.Code, info.Message, info.Field
	}
	return v
}

// doneUnasked reports whether the call was carried out, and had an effect that its user neither called for, nor had in
// a page of theirs, nor was asked about.
func (a *Action) doneUnasked() bool {
	own := a.UserInitiated || a.Kind == KindCall
	return a.SideEffect && a.Execution == Succeeded && a.ApprovalID == "" && !own
}

// An ApprovalView is a waiting call as the user who must decide sees it (contract §1).
type ApprovalView struct {
	ApprovalID  string          `json:"approvalId"`
	Kind        Kind            `json:"kind"`
	RunID       string          `json:"runId"`
	ThreadID    string          `json:"threadId"`
	ActionID    string          `json:"actionId"`
	Tool        string          `json:"tool"`
	Args        json.RawMessage `json:"args"`
	ArgsHash    string          `json:"argsHash"`
	Class       tool.Class      `json:"class,omitempty"`
	Preview     tool.Preview    `json:"preview"`
	TimeZone    string          `json:"timeZone"` // of the times in the preview
	Reason      string          `json:"reason"`
	Findings    []Finding       `json:"findings,omitempty"`
	Decisions   []Decision      `json:"decisions"`
	RequestedAt time.Time       `json:"requestedAt"`
	ExpiresAt   time.Time       `json:"expiresAt"`
	HeldUntil   time.Time       `json:"heldUntil,omitzero"` // it is approved, and that can be taken back until then
	InsteadOf   []EarlierCard   `json:"insteadOf,omitempty"`
}

// View returns the approval as its user sees it.
func (a Approval) View() ApprovalView {
	return ApprovalView{a.ID, a.Kind, a.RunID, a.ThreadID, a.ActionID, a.Tool, a.Args, a.ArgsHash, a.Ruled.Of(),
		a.Preview, cmp.Or(a.TimeZone, timezone.UTC), a.Reason, a.Findings, a.Decisions, a.RequestedAt, a.ExpiresAt,
		time.Time{}, a.InsteadOf}
}

// An EventView is a numbered event as a watching client sees it: no arguments, no model contents.
type EventView struct {
	Seq      int64       `json:"seq"`
	Type     EventType   `json:"type"`
	At       time.Time   `json:"at"`
	Status   Status      `json:"status,omitempty"`
	Agent    string      `json:"agent,omitempty"` // the run's, in its first event
	Text     string      `json:"text,omitempty"`
	Action   *ActionView `json:"action,omitempty"`
	Decision Decision    `json:"decision,omitempty"`

	Compressed *CompressedView `json:"compressed,omitempty"`

	Plan *plan.Event `json:"plan,omitempty"` // of a run that plans: what became of its plan
	Act  *ActView    `json:"act,omitempty"`  // of such a run
}

// An ActView is a call of a run that plans as a watching owner sees it: with what it is proposed, why, and later with
// what it returned.
type ActView struct {
	Reason      string          `json:"reason,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Grant       string          `json:"grantId,omitempty"` // that allowed it
	Observation json.RawMessage `json:"observation,omitempty"`
	Untrusted   bool            `json:"untrusted,omitempty"` // the observation is text from strangers
}

// CompressedView is a compression as a watching client sees it.
type CompressedView struct {
	Turns        int        `json:"turns"` // closed turns that a summary stands for from here on
	TokensBefore int        `json:"tokensBefore"`
	TokensAfter  int        `json:"tokensAfter"`
	Model        string     `json:"model,omitempty"` // that made the summary
	Code         fault.Code `json:"code,omitempty"`  // why there is no summary although one was asked for
}

// ViewEvents returns the events with numbers above after, each with the action as it was then. It folds all of events,
// since an event says only what changed.
func ViewEvents(nonce []byte, tools tool.Set, events []Event, after int64) ([]EventView, error) {
	var out []EventView
	s := &State{}
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			return nil, err
		}
		if e.Seq <= after {
			continue
		}
		v := EventView{Seq: e.Seq, Type: e.Type, At: e.At, Status: e.Status, Plan: e.Planned}
		switch {
		case e.Queued != nil:
			v.Agent = cmp.Or(e.Queued.Agent, Assistant)
		case e.Turn != nil && e.Turn.Calls == 0:
			v.Text = e.Turn.Text
		case e.Decided != nil:
			v.Decision = e.Decided.Decision
		case e.Compressed != nil:
			c := e.Compressed
			v.Compressed = &CompressedView{c.Turns, c.Before, c.After, c.Model, c.Code}
		case e.End != nil:
			v.Status, v.Text = e.End.Status, e.End.Summary
		}
		if a := s.Action(e.ActionID); a != nil {
			v.Action = NewActionView(nonce, s, a)
			v.Action.Step = StepOf(tools, a)
			v.Act = s.actView(a, e)
		}
		out = append(out, v)
	}
	return out, nil
}
