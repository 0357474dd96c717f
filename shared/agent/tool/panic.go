package tool

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// panicked is the error of a tool's function that panicked. Its text contains the stack, and of the value only what
// cannot contain a user's data.
type panicked struct{ text string }

func (p *panicked) Error() string { return p.text }

// IsPanic reports whether err is the error of a tool's function that panicked.
func IsPanic(err error) bool { return PanicText(err) != "" }

// PanicText returns what a tool's function panicked with, as far as that may be logged, and the stack; "" if err is not
// the error of one that panicked.
func PanicText(err error) string {
	var p *panicked
	if !errors.As(err, &p) {
		return ""
	}
	return p.text
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
