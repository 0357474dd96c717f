package unit

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
)

// Ahead is a model call that begins while the commit that it rests on is under way. A model call changes nothing, so it
// need not wait. Everything else waits, because the commit holds the goroutine that advances the run. The call's text
// leaves only after [Ahead.Use], which follows the commit. If the commit fails, the call is cancelled and its answer is
// dropped.
type Ahead struct {
	Request model.Request // valid once the call was taken ([Execution.TakeAhead])

	next    Execution // the run as the commit will leave it, for reading only
	given   []string  // paths of the documents that next had at its begin
	cancel  context.CancelFunc
	ready   chan struct{} // closed when the call begins, or if none is made
	begun   bool
	settled chan struct{} // closed when the call is used or dropped
	delta   func(string)  // receives the text of a used call
	think   func(string)  // receives its thoughts
	done    chan struct{} // closed when the call has ended
	reply   *model.Reply
	err     error
	died    any  // the value of its panic
	lived   bool // it has returned
}

// Foresight says how the model is called ahead of a commit. Request builds the request for a run's next step and reads
// what it needs; ok is false if the step may be anything else than this request. Call makes the call.
type Foresight struct {
	Request func(ctx context.Context, next *Execution) (req model.Request, ok bool)
	Call    func(ctx context.Context, next *Execution, req model.Request, delta func(string)) (*model.Reply, error)
}

// Foresee lets the model calls of this execution begin ahead of the commits that they rest on. ctx is the context of
// the step; its end stops no call. The caller must call [Execution.DropAhead] before it leaves the run.
func (ex *Execution) Foresee(ctx context.Context, how *Foresight) {
	ex.foresight, ex.foreseeing = how, ctx
}

// beginAhead begins the model call that rests on the tx, if the tx leaves the run to this process for that step. A run
// on a terminal begins none: the commit reserves its terminal.
func (ex *Execution) beginAhead(tx *Tx) *Ahead {
	st, _ := tx.Next()
	need := tx.Limits().ModelTimeout
	if ex.foresight == nil || tx.Run.Terminal != "" || len(tx.events) == 0 || st != run.StepCallModel ||
		tx.Run.Lease.Owner != ex.Owner || ex.CallerGone() || ex.PastDeadline() || !HasTimeFor(ex.foreseeing, need) {
		return nil
	}
	ctx := context.WithoutCancel(ex.Trace.Enter(ex.foreseeing, tx.Run, ex.Asked))
	ctx, cancel := context.WithTimeout(ctx, need)
	a := &Ahead{cancel: cancel, ready: make(chan struct{}), settled: make(chan struct{}),
		done: make(chan struct{})}
	foresee(tx, &a.next)
	a.given = slices.Collect(maps.Keys(a.next.Docs))
	go a.run(model.WithCommit(ctx, a.settled), *ex.foresight)
	return a
}

// foresee makes next an execution that knows the run as the tx will leave it.
func foresee(tx *Tx, next *Execution) {
	ex := tx.Ex
	tx.after = append(slices.Clip(ex.Events), tx.events...)
	*next = Execution{Env: ex.Env, Snapshot: ex.Snapshot, Owner: ex.Owner, Mark: ex.Mark, Unread: ex.Unread,
		sink: func(Update) {}}
	next.Run, next.State, next.Events = tx.Run, tx.State, tx.after
	next.Docs = maps.Clone(ex.Docs)
	for _, w := range tx.writes {
		if w.Op != store.OpCheck {
			doc := w.Doc
			doc.Version = tx.Now // the commit gives the true one
			next.Docs[doc.Path] = doc
		}
	}
	next.Toolbox = ex.Toolbox.For(next.Now)
}

// run builds the request and makes the call.
func (a *Ahead) run(ctx context.Context, how Foresight) {
	defer close(a.done)
	defer func() { a.died = recover() }()
	if !a.prepare(ctx, how) {
		a.lived = true
		return
	}
	var delta func(string)
	if !a.next.Unread {
		delta = func(text string) {
			if <-a.settled; a.delta != nil {
				a.delta(text)
			}
		}
		if a.Request.Settings.Thoughts {
			ctx = model.WithThoughtSink(ctx, func(text string) {
				if <-a.settled; a.think != nil {
					a.think(text)
				}
			})
		}
	}
	a.reply, a.err = how.Call(ctx, &a.next, a.Request, delta)
	a.lived = true
}

func (a *Ahead) prepare(ctx context.Context, how Foresight) bool {
	defer close(a.ready)
	req, ok := how.Request(ctx, &a.next)
	a.Request, a.begun = req, ok && ctx.Err() == nil
	return a.begun
}

// TakeAhead returns the model call that has begun ahead of the last commit, or nil if none has. The caller must use the
// call or drop it.
func (ex *Execution) TakeAhead() *Ahead {
	a := ex.ahead
	if a == nil {
		return nil
	}
	<-a.ready
	for path, d := range a.next.Docs { // but none that ex had, and may have forgotten since
		if _, read := ex.Docs[path]; !read && !slices.Contains(a.given, path) {
			ex.Docs[path] = d
		}
	}
	if !a.begun {
		ex.drop(a)
		return nil
	}
	ex.ahead = nil
	return a
}

// Use passes the text of the call to delta, and its thoughts to ctx's [model.ThoughtSink], in order, and returns its
// answer. The commit that the call rests on must be
// durable. The end of ctx cancels the call.
func (a *Ahead) Use(ctx context.Context, delta func(string)) (*model.Reply, error) {
	a.delta, a.think = delta, model.ThoughtSink(ctx)
	close(a.settled)
	select {
	case <-a.done:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // the call has the same limit, and began earlier
			a.cancel()
		}
	}
	a.wait()
	return a.reply, a.err
}

// wait waits until the call has ended. A panic of the model continues here.
func (a *Ahead) wait() {
	<-a.done
	a.cancel()
	switch {
	case a.died != nil:
		panic(a.died)
	case !a.lived:
		runtime.Goexit()
	}
}

// DropAhead drops the call that has begun and was not taken, if there is one.
func (ex *Execution) DropAhead() { ex.drop(ex.ahead) }

// drop cancels the call and drops what it has answered. A nil call is none.
func (ex *Execution) drop(a *Ahead) {
	if a == nil {
		return
	}
	if ex.ahead == a {
		ex.ahead = nil
	}
	a.cancel()
	close(a.settled)
	a.wait()
	if a.begun {
		ex.CountDiscarded()
		ex.discarded, ex.discardedFor = ex.discarded+1, a.next.Run.UID
	}
}

// commitAhead commits the tx, and meanwhile lets the model call begin that rests on it. If the commit fails, the call
// is dropped, and the next tries begin none. A tx without events, which renews the lease, keeps the call that has
// begun.
func (ex *Execution) commitAhead(ctx context.Context, tx *Tx, first bool) error {
	if len(tx.events) > 0 {
		ex.DropAhead() // the run changes
	}
	if first && ex.ahead == nil {
		ex.ahead = ex.beginAhead(tx)
	}
	durable := false
	defer func() {
		if !durable {
			ex.DropAhead()
		}
	}()
	if err := tx.commit(ctx); err != nil {
		return err
	}
	durable = true
	return nil
}
