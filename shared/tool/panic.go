package tool

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/countersign-run/countersign/shared/fault"
)

// panicked is the error of a tool's function that panicked. Its text contains the stack, and of the value only what
// cannot contain a user's data.
type panicked struct{ text string }

func (p *panicked) Error() string { return p.text }

// IsPanic reports whether err is the error of a tool's function that panicked. Its text, which contains a stack, is for
// the log.
func IsPanic(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// recoverPanic converts a panic of the tool's function to its error: one call must not end the process, and with it the
// calls of others. An effect that panicked may have taken place.
func (t *Tool) recoverPanic(err *error, effect bool) {
	r := recover()
	if r == nil {
		return
	}
	what := fmt.Sprintf("a value of type %T", r)
	if e, ok := r.(runtime.Error); ok {
		what = e.Error()
	}
	died := &panicked{fmt.Sprintf("tool %s panicked with %s\n%s", t.Name, what, debug.Stack())}
	if effect {
		*err = Ambiguous(died)
		return
	}
	*err = fault.New(fault.Tool, "tool_panicked", "The tool failed with an internal error.").Because(died)
}
