package eval

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/countersign-run/countersign/shared/base/timezone"
)

// optionKeys are the keys of a file that each case can have, too.
var optionKeys = []string{"agent", "now", "timeZone", "language", "repeat", "passes", "thresholds", "judge", "rubrics",
	"approvals", "tools", "never"}

// ownCases reads the cases of a NAME.eval.yaml.
func ownCases(_ *Set, _ *os.Root, n *node) (all []*Case) {
	if !n.object() {
		return nil
	}
	n.only(append([]string{"description", "cases"}, optionKeys...)...)
	if n.get("cases") == nil {
		n.fail("cases is missing; a list of cases was expected")
	}
	n.get("description").text(maxText)
	for i, c := range n.get("cases").list(maxEntries) {
		if !c.object() {
			continue
		}
		c.only(append([]string{"name", "turns", "prompt", "calls", "answer"}, optionKeys...)...)
		one := Case{File: n.file.name}
		if one.Name = c.get("name").text(200); one.Name == "" {
			one.Name = fmt.Sprint(i + 1)
		}
		one.options(c, n)
		one.turns = ownTurns(c)
		one.measured()
		all = append(all, &one)
	}
	return all
}

// options reads what the file can state for all its cases, and the case for itself.
func (c *Case) options(own, shared *node) {
	of := func(name string) *node {
		if v := own.get(name); v != nil {
			return v
		}
		return shared.get(name)
	}
	c.Agent = of("agent").text(100)
	c.Now, c.TimeZone, c.Language = moment(of("now")), zone(of("timeZone")), tongue(of("language"))
	c.repeat = of("repeat").whole(0, 1, maxRepeat)
	c.passes = of("passes").number(1, 0, 1)
	c.never = append(shared.get("never").texts(100), own.get("never").texts(100)...)
	c.rubrics = append(shared.get("rubrics").texts(maxPrompt), own.get("rubrics").texts(maxPrompt)...)
	if len(c.rubrics) > maxRubrics {
		own.fail("%d rubrics; the limit is %d", len(c.rubrics), maxRubrics)
	}
	j := of("judge")
	j.only("model", "samples")
	c.judge = judging{model: j.get("model").text(200), samples: j.get("samples").whole(1, 1, maxSamples)}
	c.needs, c.approvals, c.results = map[string]float64{}, map[string]bool{}, map[string][]recorded{}
	for _, from := range []*node{shared, own} {
		t := from.get("thresholds")
		t.only(Measures...)
		for _, m := range Measures {
			if v := t.get(m); v != nil {
				c.needs[m] = v.number(1, 0, 1)
			}
		}
		for tool, v := range fieldsOf(from.get("approvals")) {
			c.approvals[tool] = v.oneOf("approve", "reject") == "approve"
		}
		for tool, v := range fieldsOf(from.get("tools")) {
			c.results[tool] = resultsOf(v)
		}
	}
}

// fieldsOf returns the fields of an object.
func fieldsOf(n *node) map[string]*node {
	if n == nil || !n.object() {
		return nil
	}
	return n.fields
}

// moment reads a time.
func moment(n *node) time.Time {
	s := n.text(100)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		n.fail("a time such as 2027-03-01T09:00:00Z was expected")
	}
	return t
}

// zone reads a time zone.
func zone(n *node) string {
	name := n.text(100)
	if name == "" {
		return ""
	}
	if _, err := timezone.Load("", name); err != nil {
		n.fail("a time zone such as Europe/Lisbon was expected")
	}
	return name
}

// tongue reads a language tag.
func tongue(n *node) string {
	name := n.text(100)
	if _, err := language.Parse(name); name != "" && err != nil {
		n.fail("a language such as pt-PT was expected")
	}
	return name
}

// resultsOf reads the recorded results of a tool: one, or a list.
func resultsOf(n *node) (all []recorded) {
	items := n.items
	if n.items == nil {
		items = []*node{n}
	}
	if len(items) > maxEntries {
		n.fail("%d results; the limit is %d", len(items), maxEntries)
		return nil
	}
	for _, item := range items {
		if !item.object() {
			continue
		}
		item.only("args", "result", "error")
		r := recorded{fails: item.get("error").text(maxText)}
		if v := item.get("args"); v != nil && v.object() {
			r.args = v.value
		}
		if v := item.get("result"); v != nil {
			r.value = v.value
		}
		if (r.value == nil) == (r.fails == "") {
			item.fail("either result or error was expected")
		}
		all = append(all, r)
	}
	return all
}

// ownTurns reads the turns of a case, or its only one.
func ownTurns(c *node) (all []turn) {
	list := c.get("turns").list(maxTurns)
	if c.get("turns") == nil {
		list = []*node{c}
	} else if c.get("prompt", "calls", "answer") != nil {
		c.fail("either turns or a prompt was expected")
	} else if len(list) == 0 {
		c.get("turns").fail("a list of 1 to %d turns was expected", maxTurns)
	}
	for _, n := range list {
		if !n.object() {
			continue
		}
		if n != c {
			n.only("prompt", "calls", "answer")
		}
		t := turn{prompt: n.get("prompt").text(maxPrompt), calls: trajectoryOf(n.get("calls"))}
		if strings.TrimSpace(t.prompt) == "" {
			n.fail("prompt is missing; the user's words were expected")
		}
		if a := n.get("answer"); a != nil && a.object() {
			a.only("contains", "lacks", "matches", "reference")
			t.contains, t.lacks = a.get("contains").texts(maxText), a.get("lacks").texts(maxText)
			t.matches = pattern(a.get("matches"))
			t.reference = a.get("reference").text(maxText)
		}
		all = append(all, t)
	}
	return all
}

// pattern reads a regular expression.
func pattern(n *node) *regexp.Regexp {
	s := n.text(maxPattern)
	if s == "" {
		return nil
	}
	p, err := regexp.Compile(s)
	if err != nil {
		n.fail("a regular expression of Go was expected: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return p
}

// trajectoryOf reads expected calls: a list, or an object that also states how they are compared.
func trajectoryOf(n *node) *trajectory {
	if n == nil {
		return nil
	}
	t := &trajectory{match: matchExact}
	list, arguments := n, argsExact
	if n.fields != nil {
		n.only("match", "arguments", "expect")
		t.match = n.get("match").oneOf(matchExact, matchInOrder, matchAnyOrder, matchSet, matchSubset)
		arguments = n.get("arguments").oneOf(argsExact, argsPartial, argsIgnored)
		list = n.get("expect")
	}
	for _, c := range list.list(maxEntries) {
		t.expect = append(t.expect, expectedOf(c, arguments))
	}
	return t
}

// expectedOf reads an expected call: the name of a tool, or an object.
func expectedOf(n *node, arguments string) expected {
	if n.fields == nil {
		return expected{tool: n.text(100), arguments: argsIgnored}
	}
	n.only("tool", "args", "arguments")
	e := expected{tool: n.get("tool").text(100), arguments: arguments}
	if e.tool == "" {
		n.fail("tool is missing; the name of a tool was expected")
	}
	if a := n.get("args"); a != nil && a.object() {
		e.args = a.value
	} else if a == nil && n.get("arguments") == nil {
		e.arguments = argsIgnored
	}
	if v := n.get("arguments"); v != nil {
		e.arguments = v.oneOf(argsExact, argsPartial, argsIgnored)
	}
	return e
}

// measured sets the thresholds of the measures that the case's expectations need, and removes the others.
func (c *Case) measured() {
	set := func(measure string, applies bool, def float64) {
		if _, stated := c.needs[measure]; !applies {
			delete(c.needs, measure)
		} else if !stated {
			c.needs[measure] = def
		}
	}
	has := func(of func(turn) bool) bool { return slices.ContainsFunc(c.turns, of) }
	referenced := has(func(t turn) bool { return t.reference != "" })
	_, equivalent := c.needs[Equivalent]
	set(Calls, len(c.never) > 0 || has(func(t turn) bool { return t.calls != nil }), 1)
	set(Words, has(turn.hasWords), 1)
	set(Similar, referenced && (!equivalent || c.needs[Similar] > 0), 0.8)
	set(Equivalent, referenced && equivalent, 1)
	set(Rubric, len(c.rubrics) > 0, 1)
}
