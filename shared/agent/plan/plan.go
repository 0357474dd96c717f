package plan

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Limits of a plan.
const (
	MaxTasks       = 20       // not counting completed tasks
	MaxTitle       = 120      // characters
	MaxGoal        = 2 << 10  // bytes of Goal and of DoneWhen, each
	MaxPlan        = 32 << 10 // bytes of canonical JSON, without the completed tasks
	MaxGrants      = 10
	MaxCalls       = 10 // of one grant
	MaxQuestions   = 5
	MaxAssumptions = 20
	MaxSentence    = 500 // characters of a question or an assumption
	MaxTarget      = 2 << 10
)

// A Plan is confirmed by its user byte for byte.
type Plan struct {
	Repo        Repo      `json:"repo,omitzero" jsonschema:"leave this out, it is set for you"`
	Deadline    time.Time `json:"deadline,omitzero" jsonschema:"leave this out, it is set for you"`
	Tasks       []Task    `json:"tasks" jsonschema:"what is to be done, in this order"`
	Grants      []Grant   `json:"grants,omitempty" jsonschema:"effects that need no further approval once the plan is confirmed"`
	Questions   []string  `json:"questions,omitempty" jsonschema:"what only the user can answer"`
	Assumptions []string  `json:"assumptions,omitempty" jsonschema:"what the plan takes for granted"`
}

// A Task is one step of a plan. It runs in a conversation of its own.
type Task struct {
	ID       string   `json:"id,omitempty" jsonschema:"of a task of the plan before; leave it out for a new one"`
	Title    string   `json:"title" jsonschema:"one line"`
	Goal     string   `json:"goal" jsonschema:"what is to be reached"`
	Tools    []string `json:"tools,omitempty" jsonschema:"names of the tools that the task needs"`
	Effects  []string `json:"effects,omitempty" jsonschema:"those of its tools that must have been carried out when it is done"`
	DoneWhen string   `json:"doneWhen,omitempty" jsonschema:"how to tell that the goal is reached"`
	// GreenWithin makes green checks a condition of the task's end, and limits the waits for them that find others.
	GreenWithin int `json:"greenWithin,omitempty" jsonschema:"of a task until checks are green: at most how many tries"`
}

// A Grant allows calls of one tool whose pinned arguments equal its target.
type Grant struct {
	ID       string          `json:"id,omitempty" jsonschema:"of a grant of the plan before; leave it out for a new one"`
	Tool     string          `json:"tool"`
	Version  string          `json:"version,omitempty" jsonschema:"leave this out, it is set for you"`
	Target   json.RawMessage `json:"target" jsonschema:"the arguments that are not free text, exactly as the calls will have them"`
	MaxCalls int             `json:"maxCalls" jsonschema:"how many calls, 1 to 10"`
	Until    time.Time       `json:"until,omitzero" jsonschema:"RFC 3339; the deadline if left out"`
}

// key identifies the calls that a grant allows. Grants with the same key share one use count, however often they are
// confirmed.
func (g Grant) key() string { return callKey(g.Tool, g.Version, g.Target) }

func callKey(tool, version string, bound json.RawMessage) string {
	return tool + "\x00" + version + "\x00" + string(bound)
}

// Canonical returns the plan's canonical JSON, which is hashed and confirmed.
func (p Plan) Canonical() (json.RawMessage, error) {
	b, err := strictjson.Marshal(p)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(b)
}

// Decode decodes the canonical JSON of a plan. The error is a ValidationError that names the field.
func Decode(canonical json.RawMessage) (Plan, error) {
	var p Plan
	if err := strictjson.Decode(canonical, &p); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Task returns the task with the ID, or nil.
func (p Plan) Task(id string) *Task {
	for i := range p.Tasks {
		if p.Tasks[i].ID == id {
			return &p.Tasks[i]
		}
	}
	return nil
}

// Tools returns the sorted names of the tools that the plan's tasks need, each once.
func (p Plan) Tools() []string {
	var all []string
	for _, t := range p.Tasks {
		all = append(all, t.Tools...)
	}
	return set(all)
}

// set returns the sorted names without duplicates, or nil for none.
func set(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(names))
	return slices.Compact(sorted)
}
