package demomodel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// page is the input for one decision about a page: what is offered, and what was done since the user's last words.
type page struct {
	surface
	wish    wish
	steps   []step
	noTools bool
}

// onPage returns the next turn if the request offers a page or actions and its user wants something of them.
func onPage(r fakegemini.Request) (fakegemini.Turn, bool) {
	s := readSurface(r)
	w, ok := wishOf(r.User())
	if len(s.tools) == 0 || !ok {
		return fakegemini.Turn{}, false
	}
	p := page{s, w, stepsOf(r.Contents), r.NoTools}
	turn, ok := p.decide()
	if p.noTools && len(turn.Calls) > 0 {
		return words(join(p.failures(), "I may call no tools in this answer, so I stopped here. Please ask again.")),
			true
	}
	return turn, ok
}

// decide returns the next turn, or false if the request is not for the page.
func (p page) decide() (fakegemini.Turn, bool) {
	switch p.wish.kind {
	case putWish:
		return p.put(), true
	case removeWish:
		return p.remove(), true
	case cartWish:
		return words(p.state.inCart()), true
	case rateWish:
		return p.rate(), true
	case moodWish:
		return p.mood()
	case fillWish:
		return p.fill(fillKind, "fill in"), true
	case selectWish:
		return p.fill(selectKind, "choose"), true
	case clickWish:
		return p.click(), true
	}
	return p.search(), true
}

// lookUp finds the thing that the request names, with the server's search if there is one, and otherwise on the page.
// It returns a turn instead if a question or an answer must come first.
func (p page) lookUp() (item, *fakegemini.Turn) {
	search, ok := p.find(actionKind, "search", "find")
	if !ok {
		if found, ok := p.onSight(); ok {
			return found, nil
		}
		return item{}, say("I see no “%s” on this page, and have no search.", p.wish.what)
	}
	done, ok := p.done(search.Name)
	if !ok {
		return item{}, &fakegemini.Turn{Calls: []fakegemini.Call{{Name: search.Name, Args: search.query(p.wish.what)}}}
	}
	if done.failed != "" {
		return item{}, say("The search did not work. %s", done.failed)
	}
	found := itemsIn(done.body)
	if i, ok := best(found, wordsOf(p.wish.what)); ok {
		return i, nil
	}
	if len(found) > 0 {
		return found[0], nil
	}
	return item{}, say("I searched for “%s” and found nothing.", p.wish.what)
}

// onSight finds the thing on the page.
func (p page) onSight() (item, bool) { return best(itemsIn(p.state.view), wordsOf(p.wish.what)) }

// query returns the arguments with the words in the action's field for them.
func (c control) query(text string) map[string]any {
	for _, name := range append(slices.Clone(c.needed), "query") {
		if f, ok := c.fields[name]; ok && f.Type == "string" {
			return map[string]any{name: text}
		}
	}
	return map[string]any{"query": text}
}

func (p page) put() fakegemini.Turn {
	found, first := p.lookUp()
	if first != nil {
		return *first
	}
	if p.acted() {
		return words(join(p.account(fmt.Sprintf("I put %d × %s into the cart.", p.wish.n, found.name())),
			p.state.inCart()))
	}
	click, ok := p.press(clickKind, found, "", "add", "cart")
	if !ok {
		return words("I found " + found.name() + priced(found) +
			", but this page has no button that puts it into the cart.")
	}
	calls := p.bringOut(found)
	if fill, ok := p.press(fillKind, found, strconv.Itoa(p.wish.n), "quantity"); ok {
		return fakegemini.Turn{Calls: append(calls, fill, click)}
	}
	if p.wish.n > maxClicks {
		return words(fmt.Sprintf("This page has no field for the quantity, and I do not click %d times.", p.wish.n))
	}
	return fakegemini.Turn{Calls: append(calls, slices.Repeat([]fakegemini.Call{click}, p.wish.n)...)}
}

// bringOut uses the page's own search to show a thing that is hidden.
func (p page) bringOut(i item) (calls []fakegemini.Call) {
	if fill, ok := p.press(fillKind, item{}, i.name(), "search"); ok && p.state.hidden(i.key) {
		calls = append(calls, fill)
	}
	return calls
}

const maxClicks = 8

func (p page) remove() fakegemini.Turn {
	if p.acted() {
		return words(join(p.account("I took “"+p.wish.what+"” out of the cart."), p.state.inCart()))
	}
	for _, v := range p.state.named("cart") {
		found, ok := best(items(v), wordsOf(p.wish.what))
		if !ok {
			continue
		}
		if click, ok := p.press(clickKind, found, "", "remove", "delete"); ok {
			return fakegemini.Turn{Calls: []fakegemini.Call{click}}
		}
	}
	return words(join("I see no “"+p.wish.what+"” in the cart that I could take out.", p.state.inCart()))
}

func (p page) rate() fakegemini.Turn {
	rating, ok := p.find(actionKind, "rate", "rating", "review")
	if !ok {
		return words("I have no action here that takes ratings.")
	}
	if done, ok := p.done(rating.Name); ok {
		return words(done.outcome(fmt.Sprintf("the rating of %s with %d stars", p.wish.what, p.wish.n), "submitted"))
	}
	found, ok := p.onSight()
	if !ok {
		var first *fakegemini.Turn
		if found, first = p.lookUp(); first != nil {
			return *first
		}
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: rating.Name, Args: rating.rate(found.key, p.wish)}}}
}

// rate fills in the fields that the action has, by their names.
func (c control) rate(key string, w wish) map[string]any {
	args := map[string]any{}
	for name, f := range c.fields {
		has := wordsOf(name)
		switch {
		case slices.Contains(has, "id") || slices.Contains(has, "key") || slices.Contains(has, "product"):
			args[name] = key
		case f.Type == "integer" || f.Type == "number":
			args[name] = w.n
		case slices.Contains(has, "comment") && w.value != "":
			args[name] = w.value
		}
	}
	return args
}

// mood fills a form that asks how its user is, if the page has one.
func (p page) mood() (fakegemini.Turn, bool) {
	form, ok := p.find(selectKind, "mood", "feeling")
	if !ok {
		return fakegemini.Turn{}, false
	}
	options := form.fields["value"].Enum
	feeling, ok := among(options, p.wish.what)
	if !ok && len(options) > 0 {
		return words("The form takes these moods: " + strings.Join(options, ", ") + ". Which is nearest to “" +
			p.wish.what + "”?"), true
	}
	if !ok {
		feeling = strings.ToLower(p.wish.what)
	}
	if p.acted() {
		return words(join(p.account("I told the form that you feel "+feeling+"."), p.state.answer("mood"))), true
	}
	calls := []fakegemini.Call{form.use("", feeling)}
	if note, ok := p.press(fillKind, item{}, p.wish.value, "mood", "note", "comment"); ok && p.wish.value != "" {
		calls = append(calls, note)
	}
	if submit, ok := p.press(clickKind, item{}, "", "submit", "mood"); ok {
		calls = append(calls, submit)
	}
	return fakegemini.Turn{Calls: calls}, true
}

// search lists what there is, without using the page.
func (p page) search() fakegemini.Turn {
	if _, ok := p.find(actionKind, "search", "find"); ok {
		if _, first := p.lookUp(); first != nil {
			return *first
		}
		return words(p.found())
	}
	if p.acted() {
		return words(p.account("I searched the page for “" + p.wish.what + "”."))
	}
	if fill, ok := p.press(fillKind, item{}, p.wish.what, "search"); ok {
		return fakegemini.Turn{Calls: []fakegemini.Call{fill}}
	}
	return words("I have no search here.")
}

func (p page) click() fakegemini.Turn {
	what, of := p.target()
	if p.acted() {
		return words(join(p.account("I clicked “"+p.wish.what+"”."), p.state.answer("order")))
	}
	if click, ok := p.press(clickKind, of, "", what...); ok {
		return fakegemini.Turn{Calls: []fakegemini.Call{click}}
	}
	return words("I find no button “" + p.wish.what + "” on this page. " + p.abilities())
}

func (p page) fill(kind, verb string) fakegemini.Turn {
	what, of := p.target()
	if p.acted() {
		return words(p.account("I put “" + p.wish.value + "” into “" + p.wish.what + "”."))
	}
	if call, ok := p.press(kind, of, p.wish.value, what...); ok {
		return fakegemini.Turn{Calls: []fakegemini.Call{call}}
	}
	return words("I find nothing called “" + p.wish.what + "” that I could " + verb + ". " + p.abilities())
}

// target splits "add to cart for the red mug" into the control's words and the thing.
func (p page) target() (control []string, of item) {
	for _, between := range []string{" for the ", " of the ", " for ", " of "} {
		before, after, ok := strings.Cut(p.wish.what, between)
		if !ok {
			continue
		}
		if of, ok = best(itemsIn(p.state.view), wordsOf(after)); ok {
			return wordsOf(before), of
		}
	}
	return wordsOf(p.wish.what), item{}
}

func say(format string, args ...any) *fakegemini.Turn {
	t := words(fmt.Sprintf(format, args...))
	return &t
}
