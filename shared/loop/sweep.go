package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
)

// SweepResult counts what a sweep found.
type SweepResult struct {
	Due       int  `json:"due"`       // runs that are overdue
	Published int  `json:"published"` // of those, the ones whose resume was published
	More      bool `json:"more"`      // there may be more: the sweep's time or page limit was reached
}

// The bounds of a sweep.
const (
	sweepPage = 200              // runs in one query
	sweepMost = 50               // pages of one sweep
	pageTime  = 20 * time.Second // no page is started with less time than this left
)

// Sweep asks for every run that is overdue to be moved: its worker died, its resume was lost, its approval expired. It
// changes nothing itself, so two sweeps do no more than one: a resume that finds nothing to do does nothing. A run that
// no process can move does not hold up the others: the sweep continues behind it, page by page.
func (l *Loop) Sweep(ctx context.Context) (s SweepResult, err error) {
	pages := 0
	for docs, err := range document.Pages(ctx, l.Store, document.DueRuns(l.Now(), sweepPage)) {
		if err != nil {
			return s, journal.StoreError(err)
		}
		if err := l.republish(ctx, docs, &s); err != nil {
			return s, err
		}
		pages++
		s.More = len(docs) == sweepPage
		if pages == sweepMost || !journal.HasTimeFor(ctx, pageTime) {
			break
		}
	}
	return s, nil
}

// republish publishes a resume for each run of a page. If one fails, the sweep ends with this page.
func (l *Loop) republish(ctx context.Context, docs []store.Doc, s *SweepResult) error {
	var failed []error
	for _, d := range docs {
		s.Due++
		if err := l.Queue.Resume(ctx, messageAbout(d)); err != nil {
			failed = append(failed, err)
			continue
		}
		s.Published++
	}
	if len(failed) > 0 {
		return fmt.Errorf("loop: %d of %d resumes could not be published: %w", len(failed), s.Due,
			errors.Join(failed...))
	}
	return nil
}

// messageAbout returns the message that asks for the run of the document to be moved.
func messageAbout(d store.Doc) queue.Message {
	f := document.RunFieldsOf(d)
	return queue.Message{RunID: document.ID(d), Agent: agentOf(d), UID: f.UID, ThreadID: f.ThreadID}
}

// agentOf returns the name of the run's agent, or "" if the document cannot be read.
func agentOf(d store.Doc) string {
	var r struct {
		Agent string `json:"agent"`
	}
	if document.Decode(d, &r) != nil {
		return ""
	}
	return cmp.Or(r.Agent, run.Assistant)
}

// Reclaim takes up what an earlier process left: it ends every lease and asks for the runs to be moved. It may only be
// called by a process that knows that no other is alive, such as a local server that holds its data directory's lock;
// elsewhere leases are waited out.
func (l *Loop) Reclaim(ctx context.Context) (runs int, err error) {
	for d, err := range document.All(ctx, l.Store, document.WaitingRuns(sweepPage)) {
		if err != nil {
			return runs, journal.StoreError(err)
		}
		id := document.ID(d)
		moved, err := l.reclaim(ctx, id)
		switch {
		case journal.Stuck(err): // one run that cannot be read does not keep the others from being taken up
			l.Log.WarnContext(ctx, "a run cannot be taken up; the sweep will look at it", "runId", id, "error", err)
		case err != nil:
			return runs, err
		}
		runs += moved
	}
	return runs, nil
}

func (l *Loop) reclaim(ctx context.Context, runID string) (int, error) {
	ex := l.NewExecution(runID, nil)
	if err := ex.LoadCounted(ctx, queue.Message{}); err != nil || ex.Run.ID == "" {
		return 0, err
	}
	if ex.StepTime() == 0 {
		return 0, nil
	}
	err := ex.Transition(ctx, func(tx *journal.Tx) error {
		tx.Changed, tx.DueNow = tx.Run.Lease.Owner != "" && tx.State.End == nil, true
		return nil
	})
	if err != nil {
		return 0, err
	}
	ex.Publish(ctx)
	return 1, nil
}
