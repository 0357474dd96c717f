package obs

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// maxFrames bounds a stack, so that it fits in one text of a line.
const maxFrames = 48

// stack returns the caller's call stack, one function per line, with file and line number. Unlike debug.Stack, it
// contains no arguments. Files have no directory: the function's name contains the package, and a module's directory
// contains an @, which would make Redact remove it.
func stack() string {
	var counters [maxFrames]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])]) // without Callers, stack and its caller
	var b strings.Builder
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "%s(%s:%d)\n", f.Function, path.Base(f.File), f.Line)
		if !more {
			return b.String()
		}
	}
}
