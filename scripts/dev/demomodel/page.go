package demomodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// The kinds of tools, which are the first words of their names, and the two that take a coordinate.
const (
	actionKind  = "action" // of the server; the others are of the page
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

// pageRules use the page that the user has open, and the server's actions. They match by names, and know no particular
// page.
var pageRules = []rule{
	{phrases: phrases("(find|look for|search for|get|take|pick|choose)"+thing+
		"(and|then) [then] (put|add|place) [{n}] "+
		"[of (it|them|those|these)] [(it|them|those|these)] (in|into|to)"+cart+"…",
		"(put|add|place) [{n}] [of] [(the|more)] {what} (in|into|to)"+cart+"…"), next: onPage(put)},
	{phrases: phrases("(remove|take|delete)" + thing + "(out of|from)" + cart + "…"), next: onPage(remove)},
	{phrases: phrases("(what|what's|show|how|is|are|list|tell|do) … (cart|basket) …"), next: onPage(showCart)},
	{phrases: phrases("(rate|give)" + thing +
		"[(with|at)] {n|1|2|3|4|5|one|two|three|four|five} [[out] of (5|five)] (star|stars) " +
		"[(and say|saying|because|with the comment)] [{value}]"), next: onPage(rate)},
	{phrases: phrases("[today] (i feel|i am feeling|i am|i'm|i'm feeling|feeling) " +
		"[(so|very|really|pretty|quite|a bit|a little|just)] {word} [today] [(because of|because|and|but)] [{value}]"),
		next: onPage(mood)},
	{phrases: phrases("fill [(in|out)] [the] {what} (with|as|by) {value}",
		"(type|enter) {value} (into|in) [the] {what} [(field|box|input)]"),
		next: onPage(press(fillKind, "I put “{value}” into “{what}”.", "",
			"I find nothing called “{what}” that I could fill in."))},
	{phrases: phrases("(click|press|push|tap) [on] [the] {what} [button]", "{what|check out|checkout} …"),
		next: onPage(press(clickKind, "I clicked “{what}”.", "order", "I find no button “{what}” on this page."))},
	{phrases: phrases("(select|choose) {value} (for|as|in) [(the|my)] {what}"),
		next: onPage(press(selectKind, "I put “{value}” into “{what}”.", "",
			"I find nothing called “{what}” that I could choose."))},
	{phrases: phrases("(find|look for|search for|search|show me|do you (have|sell))" + thing), next: onPage(search)},
}

// onPage declines requests where there is neither a page nor an action.
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

// summary says that everything was done, or what was not, and then what the page shows.
func (a *ask) summary(done, shown string) (fakegemini.Turn, bool) {
	if failed := a.failures(); failed != "" {
		done = failed
	}
	return words(join(done, shown)), true
}

// lookUp finds the thing that the request names, with the server's search if there is one, and otherwise on the page.
// It returns a turn instead if a call or an answer must come first.
func (a *ask) lookUp() (found item, first fakegemini.Turn, ok bool) {
	tool := a.find(actionKind, "search", "find")
	if tool == nil {
		if found, ok = a.onSight(); !ok {
			first, _ = says("I see no “%s” on this page, and have no search.", a.what())
		}
		return found, first, ok
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
		if found, ok = best(list, wordsOf(a.what())); !ok {
			found = list[0]
		}
		return found, first, true
	}
	return item{}, first, false
}

// onSight finds the thing on the page.
func (a *ask) onSight() (item, bool) { return best(itemsIn(a.state.view), wordsOf(a.what())) }

// press finds the tool that does what is wanted, or the generic one with the matching coordinate.
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

// maxClicks is how often a button is clicked where there is no field for the quantity.
const maxClicks = 8

func put(a *ask) (fakegemini.Turn, bool) {
	found, first, ok := a.lookUp()
	if !ok {
		return first, true
	}
	n := a.count()
	if a.acted() {
		return a.summary(fmt.Sprintf("I put %d × %s into the cart.", n, found.name()), a.state.inCart())
	}
	click, ok := a.press(clickKind, found, "", "add", "cart")
	if !ok {
		return says("I found %s, but this page has no button that puts it into the cart.", found.priced())
	}
	var made []fakegemini.Call
	if show, ok := a.press(fillKind, item{}, found.name(), "search"); ok && a.state.hidden(found.key) {
		made = append(made, show)
	}
	if fill, ok := a.press(fillKind, found, strconv.Itoa(n), "quantity"); ok {
		return calls(append(made, fill, click)...)
	}
	if n > maxClicks {
		return says("This page has no field for the quantity, and I do not click %d times.", n)
	}
	return calls(append(made, slices.Repeat([]fakegemini.Call{click}, n)...)...)
}

func remove(a *ask) (fakegemini.Turn, bool) {
	if a.acted() {
		return a.summary("I took “"+a.what()+"” out of the cart.", a.state.inCart())
	}
	for _, part := range a.state.named("cart") {
		if found, ok := best(items(part.value), wordsOf(a.what())); ok {
			if click, ok := a.press(clickKind, found, "", "remove", "delete"); ok {
				return calls(click)
			}
		}
	}
	return says("I see no “%s” in the cart that I could take out. %s", a.what(), a.state.inCart())
}

func showCart(a *ask) (fakegemini.Turn, bool) { return words(a.state.inCart()), true }

// inCart describes the contents of the cart, from the page's state alone.
func (s state) inCart() string {
	parts := s.named("cart")
	if len(parts) == 0 {
		return "I see no cart on this page."
	}
	var things, others []string
	for _, part := range parts {
		for _, i := range items(part.value) {
			switch n := i.text("quantity"); {
			case i.name() == "": // a note that items were left out
			case n != "":
				things = append(things, n+" × "+i.priced())
			default:
				things = append(things, i.priced())
			}
		}
		if value := scalar(part.value); value != "" && !slices.Contains(part.words, "count") {
			name := strings.ReplaceAll(strings.Join(part.words, " "), "cart", "")
			others = append(others, join(strings.TrimSpace(name), value))
		}
	}
	if len(things) == 0 {
		return "The cart is empty."
	}
	said := "In the cart: " + strings.Join(things, ", ") + "."
	if len(others) > 0 {
		said += " " + capitalise(strings.Join(others, ", ")) + "."
	}
	return said
}

// answer returns the page's text under a name that is the word.
func (s state) answer(word string) string {
	for _, part := range s.named(word) {
		if said := scalar(part.value); strings.TrimSuffix(strings.Join(part.words, " "), " answer") == word &&
			strings.Contains(said, " ") {
			return "The page says: “" + excerpt(said, 120) + "”"
		}
	}
	return ""
}

func rate(a *ask) (fakegemini.Turn, bool) {
	rating := a.find(actionKind, "rate", "rating", "review")
	if rating == nil {
		return says("I have no action here that takes ratings.")
	}
	if s, ok := a.answered(rating.Name); ok {
		what, stars := a.rated(s)
		return words(s.outcome(fmt.Sprintf("the rating of %s with %s stars", what, stars), "submitted")), true
	}
	found, ok := a.onSight()
	if !ok {
		var first fakegemini.Turn
		if found, first, ok = a.lookUp(); !ok {
			return first, true
		}
	}
	args := map[string]any{}
	for name := range rating.fields {
		if slices.ContainsFunc(wordsOf(name),
			func(w string) bool { return w == "id" || w == "key" || w == "product" }) {
			args[name] = found.key
		}
	}
	rating.fill(args, read(fmt.Sprintf("%d %s", a.count(), a.slot("value", ""))))
	return calls(fakegemini.Call{Name: rating.Name, Args: args})
}

// rated returns what was rated and with how many stars: as the user said, or as they have changed it since.
func (a *ask) rated(s step) (what, stars string) {
	what, stars = a.what(), strconv.Itoa(a.count())
	var args map[string]any
	if !s.edited || json.Unmarshal(s.args, &args) != nil {
		return what, stars
	}
	for _, value := range children(args) {
		if n, ok := value.(float64); ok {
			stars = strconv.FormatFloat(n, 'f', -1, 64)
		}
		for _, i := range itemsIn(a.state.view) {
			if value == i.key {
				what = i.name()
			}
		}
	}
	return what, stars
}

// feelings are words for a mood; those of one line mean about the same.
var feelings = [][]string{
	strings.Fields("great good happy wonderful fantastic excellent amazing awesome lovely super"),
	strings.Fields("fine ok okay alright neutral well"),
	strings.Fields("tired exhausted sleepy weary"),
	strings.Fields("sad bad unhappy down awful terrible low"),
}

// mood fills a form that asks how its user is, if the page has one.
func mood(a *ask) (fakegemini.Turn, bool) {
	form := a.find(selectKind, "mood", "feeling")
	if form == nil {
		return declined()
	}
	feeling, options := strings.ToLower(a.slot("word", "")), form.fields["value"].options()
	for _, like := range feelings {
		for _, option := range options {
			if !slices.Contains(options, feeling) && slices.Contains(like, feeling) && slices.Contains(like, option) {
				feeling = option
			}
		}
	}
	if len(options) > 0 && !slices.Contains(options, feeling) {
		return says("The form takes these moods: %s. Which is nearest to “%s”?", strings.Join(options, ", "), feeling)
	}
	if a.acted() {
		return a.summary("I told the form that you feel "+feeling+".", a.state.answer("mood"))
	}
	made := []fakegemini.Call{form.use("", feeling)}
	why := a.slot("value", "")
	if note, ok := a.press(fillKind, item{}, why, "mood", "note", "comment"); ok && why != "" {
		made = append(made, note)
	}
	if submit, ok := a.press(clickKind, item{}, "", "submit", "mood"); ok {
		made = append(made, submit)
	}
	return calls(made...)
}

// search lists what there is, or uses the page's own search.
func search(a *ask) (fakegemini.Turn, bool) {
	if tool := a.find(actionKind, "search", "find"); tool != nil {
		if _, first, ok := a.lookUp(); !ok {
			return first, true
		}
		s, _ := a.answered(tool.Name)
		var said []string
		for _, i := range itemsIn(s.body) {
			said = append(said, i.priced())
		}
		return says("I found %s.", strings.Join(said, ", "))
	}
	if a.acted() {
		return a.summary("I searched the page for “"+a.what()+"”.", "")
	}
	if fill, ok := a.press(fillKind, item{}, a.what(), "search"); ok {
		return calls(fill)
	}
	return declined()
}

// press uses the one control that is named, and says what it did, with what the page shows then, or that there is none.
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
