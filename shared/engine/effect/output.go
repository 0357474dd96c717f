package effect

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// callOutput is the printed output of a call, across all calls of its tool's functions. It is closed before the outcome
// is recorded.
type callOutput interface {
	give(c *tool.Call) // sets the writer of the call's next function
	Close()
}

// outputOf returns the output of an action.
func outputOf(ctx context.Context, ex *unit.Execution, t *tool.Tool, id string) callOutput {
	if t.KeepsOutput {
		return openKept(ctx, ex, id)
	}
	return openOutput(ex, id)
}

// passedOn is output that is not stored. It passes the first maxOutput bytes on to the run's reader, in pieces, without
// holding up the tool.
type passedOn struct {
	*passing
	ex      *unit.Execution
	id      string // the action's ID
	pending []byte
	left    int // number of bytes that may still be written
}

// openOutput returns the output of an action. The caller must close it before the run advances.
func openOutput(ex *unit.Execution, id string) *passedOn {
	p, ctx := newPassing()
	o := &passedOn{passing: p, ex: ex, id: id, left: maxOutput}
	if ex.Unread {
		o.over = true
		close(o.closed)
		return o
	}
	go o.pass(ctx)
	return o
}

func (o *passedOn) give(c *tool.Call) { c.Output = o }

// Write implements [io.Writer].
func (o *passedOn) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	if o.over || n == 0 {
		return n, nil
	}
	if n > o.left {
		b, o.over = b[:o.left], true
	}
	o.left -= len(b)
	o.pending = append(o.pending, b...)
	if o.over {
		o.pending = append(o.pending[:whole(o.pending)], outputCut...)
	}
	o.signal()
	return n, nil
}

// pass sends a piece whenever there is output, until ctx ends, and then the rest.
func (o *passedOn) pass(ctx context.Context) {
	defer close(o.closed)
	for {
		select {
		case <-o.wake:
			for o.send(false) && o.ex.Sleep(ctx, pieceEvery) == nil {
			}
		case <-ctx.Done():
			for o.send(true) {
			}
			return
		}
	}
}

// send sends one piece and reports whether there was one. Before the end, it keeps an incomplete character for the next
// piece.
func (o *passedOn) send(last bool) bool {
	o.mu.Lock()
	n := min(len(o.pending), maxPiece)
	if !last || n < len(o.pending) {
		n = whole(o.pending[:n])
	}
	piece := strings.ToValidUTF8(string(o.pending[:n]), "\uFFFD")
	if len(piece) > maxPiece { // U+FFFD is longer than the bytes that it replaces
		n /= 3
		piece = strings.ToValidUTF8(string(o.pending[:n]), "\uFFFD")
	}
	o.pending = o.pending[n:]
	o.mu.Unlock()
	if piece == "" {
		return false
	}
	o.ex.Notify(unit.Update{Output: &unit.Output{ActionID: o.id, Text: piece}})
	return true
}

// whole returns the length of b without an incomplete character at its end.
func whole(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}
