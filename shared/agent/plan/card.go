package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Card returns what the user reads before confirming the plan: the repository and the deadline, the changes from the
// previous plan, the tasks, the grants, the tools that need an approval each time, the questions and the assumptions.
// Every text of the model is in a field of its own, in visible form.
func (b Bind) Card(p Plan) tool.Preview {
	zone := b.Zone
	if zone == nil {
		zone = time.UTC
	}
	card := tool.Preview{Title: fmt.Sprintf("Plan for %s: %s", p.Repo, counted(len(p.Tasks), "task"))}
	card.AddLine("Repository", string(p.Repo))
	ends := p.Deadline.In(zone)
	deadline := tool.MomentOf(ends, zone.String())
	card.Fields = append(card.Fields, tool.Field{Label: "Deadline", Value: deadline.Text, At: deadline.At,
		Moments: []tool.Moment{deadline}})
	b.addChanges(&card, p, zone)
	for i, t := range p.Tasks {
		b.addTask(&card, fmt.Sprintf("Task %d", i+1), t)
	}
	b.addGrants(&card, p, zone)
	for i, q := range p.Questions {
		card.AddLine(fmt.Sprintf("Question %d", i+1), q)
	}
	for i, a := range p.Assumptions {
		card.AddLine(fmt.Sprintf("Assumption %d", i+1), a)
	}
	return card
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (b Bind) addChanges(card *tool.Preview, p Plan, zone *time.Location) {
	if b.Before == nil {
		return
	}
	d := Diff(*b.Before, p)
	for _, c := range d.Tasks {
		was := byID(b.Before.Tasks, c.TaskID)
		card.AddLine("Change", c.Sentence(was))
		addBefore(card, c, was)
	}
	for _, c := range d.Grants {
		card.AddLine("Change", c.Sentence(zone))
		card.NameMoments(c.moments(zone)...)
	}
	if d.Questions {
		card.AddField("Change", "The questions changed")
	}
	if d.Assumptions {
		card.AddField("Change", "The assumptions changed")
	}
}

// addBefore shows the earlier text of a changed task.
func addBefore(card *tool.Preview, c Change, was Task) {
	if c.Op != Modify {
		return
	}
	if was.Title != c.Task.Title {
		card.AddLine("Change, title before", was.Title)
	}
	if was.Goal != c.Task.Goal {
		card.AddText("Change, goal before", was.Goal)
	}
	if was.DoneWhen != c.Task.DoneWhen && was.DoneWhen != "" {
		card.AddText("Change, done when before", was.DoneWhen)
	}
}

func (b Bind) addTask(card *tool.Preview, label string, t Task) {
	if kept, err := b.kept("", t); kept && err == nil {
		card.AddLine(label+" (done)", t.Title)
		return
	}
	card.AddLine(label, t.Title)
	card.AddText(label+", goal", t.Goal)
	if t.DoneWhen != "" {
		card.AddText(label+", done when", t.DoneWhen)
	}
	if len(t.Effects) > 0 {
		card.AddField(label+", required actions", titles(t.Effects))
	}
	if t.GreenWithin > 0 {
		card.AddField(label+", ends with", "green checks, after at most "+inTries(t.GreenWithin))
	}
}

// allowedBy is the label of each grant on a card. plancard.js looks for it.
const allowedBy = "Allowed by this approval"

// addGrants shows what the confirmation allows, and which tools need an approval each time.
func (b Bind) addGrants(card *tool.Preview, p Plan, zone *time.Location) {
	granted := map[string]bool{}
	for _, g := range p.Grants {
		granted[g.Tool] = true
		until := g.Ends(zone)
		card.Fields = append(card.Fields, tool.Field{Label: allowedBy, Value: g.Sentence(zone), At: until.At,
			Moments: []tool.Moment{until}})
		if t := b.Tools[g.Tool]; t != nil && !calm(t.Class) {
			card.Warn("To %s may delete or overwrite something, or have effects that cannot be known in "+
				"advance.", g.allowed())
		}
	}
	asked := slices.DeleteFunc(p.Tools(), func(name string) bool {
		return granted[name] || b.Tools[name] == nil || !b.Tools[name].SideEffect
	})
	if len(asked) > 0 {
		card.AddField("Needs approval each time", titles(asked))
	}
}

func calm(c tool.Class) bool { return c == tool.ClassRead || c == tool.ClassChange }
