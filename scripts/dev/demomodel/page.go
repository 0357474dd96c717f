package demomodel

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// The kinds of tools, which are the first words of their names, and the two that take a coordinate.
const (
	actionKind  = "action" // the server executes these tools, and the page executes the others
	clickKind   = "click"
	fillKind    = "fill"
	selectKind  = "select"
	toggleKind  = "toggle"
	triggerTool = "trigger-interaction"
	fillTool    = "fill-input"
)

const (
	cart  = " [(my|the|your)] [shopping] (cart|basket|bag) "
	thing = " [me] [(the|a|an|some|any|my)] {what} "
)

// pageRules use the page that the user has open, and the server's actions. They find both by their names, and are not
// made for a particular page.
var pageRules = []rule{
	{phrases: phrases("(find|look for|search for|get|take|pick|choose)"+thing+
		"(and|then) [then] (put|add|place) [{n}] "+
		"[of (it|them|those|these)] [(it|them|those|these)] (in|into|to)"+cart+"[{rest}]",
		"(put|add|place) [{n}] [of] [(the|more)] {what} (in|into|to)"+cart+"[{rest}]"), next: onPage(alone(put))},
	{phrases: phrases("(remove|take|delete)" + thing + "(out of|from)" + cart + "[{rest}]"),
		next: onPage(alone(remove))},
	{phrases: phrases("(what|what's|show|how|is|are|list|tell|do) … (cart|basket) …"), next: onPage(showCart)},
	{phrases: phrases("(rate|give)" + thing +
		"[(with|at)] {n|1|2|3|4|5|one|two|three|four|five} [[out] of (5|five)] (star|stars) " +
		"[(and say|saying|because|with the comment)] [{value}]"), next: onPage(uncommented(rate))},
	{phrases: phrases("[today] (i feel|i am feeling|i am|i'm|i'm feeling|feeling) " +
		"[(so|very|really|pretty|quite|a bit|a little|just)] {word} [today] [(because of|because|and|but)] [{value}]"),
		next: onPage(mood)},
	{phrases: phrases("fill [(in|out)] [the] {what} (with|as|by) {value}",
		"(type|enter) {value} (into|in) [the] {what} [(field|box|input)]"),
		next: onPage(press(fillKind, "I put “{value}” into “{what}”.", "",
			"I find nothing called “{what}” that I could fill in."))},
	{phrases: phrases("(click|press|push|tap) [on] [the] {what} [button]", "{what|check out|checkout} [{rest}]"),
		next: onPage(alone(press(clickKind, "I clicked “{what}”.", "order",
			"I find no button “{what}” on this page.")))},
	{phrases: phrases("(select|choose) {value} (for|as|in) [(the|my)] {what}"),
		next: onPage(press(selectKind, "I put “{value}” into “{what}”.", "",
			"I find nothing called “{what}” that I could choose."))},
	{phrases: phrases("(find|look for|search for|search|show me|do you (have|sell))" + thing), next: onPage(search)},
}

// alone executes a request only if no other words follow it.
func alone(next func(*ask) (fakegemini.Turn, bool)) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) {
		if rest := a.slots["rest"]; remains(rest.mask) {
			return oneAtATime(rest)
		}
		return next(a)
	}
}

// uncommented is like alone, for a request that can end with a comment. A comment does not begin with “and”.
func uncommented(next func(*ask) (fakegemini.Turn, bool)) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) {
		if rest := a.slots["value"]; furthermore.MatchString(rest.mask) {
			return oneAtATime(rest)
		}
		return next(a)
	}
}

func oneAtATime(rest text) (fakegemini.Turn, bool) {
	words := excerpt(strings.Trim(connecting.ReplaceAllString(rest.raw, ""), " .!?,;"), 80)
	return says("I do one thing on a page at a time, so I did nothing yet. Please say “%s” after the rest was "+
		"done, or leave it out.", words)
}

var furthermore = lazyregexp.New(`(?i)^[\s,;.]*(?:and|then|also|afterwards)\b`)

var connecting = lazyregexp.New(`(?i)^[\s,;.]*(?:(?:and|then|also|please)\b[\s,]*)*`)

// onPage declines requests if there is neither a page nor an action.
func onPage(next func(*ask) (fakegemini.Turn, bool)) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) {
		if !slices.ContainsFunc(a.tools, func(t *offered) bool { return t.onPage() || t.is(actionKind) }) {
			return fakegemini.Turn{}, false
		}
		return next(a)
	}
}

// onPage reports whether the tool uses the page.
func (t *offered) onPage() bool {
	return t.generic() || t.is(clickKind) || t.is(fillKind) || t.is(selectKind) || t.is(toggleKind)
}

func (t *offered) generic() bool { return t.Name == triggerTool || t.Name == fillTool }

// count returns the number of things; one by default.
func (a *ask) count() int { return number(oneSpace(strings.ToLower(a.slot("n", "one")))) }

func (a *ask) what() string { return strings.Trim(a.slot("what", ""), "\"“”'.,!?") }

// answered returns the answer to the tool's call.
func (a *ask) answered(tool string) (step, bool) {
	return highest(a.done, func(s step) int { return map[bool]int{true: 1}[s.name == tool] })
}

// acted reports whether the page was used since the user's last words.
func (a *ask) acted() bool {
	return slices.ContainsFunc(a.done, func(s step) bool { return !strings.HasPrefix(s.name, actionKind+"_") })
}

// summary reports success, or the calls that failed, and then the page's content.
func (a *ask) summary(done, shown string) (fakegemini.Turn, bool) {
	if failed := a.failures(); failed != "" {
		done = failed
	}
	return words(join(done, shown)), true
}

// lookUp finds the thing that the request names: with the server's search if it has one, otherwise on the page. It
// returns a turn instead if a call or an answer must come first.
func (a *ask) lookUp() (found item, first fakegemini.Turn, ok bool) {
	tool := a.find(actionKind, "search", "find")
	if tool == nil {
		if found, ok = a.onSight(); !ok {
			first, _ = says("I see no “%s” on this page, and have no search.", a.what())
			return found, first, false
		}
		return a.oneOf(itemsIn(a.state.view))
	}
	s, searched := a.answered(tool.Name)
	list := itemsIn(s.body)
	switch {
	case !searched:
		args, said := map[string]any{}, text{a.what(), a.what()}
		_, said = tool.behind(said, false) // “order 17” is 17 for find-order
		tool.fill(args, said)
		first, _ = calls(fakegemini.Call{Name: tool.Name, Args: args})
	case s.failed != "":
		first, _ = says("The search did not work. %s", s.failed)
	case len(list) == 0:
		first, _ = says("I searched for “%s” and found nothing.", a.what())
	default:
		return a.oneOf(list)
	}
	return item{}, first, false
}

// oneOf returns the thing of a list that the request names, or asks which of several it means.
func (a *ask) oneOf(list []item) (found item, first fakegemini.Turn, ok bool) {
	wanted := wordsOf(a.what())
	var names []string
	for _, i := range list {
		its := wordsOf(i.name())
		if len(its) == len(wanted) && contains(its, wanted...) {
			return i, first, true
		}
		if contains(its, wanted...) && !slices.Contains(names, i.name()) {
			names = append(names, i.name())
		}
	}
	if len(names) > 1 {
		first, _ = says("There are several: %s. Which of them do you mean? I did nothing yet; please say it again "+
			"with its whole name.", strings.Join(names, ", "))
		return found, first, false
	}
	if found, ok = best(list, wanted); ok {
		return found, first, true
	}
	for _, i := range list {
		if !slices.Contains(names, i.name()) {
			names = append(names, i.name())
		}
	}
	first, _ = says("I found %s, and none is called “%s”. Which of them do you mean? I did nothing yet; please say it "+
		"again with its whole name.", strings.Join(names[:min(5, len(names))], ", "), excerpt(a.what(), 60))
	return found, first, false
}

// onSight finds the thing on the page.
func (a *ask) onSight() (item, bool) { return best(itemsIn(a.state.view), wordsOf(a.what())) }

// press finds the tool for the wanted action, or the generic one with the matching coordinate.
func (a *ask) press(kind string, on item, value string, wanted ...string) (fakegemini.Call, bool) {
	if t := a.find(kind, wanted...); t != nil && t.offers(on.key) {
		return t.use(on.key, value), true
	}
	at, ok := a.state.coordinate(on.key, wanted)
	switch {
	case ok && kind == clickKind && a.tool(triggerTool) != nil:
		return fakegemini.Call{Name: triggerTool, Args: map[string]any{"coordinate": at, "event": "click"}}, true
	case ok && kind != clickKind && a.tool(fillTool) != nil:
		return fakegemini.Call{Name: fillTool, Args: map[string]any{"coordinate": at, "value": value}}, true
	}
	return fakegemini.Call{}, false
}

// offers reports whether the tool can be used on the item: its schema may list the possible keys.
func (t *offered) offers(key string) bool {
	f, ok := t.fields["key"]
	return !ok && key == "" || ok && (len(f.Enum) == 0 || slices.Contains(f.Enum, any(key)))
}

// use returns the call of a page's tool on the item with the key, with a value if it takes one.
func (t *offered) use(key, value string) fakegemini.Call {
	args := map[string]any{}
	if _, ok := t.fields["key"]; ok && key != "" {
		args["key"] = key
	}
	if f, ok := t.fields["value"]; ok && value != "" {
		args["value"] = f.value(text{value, value})
	}
	return fakegemini.Call{Name: t.Name, Args: args}
}

// press uses the one control that the request names. It reports what the control did and what the page shows, or that
// no such control exists.
func press(kind, did, shown, lacking string) func(*ask) (fakegemini.Turn, bool) {
	return func(a *ask) (fakegemini.Turn, bool) {
		said := strings.NewReplacer("{what}", a.what(), "{value}", a.slot("value", ""))
		control, of := a.target()
		call, ok := a.press(kind, of, a.slot("value", ""), control...)
		switch {
		case a.acted():
			return a.summary(said.Replace(did), a.state.answer(shown))
		case ok:
			return calls(call)
		}
		return says("%s %s", said.Replace(lacking), a.abilities())
	}
}

// target splits "add to cart for the red mug" into the control's words and the thing.
func (a *ask) target() (control []string, of item) {
	for _, between := range []string{" for the ", " of the ", " for ", " of "} {
		before, after, ok := strings.Cut(a.what(), between)
		if !ok {
			continue
		}
		if of, ok = best(itemsIn(a.state.view), wordsOf(after)); ok {
			return wordsOf(before), of
		}
	}
	return wordsOf(a.what()), item{}
}
