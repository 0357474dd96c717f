package tool

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/countersign-run/countersign/shared/fault"
)

// panicked is what a tool's function died of. It tells where, and of the value only what cannot hold anybody's words.
type panicked struct{ text string }

func (p *panicked) Error() string { return p.text }

// IsPanic reports whether err is what a tool's function died of. Its text, which holds a stack, is for the log.
func IsPanic(err error) bool {
	var p *panicked
	return errors.As(err, &p)
}

// caught turns a panic of the tool's function into its error: one call must not take the process with it, and others'
// calls with that. An effect that panicked may have taken place.
func (t *Tool) caught(err *error, effect bool) {
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
	*err = fault.New(fault.Tool, "tool_panicked", "This tool has a fault of its own and could not do it.").Because(died)
}
