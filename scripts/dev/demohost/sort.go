package demohost

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

func sortLines(c *call) int {
	f, names, ok := c.parse("nrhuk:t:sb", "numeric-sort=n reverse=r human-numeric-sort=h unique=u key=k")
	if !ok {
		return 2
	}
	lines, code := c.all(names)
	column := 0
	if at := strings.IndexAny(f['k'], ",.nrh"); at > 0 {
		column = flags{'k': f['k'][:at]}.number('k', 0)
	} else {
		column = f.number('k', 0)
	}
	key := func(line string) string {
		if column == 0 {
			return line
		}
		fields := strings.Fields(line)
		if f.has("t") {
			fields = strings.Split(line, f['t'])
		}
		if column > len(fields) {
			return ""
		}
		return strings.Join(fields[column-1:], " ")
	}
	numeric := f.has("nh") || strings.ContainsAny(f['k'], "nh")
	slices.SortStableFunc(lines, func(a, b string) int {
		if numeric {
			if by := cmp.Compare(leading(key(a)), leading(key(b))); by != 0 {
				return by
			}
		}
		return strings.Compare(key(a), key(b))
	})
	if f.has("r") || strings.Contains(f['k'], "r") {
		slices.Reverse(lines)
	}
	if f.has("u") {
		lines = slices.Compact(lines)
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(c.out, l); err != nil {
			return code
		}
	}
	return code
}

var number = lazyregexp.New(`^\s*(-?[0-9]+(?:\.[0-9]+)?)([KMGT]?)`)

// leading returns the number at the beginning of a line, including forms such as 1.5K.
func leading(s string) float64 {
	m := number.FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64) // it is one
	for range strings.Index("KMGT", m[2]) + min(1, len(m[2])) {
		n *= 1024
	}
	return n
}

func unique(c *call) int {
	f, names, ok := c.parse("cdu", "count=c repeated=d")
	if !ok {
		return 1
	}
	last, n, any := "", 0, false
	show := func() {
		switch {
		case !any || f.has("d") && n < 2 || f.has("u") && n > 1:
		case f.has("c"):
			c.printf("%7d %s\n", n, last)
		default:
			c.printf("%s\n", last)
		}
	}
	code := c.lines(names, func(_, line string) bool {
		if any && line == last {
			n++
			return true
		}
		show()
		last, n, any = line, 1, true
		return true
	})
	show()
	return code
}
