package plan

import (
	"embed"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/timezone"
)

//go:embed prompts/*.tmpl
var files embed.FS

// prompts returns the three templates of the seed's section 3.2, whose text the seed leaves open (004-23). They are
// text for a model, not HTML. They are parsed on first use, not at the start of each function.
var prompts = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"json": func(s string) string { return string(strictjson.Text(s)) },
		"join": func(names []string) string { return strings.Join(names, ", ") },
	}).ParseFS(files, "prompts/*.tmpl"))
})

// A Situation holds the facts for the model that the session does not contain.
type Situation struct {
	Repo     Repo
	Deadline time.Time
	Now      time.Time
	Zone     *time.Location // time zone of the times; nil: UTC
	Wish     string         // the user's prompt that started the session

	State string // state of the repository with its AGENT.md: text from strangers; empty: unknown
}

// filled is the data of the templates.
type filled struct {
	Situation
	Deadline, Now      string
	Planning, Strict   bool
	Words              []string
	Failure            string // of the failed task, if the plan is made again
	Plan               string // canonical JSON of the plan that was proposed last
	Tasks              []*TaskState
	Current            *TaskState
	Grants             []string
	MaxTasks, MaxCalls int
	CallsLeft          int
	Few                bool // of CallsLeft; until then the instructions do not change, so a service can cache them
}

// Opening returns the text that begins the conversation of a planning or of the current task. It states what the user
// wants, what is known, and what to think about (the template reason). Text from strangers is in it as one line of
// JSON, so it cannot pass for the server's words.
func (at Situation) Opening(s *Session) (string, error) {
	return fill(s, "reason.tmpl", at)
}

// Instructions returns the model's instructions for this phase (the templates act and reflect).
func (at Situation) Instructions(s *Session) (string, error) {
	act, err := fill(s, "act.tmpl", at)
	if err != nil {
		return "", err
	}
	reflect, err := fill(s, "reflect.tmpl", at)
	return act + "\n\n" + reflect, err
}

func fill(s *Session, name string, at Situation) (string, error) {
	zone := at.Zone
	if zone == nil {
		zone = time.UTC
	}
	clock := func(t time.Time) string { return timezone.Clock(t.In(zone), zone.String()) }
	f := filled{Situation: at, Deadline: clock(at.Deadline), Now: clock(at.Now), Planning: s.Current == nil,
		Words: clipped(s.Words), Tasks: s.Tasks, Current: s.Current, MaxTasks: MaxTasks,
		MaxCalls: s.maxCalls(), CallsLeft: s.CallsLeft(), Few: s.CallsLeft() <= 3}
	if s.Confirmed != nil {
		f.Strict = s.Confirmed.Strict
	}
	if s.cause == failed {
		f.Failure = failure(s)
	}
	if s.last != nil {
		b, err := s.last.Canonical()
		if err != nil {
			return "", err
		}
		f.Plan = string(b)
	}
	for _, g := range s.Grants() {
		if !g.Revoked && s.usesBefore(g.key()) < g.MaxCalls && at.Now.Before(g.Until) {
			f.Grants = append(f.Grants, g.Sentence(zone))
		}
	}
	var b strings.Builder
	if err := prompts().ExecuteTemplate(&b, name, f); err != nil {
		return "", err
	}
	return strings.TrimSpace(b.String()), nil
}

// maxWords is the maximum length of each refinement that is repeated in a new conversation, in bytes.
const maxWords = 4 << 10

func clipped(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, clip.Text(w, maxWords))
	}
	return out
}

// failure states which task failed, and why.
func failure(s *Session) string {
	for _, t := range s.Tasks {
		if t.Status == TaskFailed {
			return "The task " + t.ID + " failed: " + string(strictjson.Text(t.Error))
		}
	}
	return "A task failed."
}
