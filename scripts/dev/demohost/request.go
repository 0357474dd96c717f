package demohost

import (
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// request is a line of the keeper's Go side (shared/terminal/supervisor).
type request struct {
	verb   string
	values map[string]string
}

var (
	keeperLine = lazyregexp.New(
		`keeper-[0-9a-f]{16,64}["']? +(probe|facts|fetch|program|put|start|attach|input|stop|settle|shell|resize|close)((?: +[a-z_]+=[A-Za-z0-9/._%-]*)*)`)
	safeName    = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	octalDigits = lazyregexp.New(`\\0?([0-7]{1,3})`)
)

func readRequest(line string) (r request, ok bool) {
	m := keeperLine.FindStringSubmatch(line)
	if m == nil {
		return r, false
	}
	r = request{m[1], map[string]string{}}
	for _, pair := range strings.Fields(m[2]) {
		name, value, _ := strings.Cut(pair, "=")
		r.values[name] = value
	}
	return r, true
}

func (r request) size() supervisor.Size {
	return supervisor.Size{Cols: r.number("cols", 80), Rows: r.number("rows", 24)}
}

// hundredths parses a duration in hundredths of a second. The default is otherwise.
func (r request) hundredths(name string, otherwise time.Duration) time.Duration {
	if n := r.number(name, -1); n >= 0 {
		return time.Duration(n) * 10 * time.Millisecond
	}
	return otherwise
}

// number parses a number that is not negative. The default is otherwise.
func (r request) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(r.values[name]); err == nil && n >= 0 {
		return n
	}
	return otherwise
}
