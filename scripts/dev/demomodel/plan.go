package demomodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// The tools of a planner's session that other agents do not have.
const (
	proposeTool = "propose_plan"
	reflectTool = "reflect"

	listFiles   = "github.listFiles"
	listIssues  = "github.listIssues"
	readFile    = "github.readFile"
	createIssue = "github.createIssue"
	searchWeb   = "google_web_search"

	readme = "README.md"
)

// A session is a request of a planner session. It knows only the first words of its conversation, and the calls since
// then.
type session struct {
	*dialogue
	told        string // the opening
	owner, repo string
}

type planTask struct {
	Title   string   `json:"title"`
	Goal    string   `json:"goal"`
	Tools   []string `json:"tools"`
	Effects []string `json:"effects,omitempty"`
	ID      string   `json:"id,omitempty"`
}

type planGrant struct {
	Tool     string         `json:"tool"`
	Target   map[string]any `json:"target"`
	MaxCalls int            `json:"maxCalls"`
}

type proposal struct {
	Tasks       []planTask  `json:"tasks"`
	Grants      []planGrant `json:"grants,omitempty"`
	Questions   []string    `json:"questions,omitempty"`
	Assumptions []string    `json:"assumptions,omitempty"`
}

var (
	theWish      = lazyregexp.New(`(?s)# What the user wants\n(.*?)(?:\n\n(?:The user on a plan before|# )|\z)`)
	onAPlan      = lazyregexp.New(`(?m)^The user on a plan before: (.*)$`)
	planBefore   = lazyregexp.New(`(?m)^# The plan before\n(.*)$`)
	itsTask      = lazyregexp.New(`(?m)^# The current task, (\S+)\n(.*)\n`)
	itsTools     = lazyregexp.New(`(?m)^Tools: (.*)$`)
	itsGoal      = lazyregexp.New(`(?m)^Goal: (.*)$`)
	itsRepo      = lazyregexp.New(`(?m)^(?:# The repository |The repository is )([\w-]+)/([\w.-]*[\w-])`)
	noted        = lazyregexp.New(`(?m)^   Result, as it was noted: (".*")$`)
	smaller      = lazyregexp.New(`(?i)\b(?:step|task)\s+(\d+)\s+(?:smaller|shorter|simpler)\b`)
	dropped      = lazyregexp.New(`(?i)\b(?:drop|leave out|remove|skip)\s+(?:step|task)\s+(\d+)\b`)
	searched     = lazyregexp.New(`(?i)\bsearch\s+(?:the\s+web\s+)?(?:for\s+)?(.+?)(?:\s+and\s+open\b|[.;,\n]|$)`)
	knownWork    = lazyregexp.New(`\b(?:links?|issues?|readme)\b`)
	relativeLink = lazyregexp.New(`\]\(([^)\s:#]+)\)`)
)

// planned returns the turn of a planner session. ok is false if the request is not from a planner session.
func (d *dialogue) planned() (turn fakegemini.Turn, ok bool) {
	plans, acts := d.Has(proposeTool), d.Has(reflectTool)
	if !plans && !acts || len(d.said) == 0 {
		return turn, false
	}
	p := session{dialogue: d, told: d.said[len(d.said)-1]}
	if m := itsRepo.FindStringSubmatch(p.told); m != nil {
		p.owner, p.repo = m[1], m[2]
	}
	if plans {
		return p.plan(), true
	}
	return p.act(), true
}

func (p session) may(tool string) bool {
	return slices.ContainsFunc(p.tools, func(t *offered) bool { return t.Name == tool })
}

// call makes a step, with its reason, in the repository if the tool is GitHub's.
func (p session) call(tool, reason string, args map[string]any) fakegemini.Turn {
	args["reasoning"] = reason
	if strings.HasPrefix(tool, "github.") {
		args["owner"], args["repo"] = p.owner, p.repo
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: args}}}
}

// plan reads the open issues, and then proposes a plan.
func (p session) plan() fakegemini.Turn {
	if len(p.done) == 0 && p.may(listIssues) {
		return p.call(listIssues, "An issue about it may be open already.", map[string]any{})
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: proposeTool, Args: p.proposal()}}}
}

// proposal returns the previous plan with the user's changes, or a first plan.
func (p session) proposal() proposal {
	wish := p.told
	if m := theWish.FindStringSubmatch(p.told); m != nil {
		wish = strings.TrimSpace(m[1])
	}
	words := onAPlan.FindAllStringSubmatch(p.told, -1)
	var out proposal
	if m := planBefore.FindStringSubmatch(p.told); m == nil || json.Unmarshal([]byte(m[1]), &out) != nil {
		return p.first(wish)
	}
	if len(words) > 0 {
		out.refine(words[len(words)-1][1])
	}
	return out
}

func (p session) first(wish string) (out proposal) {
	if m := searched.FindStringSubmatch(wish); m != nil && p.Has(searchWeb) {
		out.Tasks = append(out.Tasks, planTask{Title: "Search the web for " + excerpt(m[1], 80),
			Goal: "It is known what the web says about it.", Tools: []string{searchWeb}})
	}
	about := strings.ToLower(wish)
	if len(out.Tasks) == 0 && !knownWork.MatchString(about) {
		out.Questions = append(out.Questions, "The demo model does not understand this wish: it can look for a "+
			"broken link of "+
			"the README, open an issue about it, and search the web. Which of these do you want?")
	}
	if len(out.Tasks) == 0 || strings.Contains(about, "link") {
		out.Tasks = append(out.Tasks, planTask{Title: "Find the broken link",
			Goal:  "It is known which link of the README leads to a file that is not there.",
			Tools: []string{listFiles, readFile}})
	}
	if strings.Contains(about, "issue") {
		out.Tasks = append(out.Tasks, planTask{Title: "Open an issue",
			Goal:  "An issue describes the finding. It also names the necessary change, and the place.",
			Tools: []string{createIssue}, Effects: []string{createIssue}})
		out.Grants = []planGrant{{createIssue, map[string]any{"owner": p.owner, "repo": p.repo}, 1}}
	}
	if strings.Contains(about, "fix") {
		out.Assumptions = append(out.Assumptions, "The demo model changes no files: it names the necessary changes.")
	}
	return out
}

// refine makes a task smaller or leaves it out. Other words change nothing, and confirm nothing.
func (out *proposal) refine(words string) {
	if i, ok := out.task(smaller, words); ok {
		t := &out.Tasks[i]
		t.Goal, _, _ = strings.Cut(t.Goal, ". ")
		t.Goal = strings.TrimSuffix(t.Goal, ".") + "."
	}
	if i, ok := out.task(dropped, words); ok && len(out.Tasks) > 1 {
		effects := out.Tasks[i].Effects
		out.Tasks = slices.Delete(out.Tasks, i, i+1)
		out.Grants = slices.DeleteFunc(out.Grants, func(g planGrant) bool { return slices.Contains(effects, g.Tool) })
	}
}

func (out *proposal) task(of *lazyregexp.Regexp, words string) (int, bool) {
	m := of.FindStringSubmatch(words)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n - 1, err == nil && 1 <= n && n <= len(out.Tasks)
}

// act makes the next step of the current task: it calls each of its tools once, in order, and then reports the status.
func (p session) act() fakegemini.Turn {
	if n := len(p.done); n > 0 && p.done[n-1].failed != "" {
		return p.reflect(false, p.done[n-1].failed)
	}
	m := itsTools.FindStringSubmatch(p.told)
	if m == nil {
		return p.reflect(false, "The task names no tool, and I know none for it.")
	}
	for i, tool := range strings.Split(m[1], ", ") {
		switch {
		case i < len(p.done):
		case !p.may(tool):
			return p.reflect(false, tool+" cannot be called.")
		default:
			return p.step(tool)
		}
	}
	return p.reflect(true, p.found())
}

func (p session) step(tool string) fakegemini.Turn {
	switch tool {
	case listFiles:
		return p.call(tool, "To know which files a link may lead to.", map[string]any{})
	case readFile:
		return p.call(tool, "The links are in the README.", map[string]any{"path": readme})
	case searchWeb:
		about := itsTask.FindStringSubmatch(p.told)
		query := strings.TrimPrefix(about[2], "Search the web for ")
		return p.call(tool, "The task asks for it.", map[string]any{"query": query})
	case createIssue:
		body := "This was found while a plan was running."
		for _, m := range noted.FindAllStringSubmatch(p.told, -1) {
			var result string
			if json.Unmarshal([]byte(m[1]), &result) == nil {
				body = result
			}
		}
		goal := itsGoal.FindStringSubmatch(p.told)
		if goal != nil && strings.Contains(goal[1], "the necessary change") {
			body += "\n\nChange the link, or add the file."
		}
		return p.call(tool, "The finding must be recorded.", map[string]any{"title": "Broken link", "body": body})
	}
	return p.reflect(false, "I do not know how to call "+tool+".")
}

// found describes the results of the task's calls.
func (p session) found() string {
	var paths, broken []string
	for _, s := range p.done {
		body, _ := s.body.(map[string]any)
		switch s.name {
		case listFiles:
			files, _ := body["files"].([]any)
			for _, f := range files {
				file, _ := f.(map[string]any)
				paths = append(paths, fmt.Sprint(file["path"]))
			}
		case readFile:
			content, _ := body["content"].(string)
			for _, m := range relativeLink.FindAllStringSubmatch(content, -1) {
				if !slices.Contains(paths, m[1]) {
					broken = append(broken, m[1])
				}
			}
			if len(broken) == 0 {
				return "Every link of the README leads to a file."
			}
			return fmt.Sprintf("The README links to %s, which is not there.", strings.Join(broken, ", "))
		case createIssue:
			return fmt.Sprintf("Issue %v is open.", body["number"])
		case searchWeb:
			text, _ := body["text"].(string)
			return "The web says: " + excerpt(text, 400)
		}
	}
	return "It is done."
}

func (p session) reflect(complete bool, result string) fakegemini.Turn {
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: reflectTool, Args: map[string]any{
		"is_task_complete": complete, "failed": !complete, "reflection": result, "result": result}}}}
}
