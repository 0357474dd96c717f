package obs

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// maxFrames bounds a stack, so that it fits in one text of a line.
const maxFrames = 48

// stack names the functions that the caller was called by, one a line, with file and line number. Unlike debug.Stack it
// holds no value that was passed between them. A file stands without its directory: the function's name has the package,
// and a module's directory holds an @, for which Redact would take it away.
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
