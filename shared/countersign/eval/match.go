package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// Call is a call that the model made.
type Call struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"` // as the model sent them
}

// String returns the call in one line, shortened.
func (c Call) String() string {
	var args bytes.Buffer
	if json.Compact(&args, c.Args) != nil {
		return c.Tool
	}
	return c.Tool + " " + clip.Text(args.String(), 200)
}

// check returns why the calls are not the expected ones, or "".
func (t *trajectory) check(calls []Call) string {
	switch t.match {
	case matchInOrder:
		return inOrder(t.expect, calls)
	case matchExact:
		if len(calls) == len(t.expect) && inOrder(t.expect, calls) == "" {
			return ""
		}
	case matchAnyOrder:
		if pairs(t.expect, calls) == len(t.expect) {
			return ""
		}
	case matchSet:
		if len(calls) == len(t.expect) && pairs(t.expect, calls) == len(calls) {
			return ""
		}
	case matchSubset:
		if pairs(t.expect, calls) == len(calls) {
			return ""
		}
	}
	return fmt.Sprintf("expected %s: %s; the calls were: %s", t.match, listed(t.expect), listed(calls))
}

// inOrder returns why the calls do not contain the expected ones in their order, or "".
func inOrder(expect []expected, calls []Call) string {
	next := 0
	for _, c := range calls {
		if next < len(expect) && expect[next].fits(c) {
			next++
		}
	}
	if next == len(expect) {
		return ""
	}
	return fmt.Sprintf("expected in order: %s; missing from %s on; the calls were: %s", listed(expect), expect[next],
		listed(calls))
}

// pairs returns the largest number of calls that can each be paired with an expected call of their own. An expected
// call can fit several calls, so a first choice may have to be changed: these are augmenting paths.
func pairs(expect []expected, calls []Call) (n int) {
	taken := make([]int, len(calls)) // the expected call of each call, counted from 1
	var place func(e int, seen []bool) bool
	place = func(e int, seen []bool) bool {
		for i, c := range calls {
			if seen[i] || !expect[e].fits(c) {
				continue
			}
			seen[i] = true
			if taken[i] == 0 || place(taken[i]-1, seen) {
				taken[i] = e + 1
				return true
			}
		}
		return false
	}
	for e := range expect {
		if place(e, make([]bool, len(calls))) {
			n++
		}
	}
	return n
}

// fits reports whether the call is the expected one.
func (e expected) fits(c Call) bool {
	if c.Tool != e.tool {
		return false
	}
	want, got := decoded(e.args), decoded(c.Args)
	switch e.arguments {
	case argsIgnored:
		return true
	case argsPartial:
		return within(want, got)
	}
	return reflect.DeepEqual(want, got)
}

func (e expected) String() string {
	if e.arguments == argsIgnored {
		return e.tool
	}
	return Call{e.tool, e.args}.String()
}

// decoded returns the arguments as Go values. Missing arguments are an empty object. Numbers are equal if they have
// the same value, however they are written.
func decoded(args json.RawMessage) (v any) {
	if len(args) == 0 || string(args) == "null" {
		return map[string]any{}
	}
	if json.Unmarshal(args, &v) != nil {
		return string(args)
	}
	return v
}

// within reports whether got has all members of want. Lists have the same length.
func within(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		for name, v := range w {
			has, there := g[name]
			ok = ok && there && within(v, has)
		}
		return ok
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, within)
	}
	return reflect.DeepEqual(want, got)
}

// listed returns calls in one line, shortened.
func listed[T fmt.Stringer](calls []T) string {
	if len(calls) == 0 {
		return "none"
	}
	var all []string
	for _, c := range calls {
		all = append(all, c.String())
	}
	return clip.Text(strings.Join(all, ", "), 600)
}

// checkWords returns why the answer does not have the expected words, or "".
func (t turn) checkWords(e Exchange) string {
	answer, plain := e.Answer, folded(e.Answer)
	for _, w := range t.contains {
		if !strings.Contains(plain, folded(w)) {
			return fmt.Sprintf("the answer lacks %q: %q", w, clip.Text(answer, 300))
		}
	}
	for _, w := range t.lacks {
		if strings.Contains(plain, folded(w)) {
			return fmt.Sprintf("the answer has %q: %q", w, clip.Text(answer, 300))
		}
	}
	if t.matches != nil && !t.matches.MatchString(answer) {
		return fmt.Sprintf("the answer does not match %s: %q", t.matches, clip.Text(answer, 300))
	}
	return ""
}

// quotes are the forms of quotation marks and hyphens that models mix.
var quotes = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`, "‑", "-")

// folded returns a text in which small and capital letters, forms of the same character and kinds of white space are
// equal.
func folded(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(norm.NFKC.String(quotes.Replace(s)))), " ")
}

// hasWords reports whether words of the answer are expected.
func (t turn) hasWords() bool { return len(t.contains)+len(t.lacks) > 0 || t.matches != nil }
