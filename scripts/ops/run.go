package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
)

// redrive publishes a resume of a run. This is always safe, because the resume function acts on the stored run.
func redrive(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, args []string) error {
		if !run.ValidID(args[0]) {
			return errors.New("RUN is not a valid run ID")
		}
		a, err := o.app(ctx)
		if err != nil {
			return err
		}
		r, found, err := a.API.Records.Run(ctx, args[0])
		if !found {
			return cmp.Or(err, fmt.Errorf("no run %s", args[0]))
		}
		var s records.RunDetails
		if err == nil {
			s, err = a.API.Records.RunDetails(ctx, r)
		}
		if err != nil { // the resume function may have a release that can read it
			err = o.printf("run %s cannot be read here: %v", args[0], err)
		} else {
			err = o.printf("run %s is %s since %s%s", r.ID, s.State.Status, r.UpdatedAt.Format(time.RFC3339),
				waitsFor(r, s.State))
		}
		if err != nil || s.State != nil && s.State.End != nil {
			return err
		}
		if err := a.Queue.Resume(ctx,
			queue.Message{RunID: args[0], Agent: r.AgentName(), UID: r.UID, ThreadID: r.ThreadID}); err != nil {
			return err
		}
		return o.printf("resume published")
	}
}

// waitsFor describes what a run waits for.
func waitsFor(r run.Run, s *run.State) string {
	switch open := len(s.Open()); {
	case s.End != nil:
		return ": nothing to move"
	case open > 0:
		return fmt.Sprintf(": %d of its calls wait for a decision; a resume does nothing before they are "+
			"answered or expire", open)
	case time.Now().Before(r.Lease.Until):
		return fmt.Sprintf(": a process works on it (lease until %s); a resume before that is redelivered later",
			r.Lease.Until.Format(time.RFC3339))
	}
	return ": no process works on it"
}

// print writes a story as text.
func (o *operator) print(s *Story) error {
	status := s.Status
	if status == "" {
		status = "deleted"
	}
	lines := []error{o.printf("run %s of %s: %s", s.RunID, s.UID, status)}
	if !s.CreatedAt.IsZero() {
		lines = append(lines, o.printf("began %s, last moved %s, ends by %s", clock(s.CreatedAt), clock(s.UpdatedAt),
			clock(s.Deadline)))
	}
	lines = append(lines, o.printf("\nevents: %d", len(s.Events)))
	for _, e := range s.Events {
		lines = append(lines, o.printf("%4d  %s  %-21s %s", e.Seq, clock(e.At), e.Type, e.Says),
			o.content(e.Content != nil, e.Content))
	}
	lines = append(lines, o.printf("\napprovals: %d", len(s.Approvals)))
	for _, a := range s.Approvals {
		lines = append(lines, o.printf("  %s  %s of %s  asked %s  %s%s", a.ApprovalID, a.Kind, a.Tool,
			clock(a.RequestedAt), a.Status, decided(a)), o.content(a.Content != nil, a.Content))
	}
	lines = append(lines, o.printf("\noutcomes: %d", len(s.Outcomes)))
	for _, c := range s.Outcomes {
		lines = append(lines, o.printf("  %s  %.64q  %s, execution %s, attempts %d, handle %q %s %s", c.ActionID,
			c.Tool, c.Status, c.Execution, c.Attempts, c.Handle, c.Class, c.Code),
			o.content(c.Content != nil, c.Content))
	}
	lines = append(lines, o.printf("\naudit: %d", len(s.Audit)))
	for _, e := range s.Audit {
		lines = append(lines, o.printf("%4d  %s  %-9s %.64q %s %s %s", e.Seq, clock(e.At), e.Kind, e.Tool, e.Decision,
			e.ExecutionStatus, e.ErrorCode))
	}
	return errors.Join(append(lines, o.verdict(s))...)
}

func (o *operator) verdict(s *Story) (err error) {
	for _, problem := range s.Chain {
		err = errors.Join(err, o.printf("chain: %s", problem))
	}
	switch {
	case len(s.Chain) > 0:
		return err
	case s.Vouched:
		return o.printf("chain: whole")
	}
	return o.printf("chain: the entries are intact; the run is gone, so missing entries at the end cannot be detected")
}

func decided(a StoryApproval) string {
	if a.Decision == "" {
		return ""
	}
	return fmt.Sprintf(": %s by %s at %s", a.Decision, a.DecidedBy, clock(a.DecidedAt))
}

// content prints revealed contents on a separate line.
func (o *operator) content(is bool, v any) error {
	if !is {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return o.printf("      %s", text)
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
