package loop

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Swept counts what a sweep found.
type Swept struct {
	Due       int  `json:"due"`       // runs that somebody should have looked at by now
	Published int  `json:"published"` // of those, handed to resume
	More      bool `json:"more"`      // there were more than one sweep takes
}

// sweepLimit is how many runs one sweep hands over.
const sweepLimit = 200

// Sweep asks for every run that is overdue to be moved: its worker died, its resume was lost, its approval expired. It
// changes nothing itself, so two sweeps do what one does: a resume that finds nothing to do does nothing.
func (l *Loop) Sweep(ctx context.Context) (Swept, error) {
	docs, err := l.Store.Query(ctx, store.Query{Collection: "runs", Where: []store.Filter{{Field: "due", Op: "<=", Value: l.Now().UTC().Truncate(time.Microsecond)}}, OrderBy: "due", Limit: sweepLimit})
	if err != nil {
		return Swept{}, unavailable(err)
	}
	s := Swept{Due: len(docs), More: len(docs) == sweepLimit}
	var failed []error
	for _, d := range docs {
		if err := l.Queue.Resume(ctx, path.Base(d.Path)); err != nil {
			failed = append(failed, err)
			continue
		}
		s.Published++
	}
	if len(failed) > 0 {
		return s, fmt.Errorf("loop: %d of %d resumes could not be published: %w", len(failed), s.Due, errors.Join(failed...))
	}
	return s, nil
}

// Reclaim takes up what an earlier process left: it ends every lease and asks for the runs to be moved. It is for a
// process that knows that no other is alive, such as a local server that holds its data directory's lock; elsewhere a
// lease is waited out.
func (l *Loop) Reclaim(ctx context.Context) (runs int, err error) {
	q := store.Query{Collection: "runs", OrderBy: "due", Limit: sweepLimit}
	for {
		docs, err := l.Store.Query(ctx, q)
		if err != nil {
			return runs, unavailable(err)
		}
		for _, d := range docs {
			moved, err := l.reclaim(ctx, path.Base(d.Path))
			if err != nil {
				return runs, err
			}
			runs += moved
		}
		if len(docs) < sweepLimit {
			return runs, nil
		}
		last := docs[len(docs)-1]
		q.After = &store.Cursor{Value: last.Fields["due"], ID: path.Base(last.Path)}
	}
}

func (l *Loop) reclaim(ctx context.Context, runID string) (int, error) {
	m := l.mover(runID, nil)
	if err := m.load(ctx); err != nil || m.run.ID == "" {
		return 0, err
	}
	if m.stepTime(m.state, m.run, m.now()) == 0 {
		return 0, nil
	}
	err := m.transition(ctx, func(d *draft) error {
		d.touched, d.soon = d.run.Lease.Owner != "" && d.state.End == nil, true
		return nil
	})
	if err != nil {
		return 0, err
	}
	m.publish(ctx)
	return 1, nil
}
