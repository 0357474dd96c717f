package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/timezone"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// A View is a run in the form that its owner sees (contract §1; seed 000 §2).
type View struct {
	OK          bool      `json:"ok"`
	RunID       string    `json:"runId"`
	ThreadID    string    `json:"threadId"`
	Terminal    string    `json:"terminalId,omitempty"` // the terminal that the run works on, if any
	Agent       string    `json:"agent"`
	DelegatedBy *Delegate `json:"via,omitempty"` // another program's agent that started the run
	Status      Status    `json:"status"`
	Summary     string    `json:"summary"`
	Record      string    `json:"record,omitempty"` // what an ended run has done and what it has not
	// Output is the typed answer of a run that began with a schema for it ([State.Answer]).
	Output      json.RawMessage    `json:"output,omitempty"`
	Attachments []attachment.Facts `json:"attachments,omitempty"` // the files of the prompt
	Files       []attachment.Facts `json:"files,omitempty"`       // the files of the answers and results
	Actions     []*ActionView      `json:"actions"`
	Calls       []CallView         `json:"calls,omitempty"` // calls that wait for the client
	ErrorCode   fault.Class        `json:"errorCode,omitempty"`
	ErrorReason fault.Code         `json:"errorReason,omitempty"`
	Message     string             `json:"message,omitempty"`
	Moments     []tool.Moment      `json:"moments,omitempty"` // points in time that Summary, Record and Message mention
	ModelCalls  int                `json:"modelCalls"`
	Usage       model.Usage        `json:"usage"`
	LastEvent   int64              `json:"lastEvent"`
	ResumesAt   time.Time          `json:"resumesAt,omitzero"` // when the model is asked again, which has no capacity
	TimeZone    string             `json:"timeZone"`
	Locale      string             `json:"locale,omitempty"`
	CreatedAt   time.Time          `json:"createdAt"`
	UpdatedAt   time.Time          `json:"updatedAt"`
	Nonce       []byte             `json:"-"` // the run's nonce
	Moving      bool               `json:"-"` // the server continues the run without a client, here or elsewhere
	Cost        int64              `json:"-"` // cost of the model calls so far, if the agent's budget has prices
	Overrun     *Overrun           `json:"-"` // with the errorReason CodeRunBudget: the limit that the run reached

	// Waiting holds the approvals and reviews that the run waits for, if they were loaded.
	Waiting []ApprovalView `json:"-"`

	state     *State
	takenBack map[string]string // Run.TakenBack
}

// LastWords returns the model's last answer in full: its text, or the arguments of its last call if there is no text.
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

// PlanState returns the run's folded state, for the views of its plan. It returns nil for a run without a plan.
func (v *View) PlanState() *State {
	if v.state == nil || v.state.Plan == nil {
		return nil
	}
	return v.state
}

// Text returns the whole answer of a completed run ([State.Text]).
func (v *View) Text() string { return v.state.Text() }

// An ActionView is an action in the form that its owner sees: the record of seed 000 §9. The arguments are only in
// Record and, in part, in Step.
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

	Moments []tool.Moment `json:"moments,omitempty"` // points in time that Message mentions

	ExecutionStatus Execution  `json:"executionStatus"`
	PolicyDecision  string     `json:"policyDecision,omitempty"`
	Ran             bool       `json:"ran,omitempty"`     // failed after it started; its effects until then remain
	Unasked         bool       `json:"unasked,omitempty"` // it had an effect, and the user was not asked
	InputHash       string     `json:"inputHash,omitempty"`
	ModelName       string     `json:"modelName,omitempty"`
	Step            *tool.Step `json:"step,omitempty"`     // set if the tool's calls are shown as steps
	HeldUntil       time.Time  `json:"heldUntil,omitzero"` // end of the undo window, before the call starts
	NotBefore       time.Time  `json:"notBefore,omitzero"` // of a postponed call: when it begins again
	WaitsFor        WaitsFor   `json:"waitsFor,omitempty"` // of a postponed call
	ReplacedBy      string     `json:"replacedBy,omitempty"`
	PlannedAt       time.Time  `json:"plannedAt"`
	UpdatedAt       time.Time  `json:"updatedAt"`

	Record *ActionRecord `json:"record,omitempty"` // in GET /runs/{id} ([View.AddRecords])
}

// A CallView is a call that waits for its client. The client runs it and sends the result.
type CallView struct {
	CallID    string          `json:"callId"` // the action's ID
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`
	ExpiresAt time.Time       `json:"expiresAt"` // later answers are refused
}

// NewView returns the run in the form that its owner sees. summary describes a run that has not ended.
func NewView(r Run, s *State, summary string) *View {
	v := &View{OK: true, RunID: r.ID, ThreadID: r.ThreadID, Terminal: r.Terminal, Agent: r.AgentName(),
		DelegatedBy: s.Input.DelegatedBy, Status: s.Status, Summary: summary,
		Actions:    []*ActionView{},
		ModelCalls: len(s.Turns), Usage: s.Usage, LastEvent: r.Log.Count,
		TimeZone: cmp.Or(r.Locale.TimeZone, timezone.UTC), Locale: r.Locale.Language, CreatedAt: r.CreatedAt,
		UpdatedAt: r.UpdatedAt, Nonce: r.Nonce, state: s, Cost: s.Cost, takenBack: r.TakenBack, Output: s.Answer(),
		Attachments: attachment.FactsOf(s.Input.Files), Files: attachment.Made(s.Made)}
	if s.End == nil {
		v.ResumesAt = s.Waits.Until
	}
	for _, a := range s.Actions {
		v.Actions = append(v.Actions, NewActionView(r.Nonce, s, a))
		if a.WaitsForClient() && s.End == nil {
			v.Calls = append(v.Calls, CallView{a.ID, a.Tool, a.Args, a.ExpiresAt})
		}
	}
	if s.End != nil {
		v.Summary, v.Record, v.Moments = s.End.Summary, s.End.Record, slices.Clone(s.End.Moments)
		if info := s.End.Error; info != nil {
			v.ErrorCode, v.ErrorReason, v.Message = info.Class, info.Code, info.Message
			v.Overrun = info.Overrun
			v.Moments = addMoments(v.Moments, v.Message, MomentsOf(info.Message, r.UpdatedAt))
		}
	}
	return v
}

// NewActionView returns the action in the form that its owner sees. Its input hash is the one in the audit log, made
// with the run's nonce.
func NewActionView(nonce []byte, s *State, a *Action) *ActionView {
	v := &ActionView{ActionID: a.ID, Tool: a.Tool, ToolName: a.Tool, Status: a.Status,
		RequiresApproval: a.RequiresApproval, ApprovalID: a.ApprovalID, Kind: a.Kind,
		Decision: a.Decision, Class: a.Ruled.Of(), Edited: a.Edited, ExecutionStatus: a.Execution,
		PolicyDecision: a.PolicyDecision, Ran: a.Ran, Unasked: a.doneUnasked(),
		InputHash:  audit.InputHash(nonce, a.ArgsHash),
		ReplacedBy: a.ReplacedBy, PlannedAt: a.PlannedAt, UpdatedAt: a.UpdatedAt}
	if a.Turn >= 1 && a.Turn <= len(s.Turns) {
		v.ModelName = s.Turns[a.Turn-1].Model
	}
	if a.Runnable() {
		v.HeldUntil, v.NotBefore, v.WaitsFor = a.HeldUntil, a.NotBefore, a.WaitsFor
	}
	if info := a.Error; info != nil {
		v.ErrorCode, v.ErrorReason, v.Message, v.Field = info.Class, info.Code, info.Message, info.Field
		v.Moments = MomentsOf(info.Message, a.UpdatedAt)
	}
	return v
}

// doneUnasked reports whether the call had an effect that its user neither requested nor was asked about. A page's
// calls do not count.
func (a *Action) doneUnasked() bool {
	own := a.UserInitiated || a.Kind == KindCall
	return a.SideEffect && a.Execution == Succeeded && a.ApprovalID == "" && !own
}

// An ApprovalView is a waiting call in the form that the deciding user sees (contract §1).
type ApprovalView struct {
	ApprovalID  string          `json:"approvalId"`
	Kind        Kind            `json:"kind"`
	RunID       string          `json:"runId"`
	ThreadID    string          `json:"threadId"`
	Agent       string          `json:"agent"`
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
	HeldUntil   time.Time       `json:"heldUntil,omitzero"` // end of the undo window of an approved call
	InsteadOf   []EarlierCard   `json:"insteadOf,omitempty"`
	PasskeyFor  []Decision      `json:"passkeyFor,omitempty"` // of Decisions: see Approval
}

// View returns the approval in the form that its user sees.
func (a Approval) View() ApprovalView {
	return ApprovalView{a.ID, a.Kind, a.RunID, a.ThreadID, cmp.Or(a.Agent, Assistant), a.ActionID, a.Tool, a.Args,
		a.ArgsHash, a.Ruled.Of(), a.Shown(), cmp.Or(a.TimeZone, timezone.UTC), a.Reason, a.Findings, a.Decisions,
		a.RequestedAt, a.ExpiresAt, time.Time{}, a.InsteadOf, a.PasskeyFor}
}

// An EventView is a numbered event in the form that a watching client sees: without arguments and model contents.
type EventView struct {
	Seq      int64       `json:"seq"`
	Type     EventType   `json:"type"`
	At       time.Time   `json:"at"`
	Status   Status      `json:"status,omitempty"`
	Agent    string      `json:"agent,omitempty"` // the run's agent, in its first event
	Text     string      `json:"text,omitempty"`
	Until    time.Time   `json:"until,omitzero"` // when a postponed call begins again, or the model is asked again
	Action   *ActionView `json:"action,omitempty"`
	Decision Decision    `json:"decision,omitempty"`

	Compressed *CompressedView `json:"compressed,omitempty"`

	Plan *plan.Event `json:"plan,omitempty"` // a change of the plan, in a run with a plan
	Act  *ActView    `json:"act,omitempty"`  // a call, in a run with a plan
}

// An ActView is a call of a run with a plan in the form that a watching owner sees: its arguments and reason when the
// model proposes it, and later its result.
type ActView struct {
	Reason      string          `json:"reason,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Grant       string          `json:"grantId,omitempty"` // ID of the grant that allowed the call
	Observation json.RawMessage `json:"observation,omitempty"`
	Untrusted   bool            `json:"untrusted,omitempty"` // the observation is text from strangers
}

// CompressedView is a compression in the form that a watching client sees.
type CompressedView struct {
	Turns        int        `json:"turns"` // closed turns that a summary replaces from now on
	TokensBefore int        `json:"tokensBefore"`
	TokensAfter  int        `json:"tokensAfter"`
	Model        string     `json:"model,omitempty"` // the model that made the summary
	Code         fault.Code `json:"code,omitempty"`  // why a requested summary is missing
}

// ViewEvents returns the events with numbers above after, each with its action at that time. It folds all events,
// because an event holds only what changed. It returns the error of an event that is not permitted.
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
		case e.Postponed != nil:
			v.Until = e.Postponed.Until
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
