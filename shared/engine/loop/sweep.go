package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// SweepResult counts what a sweep found.
type SweepResult struct {
	Due       int  `json:"due"`       // overdue runs
	Published int  `json:"published"` // overdue runs whose resume was published
	Handed    int  `json:"handed"`    // shards that other requests continue with
	More      bool `json:"more"`      // there may be more: the limit of time or pages was reached
}

// Limits of a sweep.
const (
	sweepPage  = 200              // runs in one query
	sweepMost  = 50               // full pages of one sweep
	sweepWidth = 16               // concurrent publishes, if other requests share the work
	pageTime   = 20 * time.Second // minimum time left to start a page
)

// Sweep publishes a resume for every overdue run: its worker died, its resume was lost, or its approval expired. It
// changes no run itself, so two sweeps do no more than one, and an unnecessary resume has no effect. A run that no
// process can advance does not hold up the others, because the sweep continues after it.
//
// Sweep reads the first page of each shard, several at a time. It passes a shard with further pages to the Sweeper,
// which calls SweepShard in a separate request. So up to one request for each shard shares the work, and a sweep
// without overdue runs costs one query for each shard. Without a Sweeper, Sweep continues with the shards in turn.
//
// The error is the store's, the queue's or the Sweeper's.
func (l *Loop) Sweep(ctx context.Context) (s SweepResult, err error) {
	var open []queue.Shard // shards with more than one page
	shard := int64(0)
	for docs, err := range document.FirstPages(ctx, l.Store, func(shard int64) store.Query {
		return document.DueRuns(shard, l.Now(), sweepPage)
	}) {
		if err != nil {
			return s, unit.StoreError(err)
		}
		if len(open) == sweepMost || !unit.HasTimeFor(ctx, pageTime) {
			s.More = true
			return s, nil
		}
		next, err := askForPage(ctx, l, shard, docs, &s)
		switch {
		case err != nil:
			return s, err
		case next != nil && l.Sweeper != nil:
			if err := l.Sweeper.Sweep(ctx, *next); err != nil {
				return s, err
			}
			s.Handed++
		case next != nil:
			open = append(open, *next)
		}
		shard++
	}
	err = sweepRest(ctx, l, open, &s)
	measureWaiting(ctx, l)
	return s, err
}

// sweepRest continues with the shards in turn.
func sweepRest(ctx context.Context, l *Loop, open []queue.Shard, s *SweepResult) error {
	for full := len(open); len(open) > 0; {
		if full >= sweepMost || !unit.HasTimeFor(ctx, pageTime) {
			s.More = true
			return nil
		}
		next, err := l.sweepPage(ctx, open[0], s)
		if err != nil {
			return err
		}
		if open = open[1:]; next != nil {
			full++
			open = append(open, *next)
		}
	}
	return nil
}

// SweepShard continues the sweep of one shard until no run in it is overdue, or passes the rest to the Sweeper when its
// time runs out. It returns a ValidationError for an invalid shard number.
func (l *Loop) SweepShard(ctx context.Context, at queue.Shard) (s SweepResult, err error) {
	if at.Number < 0 || at.Number >= document.Shards {
		return s, fault.Invalid("message/data/shard", "must be 0 to %d", document.Shards-1)
	}
	for range sweepMost {
		next, err := l.sweepPage(ctx, at, &s)
		if err != nil || next == nil {
			return s, err
		}
		at = *next
		if !unit.HasTimeFor(ctx, pageTime) {
			break
		}
	}
	if s.More = true; l.Sweeper == nil {
		return s, nil // the next sweep finds the rest
	}
	s.Handed++
	return s, l.Sweeper.Sweep(ctx, at)
}

// sweepPage publishes resumes for the runs of one page of a shard. It returns the position of the next page, or nil
// after the last.
func (l *Loop) sweepPage(ctx context.Context, at queue.Shard, s *SweepResult) (next *queue.Shard, err error) {
	q := document.DueRuns(at.Number, l.Now(), sweepPage)
	if at.After != nil {
		q.After = &store.Cursor{Value: at.After.Due, ID: at.After.RunID}
	}
	docs, err := l.Store.Query(ctx, q)
	if err != nil {
		return nil, unit.StoreError(err)
	}
	return askForPage(ctx, l, at.Number, docs, s)
}

// askForPage publishes resumes for the runs in docs. It returns the position of the next page, or nil after the last.
func askForPage(ctx context.Context, l *Loop, shard int64, docs []store.Doc, s *SweepResult) (*queue.Shard, error) {
	if err := l.republish(ctx, docs, s); err != nil || len(docs) < sweepPage {
		return nil, err
	}
	last := docs[len(docs)-1]
	return &queue.Shard{Number: shard,
		After: &queue.Position{Due: document.RunFieldsOf(last).Due, RunID: document.ID(last)}}, nil
}

// republish publishes a resume for each run of a page. If one publish fails, the sweep ends with this page.
func (l *Loop) republish(ctx context.Context, docs []store.Doc, s *SweepResult) error {
	var publishes errgroup.Group
	publishes.SetLimit(1)
	if l.Sweeper != nil {
		publishes.SetLimit(sweepWidth)
	}
	failed := make([]error, len(docs))
	for i, d := range docs {
		publishes.Go(func() error {
			failed[i] = l.Queue.Resume(ctx, messageAbout(d))
			return nil
		})
	}
	if err := publishes.Wait(); err != nil {
		return err
	}
	lost := slices.DeleteFunc(failed, func(err error) bool { return err == nil })
	s.Due += len(docs)
	if len(docs) > 0 {
		l.Metrics.Measure(sweepFound, float64(len(docs)))
	}
	s.Published += len(docs) - len(lost)
	if len(lost) > 0 {
		return fmt.Errorf("loop: %d of %d resumes could not be published: %w", len(lost), s.Due, errors.Join(lost...))
	}
	return nil
}

// messageAbout returns the message that asks for the document's run to be advanced.
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

// Reclaim takes over the runs of an earlier process: it ends every lease and publishes resumes. It returns the number
// of these runs. Only a process that knows that no other is alive may call it, such as a local server that holds the
// lock of its data directory. Elsewhere leases must expire.
func (l *Loop) Reclaim(ctx context.Context) (runs int, err error) {
	for d, err := range document.Waiting(ctx, l.Store, sweepPage) {
		if err != nil {
			return runs, unit.StoreError(err)
		}
		id := document.ID(d)
		moved, err := l.reclaim(ctx, id)
		switch {
		case unit.Stuck(err): // one unreadable run does not hold up the others
			l.Log.WarnContext(ctx, "a run cannot be reclaimed; the sweep will try it again", "runId", id, "error", err)
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
	if !run.HeldUntil(ex.State, ex.Now()).IsZero() {
		ex.Publish(ctx) // the process that slept until then is gone
		return 1, nil
	}
	if ex.StepTime() == 0 {
		return 0, nil
	}
	err := ex.Transition(ctx, func(tx *unit.Tx) error {
		tx.Changed, tx.DueNow = tx.Run.Lease.Owner != "" &&
			(tx.State.End == nil || run.NeedsDisposal(tx.State)), true
		return nil
	})
	if err != nil {
		return 0, err
	}
	ex.Publish(ctx)
	return 1, nil
}
