package effect

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/output"
)

// Timing of stored output.
const (
	storeEvery = 5               // pieces between two commits: two commits a second
	lastStore  = 5 * time.Second // time to store the rest after the call has ended
	lastTries  = 5
)

var errOutputGap = errors.New("effect: output before this was not written")

// keptOutput is the output of a call whose tool keeps it. The output is stored while it arrives, at most twice a second
// and once more at the end, and passed on to the run's reader. Its bytes are numbered, so two processes that write the
// same output store it once.
type keptOutput struct {
	*passing
	ex      *unit.Execution
	id      string       // the action's ID
	known   *output.Kept // the output that this process knows to be stored; nil: unknown. Only pass uses it
	begins  int64        // number of bytes stored when this process began
	first   int64        // number of pending's first byte
	pending []byte
	sent    int64 // number of the first byte that was not passed on
}

// openKept returns the kept output of an action. The caller must close it before it records the outcome.
func openKept(ctx context.Context, ex *unit.Execution, id string) *keptOutput {
	p, alive := newPassing()
	o := &keptOutput{passing: p, ex: ex, id: id}
	d, committed := ex.Docs[document.OutputPath(ex.ID, id)]
	var err error
	if committed { // committed with the intent; only the lease's owner writes it
		o.known, err = output.Of(d, ex.ID, id)
	} else {
		o.known, err = output.Read(ctx, ex.Store, ex.ID, id)
	}
	if err != nil {
		o.failed(ctx, err)
	} else {
		o.begins = o.known.Bytes
		o.first, o.sent, o.over = o.begins, o.begins, !o.known.Exists() || o.begins >= output.Max
	}
	go o.pass(alive)
	return o
}

// give sets the call's output, and the number of the first byte that the call writes.
func (o *keptOutput) give(c *tool.Call) { c.Output, c.Kept = &outputWriter{o: o}, o.begins }

// outputWriter is the output of one call of a tool's function.
type outputWriter struct {
	o  *keptOutput
	mu sync.Mutex
	at int64
}

// Write implements [io.Writer].
func (w *outputWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.WriteAt(b, w.at)
	w.at += int64(n)
	return n, err
}

// WriteAt implements [io.WriterAt].
func (w *outputWriter) WriteAt(b []byte, at int64) (int, error) { return len(b), w.o.add(b, at) }

var _ io.WriterAt = (*outputWriter)(nil)

// add takes bytes that begin at number at. It returns errOutputGap if bytes before them are missing.
func (o *keptOutput) add(b []byte, at int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := o.first + int64(len(o.pending))
	switch {
	case o.over || at+int64(len(b)) <= end:
		return nil
	case at > end:
		return errOutputGap
	}
	b = b[end-at:]
	if left := max(0, output.Max-int64(len(outputCut))-end); int64(len(b)) > left {
		b, o.over = b[:left], true
	}
	o.pending = append(o.pending, b...)
	if o.over {
		o.pending = append(o.pending, outputCut...)
	}
	o.signal()
	return nil
}

// pass sends and stores the output until ctx ends, and then the rest.
func (o *keptOutput) pass(ctx context.Context) {
	defer close(o.closed)
	for wait := 0; ; { // number of pieces until the next commit is allowed
		if wait == 0 && len(o.unsaved()) == 0 {
			select {
			case <-o.wake:
			case <-ctx.Done():
			}
		}
		o.send()
		if o.ex.Sleep(ctx, pieceEvery) != nil || ctx.Err() != nil {
			break
		}
		o.send()
		if wait = max(0, wait-1); wait == 0 && len(o.unsaved()) > 0 {
			o.storeWhole(ctx)
			wait = storeEvery
		}
	}
	o.send()
	last, cancel := context.WithTimeout(context.Background(), lastStore)
	defer cancel()
	for try := 1; len(o.unsaved()) > 0 && try <= lastTries && last.Err() == nil; try++ {
		if !o.store(last) && o.ex.Sleep(last, pieceEvery) != nil {
			return
		}
	}
}

// storeWhole stores the pending output. The end of the call does not cut it off, because the output would have to be
// stored again.
func (o *keptOutput) storeWhole(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStore)
	defer cancel()
	o.store(ctx)
}

// unsaved returns the output that is not stored yet.
func (o *keptOutput) unsaved() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending
}

// send passes on new output in pieces.
func (o *keptOutput) send() {
	o.mu.Lock()
	rest, at := o.pending[max(0, min(o.sent-o.first, int64(len(o.pending)))):], max(o.sent, o.first)
	o.sent = at + int64(len(rest))
	o.mu.Unlock()
	if o.ex.Unread {
		return
	}
	for len(rest) > 0 {
		n := min(len(rest), maxPiece)
		o.ex.Notify(unit.Update{Output: &unit.Output{ActionID: o.id, Offset: at, Data: rest[:n:n]}})
		rest, at = rest[n:], at+int64(n)
	}
}

// store stores the pending output. It returns false if that must be tried again.
func (o *keptOutput) store(ctx context.Context) bool {
	o.mu.Lock()
	at, b := o.first, o.pending
	o.mu.Unlock()
	if o.known == nil && !o.look(ctx) {
		return false
	}
	err := o.known.Append(ctx, o.ex.Store, at, b)
	switch {
	case err == nil:
		o.settled(o.known.Bytes)
		return true
	case errors.Is(err, output.ErrGone): // deleted with the run
		o.settled(output.Max)
		return true
	case errors.Is(err, store.ErrConflict): // another process writes the same output
		o.look(ctx)
		return false
	}
	o.failed(ctx, err)
	return false
}

// look reads the stored output, and reports whether that succeeded.
func (o *keptOutput) look(ctx context.Context) bool {
	k, err := output.Read(ctx, o.ex.Store, o.ex.ID, o.id)
	if err != nil {
		o.failed(ctx, err)
		return false
	}
	o.known = k
	o.settled(k.Bytes)
	return true
}

// settled drops the bytes below number end, which no longer need to be stored.
func (o *keptOutput) settled(end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := end - o.first; n > 0 {
		o.pending = o.pending[min(n, int64(len(o.pending))):]
		o.first = end
		o.over = o.over || end >= output.Max
	}
}

func (o *keptOutput) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		o.ex.Log.WarnContext(ctx, "output could not be stored yet", "runId", o.ex.ID, "actionId", o.id, "error", err)
	}
}
