package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Story holds the stored facts of a run: events, decisions, outcomes and audit entries. Only the fields named Content
// hold contents (prompts, arguments, previews, results, comments, summaries), and only if the operator asks for them.
type Story struct {
	RunID     string          `json:"runId"`
	UID       string          `json:"uid"`
	ThreadID  string          `json:"threadId,omitempty"`
	Status    run.Status      `json:"status"` // empty if the run was deleted
	CreatedAt time.Time       `json:"createdAt,omitzero"`
	UpdatedAt time.Time       `json:"updatedAt,omitzero"`
	Deadline  time.Time       `json:"deadline,omitzero"`
	LeasedTo  time.Time       `json:"leasedUntil,omitzero"` // when the lease of the process that works on the run ends
	Events    []StoryEvent    `json:"events"`
	Approvals []StoryApproval `json:"approvals"`
	Outcomes  []StoryOutcome  `json:"outcomes"`
	Audit     []audit.Entry   `json:"audit"`
	Chain     []string        `json:"chain"`   // problems of the audit's chain, or empty
	Vouched   bool            `json:"vouched"` // the chain's head is stored, so truncation is detected
}

// StoryEvent is an event without contents.
type StoryEvent struct {
	Seq      int64         `json:"seq"`
	At       time.Time     `json:"at"`
	Type     run.EventType `json:"type"`
	ActionID string        `json:"actionId,omitempty"`
	Says     string        `json:"says,omitempty"`
	Content  *run.Event    `json:"content,omitempty"`
}

// StoryApproval is an approval without contents.
type StoryApproval struct {
	ApprovalID  string             `json:"approvalId"`
	Kind        run.Kind           `json:"kind"`
	Tool        string             `json:"tool"`
	Status      run.ApprovalStatus `json:"status"`
	RequestedAt time.Time          `json:"requestedAt"`
	ExpiresAt   time.Time          `json:"expiresAt"`
	Decision    run.Decision       `json:"decision,omitempty"`
	DecidedBy   string             `json:"decidedBy,omitempty"`
	DecidedAt   time.Time          `json:"decidedAt,omitzero"`
	Refusals    int                `json:"refusals,omitempty"`
	Content     *run.Approval      `json:"content,omitempty"`
}

// StoryOutcome is the recorded outcome of a call.
type StoryOutcome struct {
	ActionID  string           `json:"actionId"`
	Tool      string           `json:"tool"`
	Effect    bool             `json:"effect"`
	Status    run.ActionStatus `json:"status"`
	Execution run.Execution    `json:"execution"`
	Attempts  int              `json:"attempts,omitempty"`
	Handle    string           `json:"handle,omitempty"` // the provider's ID, such as that of a draft
	Class     fault.Class      `json:"class,omitempty"`
	Code      fault.Code       `json:"code,omitempty"`
	Content   json.RawMessage  `json:"content,omitempty"` // the provider's answer
}

func story(flags *flag.FlagSet) runFunc {
	asJSON := flags.Bool("json", false, "print JSON")
	reveal := flags.Bool("reveal", false,
		"include prompts, arguments, addresses and answers; these are private: keep them out of tickets and logs")
	return func(ctx context.Context, o *operator, args []string) error {
		a, err := o.app(ctx)
		if err != nil {
			return err
		}
		s, err := readStory(ctx, a.API.Records, args[0], *reveal)
		if err != nil {
			return err
		}
		if *reveal {
			if _, err := fmt.Fprintln(o.errs,
				"ops: this output contains private texts and addresses: keep it out of tickets and logs"); err != nil {
				return err
			}
		}
		if *asJSON {
			return indented(o, s)
		}
		return o.print(s)
	}
}

func indented(o *operator, v any) error {
	e := json.NewEncoder(o.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// attempts limits how often a run is read again because it changed during the read.
const attempts = 5

// readStory reads a run again until it did not change during the read.
func readStory(ctx context.Context, r *records.Records, runID string, reveal bool) (*Story, error) {
	if !run.ValidID(runID) {
		return nil, errors.New("RUN is not a valid run ID")
	}
	for range attempts {
		got, found, err := r.Run(ctx, runID)
		if err != nil {
			return nil, err
		}
		s, err := read(ctx, r, runID, got, found, reveal)
		if err != nil {
			return nil, err
		}
		now, still, err := r.Run(ctx, runID)
		if err != nil {
			return nil, err
		}
		if still == found && now.Audit == got.Audit && now.Log.Count == got.Log.Count {
			return s, nil
		}
	}
	return nil, fmt.Errorf("run %s changed during each read; try again", runID)
}

func read(ctx context.Context, r *records.Records, runID string, got run.Run, found, reveal bool) (*Story, error) {
	s := &Story{RunID: runID, Events: []StoryEvent{}, Approvals: []StoryApproval{}, Outcomes: []StoryOutcome{},
		Audit: []audit.Entry{}, Chain: []string{}, Vouched: found}
	entries, end, err := r.Chain(ctx, runID)
	if err != nil {
		return nil, err
	}
	head := got.Audit
	s.Audit = append(s.Audit, entries...)
	switch {
	case !found && len(entries) == 0 && end == nil:
		return nil, fmt.Errorf("no run %s, and no audit entries of one", runID)
	case !found:
		if len(entries) > 0 {
			s.UID = entries[0].UID
		}
		if head, s.Vouched = audit.HeadOf(entries), end != nil; end != nil {
			head = *end
		}
	default:
		kept, err := r.RunDetails(ctx, got)
		if err != nil {
			return nil, err
		}
		s.fill(got, kept, reveal)
	}
	for _, p := range audit.VerifyAt(time.Now(), s.Audit, head) {
		s.Chain = append(s.Chain, p.String())
	}
	return s, nil
}

func (s *Story) fill(r run.Run, kept records.RunDetails, reveal bool) {
	s.UID, s.ThreadID, s.Status = r.UID, r.ThreadID, kept.State.Status
	s.CreatedAt, s.UpdatedAt, s.Deadline, s.LeasedTo = r.CreatedAt, r.UpdatedAt, r.Deadline, r.Lease.Until
	by := map[string]string{}
	for _, e := range kept.Events {
		h := StoryEvent{Seq: e.Seq, At: e.At, Type: e.Type, ActionID: e.ActionID, Says: describe(e)}
		if reveal {
			h.Content = &e
		}
		if e.Decided != nil {
			by[e.Decided.ApprovalID] = e.Decided.By
		}
		s.Events = append(s.Events, h)
	}
	for _, a := range kept.Approvals {
		asked := StoryApproval{a.ID, a.Kind, a.Tool, a.Status, a.RequestedAt, a.ExpiresAt, a.Decision, by[a.ID],
			a.DecidedAt, a.Refusals, nil}
		if reveal {
			asked.Content = &a
		}
		s.Approvals = append(s.Approvals, asked)
	}
	for _, a := range kept.State.Actions {
		s.Outcomes = append(s.Outcomes, outcome(a, reveal))
	}
}

func outcome(a *run.Action, reveal bool) StoryOutcome {
	o := StoryOutcome{ActionID: a.ID, Tool: a.Tool, Effect: a.SideEffect, Status: a.Status, Execution: a.Execution,
		Attempts: a.Started.Attempt, Handle: a.Started.Handle}
	if a.Error != nil {
		o.Class, o.Code = a.Error.Class, a.Error.Code
	}
	if reveal {
		o.Content = a.Result
	}
	return o
}

// describe describes an event without texts of the user or the model.
func describe(e run.Event) string {
	switch {
	case e.Turn != nil:
		return fmt.Sprintf("%s, %d calls", e.Turn.Model, e.Turn.Calls)
	case e.Proposed != nil:
		// The name comes from the model, so it is quoted.
		return fmt.Sprintf("%.64q, policy %s", e.Proposed.Tool, e.Proposed.PolicyDecision)
	case e.Wait != nil:
		return fmt.Sprintf("%s %s until %s", e.Wait.Kind, e.Wait.ApprovalID, e.Wait.ExpiresAt.Format(time.RFC3339))
	case e.Decided != nil:
		return fmt.Sprintf("%s by %s", e.Decided.Decision, e.Decided.By)
	case e.Started != nil:
		return fmt.Sprintf("attempt %d", e.Started.Attempt)
	case e.Finished != nil:
		return fmt.Sprintf("%s, execution %s%s", e.Finished.Status, e.Finished.Execution, errorText(e.Finished.Error))
	case e.Cleaned != nil:
		return fmt.Sprintf("%d removed%s", e.Cleaned.Removed, errorText(e.Cleaned.Error))
	case e.End != nil:
		return string(e.End.Status) + errorText(e.End.Error)
	}
	return string(e.Status)
}

func errorText(p *run.ErrorInfo) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(", %s %s", p.Class, p.Code)
}
