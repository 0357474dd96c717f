package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
)

// SweepResult counts what a sweep found.
type SweepResult struct {
	Due       int  `json:"due"`       // runs that are overdue
	Published int  `json:"published"` // of those, the ones whose resume was published
	Handed    int  `json:"handed"`    // shards that other requests go on with
	More      bool `json:"more"`      // there may be more: the sweep's time or page limit was reached
}

// The bounds of a sweep.
const (
	sweepPage  = 200              // runs in one query
	sweepMost  = 50               // full pages of one sweep
	sweepWidth = 16               // resumes that are published at the same time, where other requests share the work
	pageTime   = 20 * time.Second // no page is started with less time than this left
)

// Sweep asks for every run that is overdue to be moved: its worker died, its resume was lost, its approval expired. It
// changes nothing itself, so two sweeps do no more than one: a resume that finds nothing to do does nothing. A run that
// no process can move does not hold up the others: the sweep continues behind it, page by page.
//
// It takes the first page of each shard, some of which it reads side by side, and hands a shard with more of them to
// the Sweeper, which has it swept by SweepShard in a request of its own. So what is overdue is worked off by as many
// requests as there are shards, and where nothing is, the sweep is one query a shard. Without a Sweeper it goes on with
// the shards in turn.
func (l *Loop) Sweep(ctx context.Context) (s SweepResult, err error) {
	var open []queue.Shard // with more than a page
	shard := int64(0)
	for docs, err := range document.FirstPages(ctx, l.Store, func(shard int64) store.Query {
		return document.DueRuns(shard, l.Now(), sweepPage)
	}) {
		if err != nil {
			return s, journal.StoreError(err)
		}
		if len(open) == sweepMost || !journal.HasTimeFor(ctx, pageTime) {
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

// sweepRest goes on with the shards in turn.
func sweepRest(ctx context.Context, l *Loop, open []queue.Shard, s *SweepResult) error {
	for full := len(open); len(open) > 0; {
		if full >= sweepMost || !journal.HasTimeFor(ctx, pageTime) {
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

// SweepShard goes on with the sweep of one shard until nothing of it is overdue, or hands on what it has no time for.
func (l *Loop) SweepShard(ctx context.Context, at queue.Shard) (s SweepResult, err error) {
	if at.Number < 0 || at.Number >= document.Shards {
		return s, fault.Invalid("message/data/shard", "a shard is 0 to %d", document.Shards-1)
	}
	for range sweepMost {
		next, err := l.sweepPage(ctx, at, &s)
		if err != nil || next == nil {
			return s, err
		}
		at = *next
		if !journal.HasTimeFor(ctx, pageTime) {
			break
		}
	}
	if s.More = true; l.Sweeper == nil {
		return s, nil // the next sweep finds it
	}
	s.Handed++
	return s, l.Sweeper.Sweep(ctx, at)
}

// sweepPage asks for the runs of one page of a shard to be moved, and returns where the next page begins, or nil after
// the last.
func (l *Loop) sweepPage(ctx context.Context, at queue.Shard, s *SweepResult) (next *queue.Shard, err error) {
	q := document.DueRuns(at.Number, l.Now(), sweepPage)
	if at.After != nil {
		q.After = &store.Cursor{Value: at.After.Due, ID: at.After.RunID}
	}
	docs, err := l.Store.Query(ctx, q)
	if err != nil {
		return nil, journal.StoreError(err)
	}
	return askForPage(ctx, l, at.Number, docs, s)
}

// askForPage asks for the runs of a page to be moved, and returns where the next page begins, or nil after the last.
func askForPage(ctx context.Context, l *Loop, shard int64, docs []store.Doc, s *SweepResult) (*queue.Shard, error) {
	if err := l.republish(ctx, docs, s); err != nil || len(docs) < sweepPage {
		return nil, err
	}
	last := docs[len(docs)-1]
	return &queue.Shard{Number: shard,
		After: &queue.Position{Due: document.RunFieldsOf(last).Due, RunID: document.ID(last)}}, nil
}

// republish publishes a resume for each run of a page. If one fails, the sweep ends with this page.
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
	for d, err := range document.Waiting(ctx, l.Store, sweepPage) {
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
	if !run.HeldUntil(ex.State, ex.Now()).IsZero() {
		ex.Publish(ctx) // who has slept until then is gone
		return 1, nil
	}
	if ex.StepTime() == 0 {
		return 0, nil
	}
	err := ex.Transition(ctx, func(tx *journal.Tx) error {
		tx.Changed, tx.DueNow = tx.Run.Lease.Owner != "" &&
			(tx.State.End == nil || run.Unclean(tx.State)), true
		return nil
	})
	if err != nil {
		return 0, err
	}
	ex.Publish(ctx)
	return 1, nil
}
