package demomodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// maxClicks is the maximum number of clicks on a button if there is no field for the quantity.
const maxClicks = 8

func put(a *ask) (fakegemini.Turn, bool) {
	n := a.count()
	if n < 1 {
		return says("How many do you want in the cart? I did nothing yet.")
	}
	found, first, ok := a.lookUp()
	if !ok {
		return first, true
	}
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
	count := "0"
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
		value := scalar(part.value)
		switch {
		case value == "":
		case slices.Contains(part.words, "count"):
			count = value
		default:
			name := strings.ReplaceAll(strings.Join(part.words, " "), "cart", "")
			others = append(others, join(strings.TrimSpace(name), value))
		}
	}
	switch {
	case len(things) > 0:
	case count == "0":
		return "The cart is empty."
	case count == "1":
		return "There is 1 thing in the cart."
	default:
		return "There are " + count + " things in the cart."
	}
	said := "In the cart: " + strings.Join(things, ", ") + "."
	if len(others) > 0 {
		said += " " + capitalise(strings.Join(others, ", ")) + "."
	}
	return said
}

// answer returns the page's text under a name that equals the word.
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
	if ok {
		var first fakegemini.Turn
		if found, first, ok = a.oneOf(itemsIn(a.state.view)); !ok {
			return first, true
		}
	} else {
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

// rated returns the rated item and the number of stars, after the user's later changes.
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

// search lists the items, or uses the page's own search.
func search(a *ask) (fakegemini.Turn, bool) {
	if tool := a.find(actionKind, "search", "find"); tool != nil {
		s, _ := a.answered(tool.Name)
		if len(itemsIn(s.body)) == 0 {
			_, first, _ := a.lookUp()
			return first, true
		}
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
