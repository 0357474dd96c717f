package github

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// card is a preview under construction.
type card struct{ tool.Preview }

func newCard(title, owner, repo string) *card {
	c := &card{tool.Preview{Title: title}}
	c.AddField("Repository", owner+"/"+repo)
	return c
}

func (c *card) number(label string, n int) { c.AddField(label, fmt.Sprintf("#%d", n)) }

// names shows a set of names unless it is nil. An empty set is shown as empty.
func (c *card) names(label string, names []string, given bool) {
	if !given {
		return
	}
	if len(names) == 0 {
		c.AddField(label, "none")
		return
	}
	c.AddText(label, strings.Join(names, "\n"))
}

// body shows a text to which the action's mark will be added.
func (c *card) body(s string) {
	if s != "" {
		c.AddText("Text", s)
	}
	c.AddField("Mark", "Behind the text stands an HTML comment, "+mark("…")+
		", which lets this service find its own work again. It is visible only in the source.")
}

// seen shows the state that a change depends on.
func (c *card) seen(at string) {
	if at != "" {
		c.AddField("Only if unchanged since", at)
		c.NameMoments(tool.StampMoment(at)...)
	}
}

// reached returns the targets of a call: the repository, and the named people.
func reached(owner, repo string, people []string) []tool.Target {
	out := []tool.Target{{Kind: TargetRepository, Value: owner + "/" + repo}}
	for _, p := range people {
		out = append(out, tool.Target{Kind: TargetAccount, Value: p})
	}
	return out
}
