package clip

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Mark returns the text that replaces n bytes that were cut out.
func Mark(n int64) string { return fmt.Sprintf("[… %d bytes left out …]", n) }

var marks = lazyregexp.New(`\n\[… (\d{1,18}) bytes left out …\]\n`)

// Middle returns s if it has at most n bytes. Otherwise it returns the first n/4 and the last 3n/4 bytes of s with a
// [Mark] on its own line between them, and cut is true. It cuts on character boundaries. If the removed part contains
// the mark of an earlier cut, the new mark includes that number.
func Middle(s string, n int) (kept string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	n = max(n, 0)
	head := len(Prefix(s, n/4))
	tail := len(s) - (n - n/4)
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return s[:head] + "\n" + Mark(leftOut(s[head:tail])) + "\n" + s[tail:], true
}

// leftOut returns the number of original bytes that part represents, including those that earlier marks in it count.
func leftOut(part string) int64 {
	all := int64(len(part))
	for _, m := range marks.FindAllStringSubmatch(part, -1) {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			all += n - int64(len(m[0]))
		}
	}
	return all
}
