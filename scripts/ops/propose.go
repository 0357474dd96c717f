package main

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// The bounds of the report.
const (
	fewCards   = 10               // a group with fewer cards shows no habit
	unreadTime = 15 * time.Second // a card that is decided within this time was hardly read
	fewPeople  = 3                // a domain with fewer recipients may identify a person, so it is not shown
	maxCounted = 1000             // users that are counted in one group
	maxSeconds = 3600             // a longer time to decide counts as an hour
)

// Proposals report how users decided their cards, and the settings that follow. Nothing is applied.
type Proposals struct {
	Since     time.Time      `json:"since,omitzero"`
	Until     time.Time      `json:"until,omitzero"`
	Groups    []Cards        `json:"groups"` // the most cards first
	Proposed  []Proposal     `json:"proposed"`
	Changed   []Change       `json:"changed"`   // what the proposed settings together would have changed
	NotJudged map[string]int `json:"notJudged"` // calls that Changed does not have, by reason
}

// habit names cards that are alike. It holds for all users, and has no address.
type habit struct {
	Tool  string `json:"tool"`
	Class string `json:"class"`
	To    string `json:"to,omitempty"` // own domain, several domains, another domain, or one domain
	Rule  string `json:"rule"`         // rule that required the card
}

// The values of habit.To that are not a domain.
const (
	toOwn     = "own domain" // of the account on the card
	toSeveral = "several domains"
	toAnother = "another domain"
)

// Cards counts the cards of a habit by their users' answers. The time to decide begins when the card was requested,
// because the store does not know when its user saw it.
type Cards struct {
	habit
	Cards      int    `json:"cards"`
	Approved   int    `json:"approved"` // as shown, and not undone
	Edited     int    `json:"edited"`
	Rejected   int    `json:"rejected"`
	Undone     int    `json:"undone"`
	Unanswered int    `json:"unanswered"` // expired, withdrawn, or open
	Users      int    `json:"users"`      // at most 1000 are counted
	Median     int    `json:"medianSeconds"`
	Verdict    string `json:"verdict,omitempty"` // unread or rejected: each card was approved unread, or rejected
	Note       string `json:"note,omitempty"`    // why no setting is proposed

	seconds map[int]int // decided cards by the time to decide
	users   map[uint64]bool
	people  map[uint64]bool
}

// Proposal is a setting that the cards suggest.
type Proposal struct {
	In    string `json:"in"`   // policy: a line of a policy file; ACTIONS: a field of the action's file
	Line  string `json:"line"` // in the format of that file
	Cards int    `json:"cards"`
	Why   string `json:"why"`
}

// proposed reports on the cards of the selected calls.
func proposed(ctx context.Context, a *app.App, sel selection, getenv func(string) string) (*Proposals, error) {
	g := groups{all: map[habit]*Cards{}, seed: maphash.MakeSeed()}
	env := a.API.Loop.Env
	err := eachCall(ctx, a.Store, &env, sel, func(c pastCall) error {
		g.add(c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p := &Proposals{Since: sel.since, Until: sel.until, Groups: g.done(), Proposed: []Proposal{}, Changed: []Change{},
		NotJudged: map[string]int{}}
	tried := trial{&env, getenv, p}
	if tried.fill(); len(p.Proposed) == 0 {
		return p, nil
	}
	r, err := judged(ctx, a, &env, sel, false)
	p.Changed, p.NotJudged = r.Changed, r.NotJudged
	return p, err
}

// groups counts cards by habit.
type groups struct {
	all  map[habit]*Cards
	seed maphash.Seed
}

// add counts the card of the call, if it had one.
func (g *groups) add(c pastCall) {
	asked := answerTo(c.ex.Events, c.event)
	if asked.at.IsZero() {
		return
	}
	h, people := habitOf(c)
	n := g.all[h]
	if n == nil && len(g.all) >= maxGroups {
		h = habit{Tool: otherCalls}
		n = g.all[h]
	}
	if n == nil {
		n = &Cards{habit: h, seconds: map[int]int{}, users: map[uint64]bool{}, people: map[uint64]bool{}}
		g.all[h] = n
	}
	n.count(asked)
	if len(n.users) < maxCounted {
		n.users[maphash.String(g.seed, c.ex.Run.UID)] = true
	}
	for _, a := range people {
		if len(n.people) < fewPeople {
			n.people[maphash.String(g.seed, a)] = true
		}
	}
}

// answer is a card and what became of it.
type answer struct {
	at, decided time.Time
	by          run.Decision // empty: it was not decided
	undone      bool
}

// answerTo returns the card of the call that the event proposed. Its time is zero if the call had no card.
func answerTo(events []run.Event, call run.Event) (a answer) {
	for _, e := range events {
		switch {
		case e.ActionID != call.ActionID:
		case e.Wait != nil && e.Wait.Kind == run.KindApproval && a.at.IsZero():
			a.at = e.At
		case e.Decided != nil && e.Decided.Decision == run.Undo:
			a.undone = true
		case e.Decided != nil && a.by == "":
			a.by, a.decided = e.Decided.Decision, e.At
		}
	}
	return a
}

// habitOf returns the habit that the card of the call belongs to, and the addresses that the call reaches.
func habitOf(c pastCall) (h habit, people []string) {
	call := c.event.Proposed
	h = habit{Tool: call.Tool, Rule: call.Rule, Class: string(call.Ruled.Of())}
	t := c.ex.Toolbox.Proposed(c.ex.Run, c.ex.State, call.Tool)
	if t == nil {
		return h, nil
	}
	if h.Class == "" {
		h.Class = string(t.Class)
	}
	targets, err := t.Targets(call.Args)
	if err != nil {
		return h, nil
	}
	var domains []string
	for _, to := range targets {
		if to.Kind == tool.TargetAddress {
			people = append(people, to.Value)
			domains = append(domains, domainOf(to.Value))
		}
	}
	slices.Sort(domains)
	switch domains = slices.Compact(domains); {
	case len(domains) > 1:
		h.To = toSeveral
	case len(domains) == 1 && domains[0] == domainOf(call.Place.Name):
		h.To = toOwn
	case len(domains) == 1:
		h.To = domains[0]
	}
	return h, people
}

func domainOf(address string) string {
	_, domain, _ := strings.Cut(address, "@")
	return strings.ToLower(domain)
}

func (n *Cards) count(a answer) {
	n.Cards++
	switch a.by {
	case "":
		n.Unanswered++
		return
	case run.Reject, run.TakeBack:
		n.Rejected++
	case run.ApproveEdited:
		n.Edited++
	default:
		if a.undone {
			n.Undone++
		} else {
			n.Approved++
		}
	}
	n.seconds[min(int(a.decided.Sub(a.at)/time.Second), maxSeconds)]++
}

// merge adds the cards of o to n.
func (n *Cards) merge(o *Cards) {
	n.Cards += o.Cards
	n.Approved += o.Approved
	n.Edited += o.Edited
	n.Rejected += o.Rejected
	n.Undone += o.Undone
	n.Unanswered += o.Unanswered
	for s, k := range o.seconds {
		n.seconds[s] += k
	}
	maps.Copy(n.users, o.users)
}

// median returns the median of the seconds to decide.
func (n *Cards) median() int {
	half := 0
	for _, k := range n.seconds {
		half += k
	}
	half = (half + 1) / 2
	for _, s := range slices.Sorted(maps.Keys(n.seconds)) {
		if half -= n.seconds[s]; half <= 0 {
			return s
		}
	}
	return 0
}

// done returns the groups. It merges domains with few recipients.
func (g *groups) done() []Cards {
	for h, n := range g.all {
		if n.isDomain() && len(n.people) < fewPeople {
			delete(g.all, h)
			if h.To = toAnother; g.all[h] == nil {
				n.habit = h
				g.all[h] = n
			} else {
				g.all[h].merge(n)
			}
		}
	}
	out := []Cards{}
	for _, n := range g.all {
		n.Users, n.Median = len(n.users), n.median()
		switch {
		case n.Cards < fewCards:
		case n.Approved == n.Cards && n.Median <= int(unreadTime/time.Second):
			n.Verdict = unread
		case n.Rejected == n.Cards:
			n.Verdict = rejected
		}
		out = append(out, *n)
	}
	slices.SortFunc(out, func(a, b Cards) int {
		return cmp.Or(b.Cards-a.Cards, strings.Compare(fmt.Sprint(a.habit), fmt.Sprint(b.habit)))
	})
	return out
}

// The values of Cards.Verdict.
const (
	unread   = "unread"
	rejected = "rejected"
)

// isDomain reports whether To is a domain.
func (h habit) isDomain() bool { return strings.Contains(h.To, ".") }

// trial is the environment with the proposed settings.
type trial struct {
	env    *unit.Env
	getenv func(string) string
	p      *Proposals
}

// fill proposes settings for the groups, and changes the environment accordingly.
func (t trial) fill() {
	done := map[string]bool{}
	for i := range t.p.Groups {
		g := &t.p.Groups[i]
		if g.Verdict == "" {
			continue
		}
		in, line, note := t.setting(*g)
		if g.Note = note; note != "" || done[line] {
			continue
		}
		done[line] = true
		t.p.Proposed = append(t.p.Proposed, Proposal{in, line, g.Cards, fmt.Sprintf(
			"%d cards of %d users, each %s; median time to decide %d s", g.Cards, g.Users, g.Verdict, g.Median)})
	}
}

// setting returns the setting that fits the group, after it has changed the environment, or the reason why there is
// none.
func (t trial) setting(g Cards) (in, line, note string) {
	rules := &t.env.Rules
	switch {
	case g.Verdict == rejected && hasEntry(t.getenv("POLICY_DENIED"), g.To):
		return "", "", "POLICY_DENIED has this domain already"
	case g.Verdict == rejected && g.isDomain():
		value := joined(t.getenv("POLICY_DENIED"), g.To)
		rules.Denied = patterns(value)
		return "policy", "POLICY_DENIED=" + value, ""
	case g.Verdict == rejected:
		return "", "", "no setting refuses exactly this; an agent's file can leave the tool out"
	case g.Rule == policy.RuleAskedForAll && rules.AskSideEffects &&
		t.each(func(o Cards) bool { return o.Rule == g.Rule }):
		rules.AskSideEffects = false
		return "policy", "SIDE_EFFECTS=on", ""
	case g.Rule == policy.RuleAlwaysAsk && hasEntry(t.getenv("POLICY_ALWAYS_ASK"), g.To):
		value := without(t.getenv("POLICY_ALWAYS_ASK"), g.To)
		rules.AlwaysAsk = patterns(value)
		return "policy", "POLICY_ALWAYS_ASK=" + value, ""
	case g.Rule != policy.RuleNoRecipient || !strings.HasPrefix(g.Tool, chat.ActionPrefix) ||
		g.Class != string(tool.ClassChange):
		return "", "", "no setting permits this without a card; each user can always allow what their cards offer"
	case !t.each(func(o Cards) bool { return o.Tool == g.Tool }):
		return "", "", "other cards of the tool were read, edited or rejected, and the setting is for the whole tool"
	}
	free := *t.env.Tools[g.Tool]
	free.Approval = tool.NotRequired
	t.env.Tools = maps.Clone(t.env.Tools)
	t.env.Tools[g.Tool] = &free
	return "ACTIONS", strings.TrimPrefix(g.Tool, chat.ActionPrefix) + ": approval: not_required", ""
}

// each reports whether each card of the groups was approved unread.
func (t trial) each(which func(Cards) bool) bool {
	return !slices.ContainsFunc(t.p.Groups, func(g Cards) bool { return which(g) && g.Verdict != unread })
}

// patterns returns the value of a setting that the configuration has checked.
func patterns(value string) address.Patterns {
	p, _ := address.ParsePatterns(value)
	return p
}

func entriesOf(value string) (all []string) {
	for entry := range strings.SplitSeq(value, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			all = append(all, entry)
		}
	}
	return all
}

func joined(value, domain string) string { return strings.Join(append(entriesOf(value), domain), ",") }

func hasEntry(value, domain string) bool {
	return slices.Contains(entriesOf(strings.ToLower(value)), domain)
}

func without(value, domain string) string {
	return strings.Join(slices.DeleteFunc(entriesOf(value), func(e string) bool {
		return strings.EqualFold(e, domain)
	}), ",")
}

// lines returns the report as text.
func (p *Proposals) lines() []string {
	out := []string{"cards  approved  edited  rejected  undone  unanswered  users  median, s  " +
		"tool, class, recipients, rule"}
	for _, g := range p.Groups {
		name := strings.Join(strings.Fields(strings.Join([]string{g.Tool, g.Class, g.To, g.Rule}, " ")), " ")
		out = append(out, fmt.Sprintf("%5d %9d %7d %9d %7d %11d %6d %10d  %s", g.Cards, g.Approved, g.Edited,
			g.Rejected, g.Undone, g.Unanswered, g.Users, g.Median, name))
		if g.Verdict != "" {
			out = append(out, "      each card: "+g.Verdict+"; "+cmp.Or(g.Note, "see below"))
		}
	}
	if len(p.Proposed) == 0 {
		return append(out, "", "no setting is proposed")
	}
	out = append(out, "", "proposed; nothing was applied:")
	for _, c := range p.Proposed {
		out = append(out, "# "+c.In+": "+c.Why, c.Line)
	}
	out = append(out, "", "these settings together would have changed:")
	return slices.Concat(out, changesIn(p.Changed, func(Change) bool { return true }), notJudged(p.NotJudged))
}
