package tool

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// panicked is the error of a tool's function that panicked. Its text contains the stack. It contains only the part of
// the panic's value that cannot be a user's data.
type panicked struct{ text string }

func (p *panicked) Error() string { return p.text }

// IsPanic reports whether err is the error of a tool's function that panicked.
func IsPanic(err error) bool { return PanicText(err) != "" }

// PanicText returns the stack of a tool's function that panicked, with the part of the panic's value that may be
// logged. It returns "" if err is not such an error.
func PanicText(err error) string {
	var p *panicked
	if !errors.As(err, &p) {
		return ""
	}
	return p.text
}

// recoverPanic converts a panic of the tool's function to an error, because one call must not end the process and the
// calls of other users. An effect that panicked may have taken place.
func (t *Tool) recoverPanic(err *error, effect bool) {
	r := recover()
	if r == nil {
		return
	}
	died := panicOf("tool "+t.Name, r)
	if effect {
		*err = Ambiguous(died)
		return
	}
	*err = fault.New(fault.Tool, "tool_panicked", "The tool failed with an internal error.").Because(died)
}

// Guard calls a function of the program, and returns a panic of it as an error that [IsPanic] recognises. name is the
// function's, for the log.
func Guard(name string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicOf(name, r)
		}
	}()
	return f()
}

func panicOf(name string, r any) *panicked {
	what := fmt.Sprintf("a value of type %T", r)
	if e, ok := r.(runtime.Error); ok {
		what = e.Error()
	}
	return &panicked{fmt.Sprintf("%s panicked with %s\n%s", name, what, debug.Stack())}
}
