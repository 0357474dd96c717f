package contents

import (
	"context"
	"errors"
	"strings"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// process is the state of a process in a story.
type process struct {
	fuse  int  // commits until it dies; 0: never
	after bool // whether it dies after the commit rather than before it
	dead  bool
}

// errDied is the error of every call of a dead process.
var errDied = errors.New("contents: this process is dead")

// stored is the hook of the store that the processes of a story share.
func (w *scenario) stored(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	switch {
	case w.life.dead:
		return errDied
	case c.Method != faulty.Commit:
		return next(ctx)
	}
	if w.life.fuse--; w.life.fuse == 0 {
		w.life.dead = true
		if w.life.after {
			return errors.Join(errDied, next(ctx))
		}
		return errDied
	}
	switch fails, done := w.flaky(); {
	case fails && done:
		return faulty.Lost(ctx, c, next)
	case fails:
		return faulty.Down(ctx, c, next)
	}
	return next(ctx)
}

// sawApprovals records the approvals that a commit has written.
func (w *scenario) sawApprovals(c *faulty.Call) {
	for _, o := range c.Writes {
		switch {
		case !strings.HasPrefix(o.Doc.Path, "approvals/"):
		case o.Op == store.OpDelete:
			delete(w.approvals, o.Doc.Path)
		default:
			w.approvals[o.Doc.Path] = o.Doc
		}
	}
}
