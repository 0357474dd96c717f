package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// A deed describes the calls of a tool, in the words of a card.
type deed struct {
	verb, one, many string
	written         bool // the calls have free text, which the model writes when it makes them
}

var deeds = map[string]deed{
	"github.createIssue":                   {"create", "issue", "issues", true},
	"github.updateIssue":                   {"make", "change of issues", "changes of issues", true},
	"github.closeIssue":                    {"close", "issue", "issues", false},
	"github.createComment":                 {"write", "comment", "comments", true},
	"github.replyToReviewComment":          {"write", "reply to review comments", "replies to review comments", true},
	"github.createPullRequest":             {"open", "pull request", "pull requests", true},
	"github.updatePullRequest":             {"make", "change of pull requests", "changes of pull requests", true},
	"github.closePullRequest":              {"close", "pull request", "pull requests", false},
	"github.commitFiles":                   {"make", "commit", "commits", true},
	"docker.createContainer":               {"start", "container", "containers", false},
	"docker.destroyContainer":              {"remove", "container", "containers", false},
	"docker.cleanupGroupContainers":        {"remove", "group of containers", "groups of containers", false},
	"docker.fetchDependencies":             {"fetch", "set of dependencies", "sets of dependencies", false},
	"docker.editFile":                      {"make", "edit of a file", "edits of files", true},
	"docker.executeScript":                 {"run", "script", "scripts", true},
	"github.configureGitClientInContainer": {"set up Git in", "container", "containers", false},
	"docker.configureGitClientInContainer": {"set up Git in", "container", "containers", false},
}

// Sentence describes what a grant allows, in the server's words. The target's values are in visible form and quoted as
// in JSON, so no value can pass for the server's words. The time is in the zone.
//
//	May create at most 2 issues in acme/web until Friday, 8 January, 14:00. Their text is written later.
func (g Grant) Sentence(zone *time.Location) string {
	s := "May " + g.allowed() + " until " + g.Ends(zone).Text + "."
	switch {
	case !g.deed().written:
		return s
	case g.MaxCalls == 1:
		return s + " Its text is written later."
	}
	return s + " Their text is written later."
}

// Ends returns the end of the grant, in the form of its sentence.
func (g Grant) Ends(zone *time.Location) tool.Moment {
	until := g.Until.In(zone)
	return tool.Moment{Text: until.Format("Monday, 2 January, 15:04"), At: until.Format(time.RFC3339),
		TimeZone: zone.String()}
}

func (g Grant) deed() deed {
	if d, known := deeds[g.Tool]; known {
		return d
	}
	name, _ := visible.Line(g.Tool)
	return deed{"make", "call of " + name, "calls of " + name, true}
}

// titles describes the calls of the tools: Create an issue, Run a script.
func titles(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		title := title(name)
		all[i] = strings.ToUpper(title[:1]) + title[1:]
	}
	return strings.Join(all, ", ")
}

// title describes a call of a tool. For an unknown tool, it consists of the words in the tool's name.
func title(name string) string {
	d, known := deeds[name]
	switch {
	case !known:
		_, words, _ := strings.Cut(name, ".")
		return strings.NewReplacer("_", " ", ".", " ", "-", " ").Replace(apart(cmp.Or(words, name)))
	case strings.ContainsRune("aeiou", rune(d.one[0])):
		return d.verb + " an " + d.one
	}
	return d.verb + " a " + d.one
}

// allowed describes what a grant allows, without its end: create at most 2 issues in acme/web.
func (g Grant) allowed() string {
	d := g.deed()
	count := fmt.Sprintf("at most %d %s", g.MaxCalls, d.many)
	if g.MaxCalls == 1 {
		count = "1 " + d.one
	}
	return d.verb + " " + count + where(g.Target)
}

// where describes a target: the repository, then the other fields by name.
func where(target json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(target, &members) != nil {
		return " of " + quoted(target)
	}
	var owner, repo, in string
	if json.Unmarshal(members["owner"], &owner) == nil && json.Unmarshal(members["repo"], &repo) == nil {
		in, _ = visible.Line(owner + "/" + repo)
		in = " in " + in
		delete(members, "owner")
		delete(members, "repo")
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		label, _ := visible.Line(name)
		more = append(more, apart(label)+": "+quoted(members[name]))
	}
	if len(more) > 0 {
		in += " (" + strings.Join(more, "; ") + ")"
	}
	return in
}

// apart separates the words of a name: issueNumber becomes issue number.
func apart(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// quoted returns a value in visible form: strings as in JSON, lists without brackets, and objects in parentheses.
func quoted(value json.RawMessage) string {
	var list []json.RawMessage
	var members map[string]json.RawMessage
	switch {
	case json.Unmarshal(value, &list) == nil:
		parts := make([]string, len(list))
		for i, v := range list {
			parts[i] = quoted(v)
		}
		return cmp.Or(strings.Join(parts, ", "), "none")
	case json.Unmarshal(value, &members) == nil && members != nil:
		return cmp.Or(strings.TrimPrefix(where(value), " "), "nothing")
	}
	shown, _ := visible.Line(string(value))
	return shown
}

// Sentence describes a change. was is the task before the change, if it existed.
func (c Change) Sentence(was Task) string {
	switch c.Op {
	case Add:
		return "Added: " + c.Task.Title
	case Obsolete:
		return "Dropped: " + was.Title
	}
	var what []string
	if was.Title != c.Task.Title {
		what = append(what, "title")
	}
	if was.Goal != c.Task.Goal {
		what = append(what, "goal")
	}
	if was.DoneWhen != c.Task.DoneWhen {
		what = append(what, "how to tell that it is done")
	}
	if !slices.Equal(was.Tools, c.Task.Tools) {
		what = append(what, "tools")
	}
	if !slices.Equal(was.Effects, c.Task.Effects) {
		what = append(what, "effects")
	}
	if was.GreenWithin != c.Task.GreenWithin {
		what = append(what, "tries until checks are green")
	}
	return "Changed (" + strings.Join(what, ", ") + "): " + c.Task.Title
}

// Sentence describes a change of a grant.
func (c GrantChange) Sentence(zone *time.Location) string {
	switch c.Op {
	case Add:
		return "Newly allowed: " + c.Grant.Sentence(zone)
	case Obsolete:
		return "No longer allowed: " + c.Grant.Sentence(zone)
	}
	return "Now allowed: " + c.Grant.Sentence(zone) + " Before: " + c.Was.Sentence(zone)
}

// moments returns the moments in the change's sentence.
func (c GrantChange) moments(zone *time.Location) []tool.Moment {
	if c.Op == Modify {
		return []tool.Moment{c.Grant.Ends(zone), c.Was.Ends(zone)}
	}
	return []tool.Moment{c.Grant.Ends(zone)}
}
