package eval

import (
	"encoding/json"
	"regexp"
	"time"
)

// The measures of a run. Each has a score from 0 to 1, and passes from the case's threshold on.
const (
	Calls      = "calls"      // turns whose calls are as expected
	Words      = "words"      // turns whose answer has the expected words
	Similar    = "similar"    // ROUGE-1 of the answers and their references, averaged
	Equivalent = "equivalent" // turns whose answer a model judges to say what the reference says
	Rubric     = "rubric"     // statements about the conversation that a model judges to be true
)

// Measures are the names of all measures, in the order of the table.
var Measures = []string{Calls, Words, Similar, Equivalent, Rubric}

// The limits of files and runs.
const (
	maxFiles   = 1000
	maxEntries = 1000 // of one list
	maxTurns   = 100
	maxCases   = 5000
	maxRuns    = 20_000
	maxRepeat  = 100
	maxSamples = 15
	maxRubrics = 50
	maxPrompt  = 32 << 10
	maxText    = 64 << 10
	maxPattern = 1 << 10
)

// Set has the cases that [Load] has read.
type Set struct {
	Cases []*Case
	// Problems are the mistakes in files, each with its place. The cases of the other files are in Cases.
	Problems []error
	// Skipped are the parts of files that are not evaluated, by name.
	Skipped []string
}

// Case is one conversation, and the expectations about it.
type Case struct {
	File  string // path within the folder
	Name  string // unique within the file
	Agent string // name of the agent that the file names; empty: any

	Now      time.Time // when the conversation takes place; zero: at the present
	TimeZone string    // of the user, such as Europe/Lisbon; empty: unknown
	Language string    // of the user, a BCP 47 tag; empty: unknown

	foreign   bool // the file was written for another agent, whose tools can have other names
	turns     []turn
	never     []string // tools that must not be called
	results   map[string][]recorded
	approvals map[string]bool    // by tool; others are approved
	needs     map[string]float64 // thresholds of the measures that apply
	rubrics   []string
	judge     judging
	repeat    int     // runs; 0: the caller decides
	passes    float64 // share of the runs that must pass
}

// ID returns the file and the name.
func (c *Case) ID() string { return c.File + "/" + c.Name }

// turn is a prompt, and the expectations about the answer.
type turn struct {
	prompt    string
	calls     *trajectory // nil: not judged
	contains  []string
	lacks     []string
	matches   *regexp.Regexp
	reference string
}

// trajectory is the expectation about the calls of a turn.
type trajectory struct {
	match  string
	expect []expected
}

// expected is an expected call.
type expected struct {
	tool      string
	args      json.RawMessage
	arguments string // how args are compared
}

// How calls are matched.
const (
	matchExact    = "exact"     // these calls in this order
	matchInOrder  = "in_order"  // these calls in this order, others between them
	matchAnyOrder = "any_order" // these calls in any order, and others
	matchSet      = "set"       // these calls in any order, and no others
	matchSubset   = "subset"    // no other calls than these
)

// How arguments are compared.
const (
	argsExact   = "exact"
	argsPartial = "partial" // the expected members have these values
	argsIgnored = "ignore"
)

// recorded is the recorded result of a call.
type recorded struct {
	args  json.RawMessage // answers only calls with these arguments; nil: any
	value json.RawMessage
	fails string // text of the error instead of a value
}

// judging is how a model judges a case.
type judging struct {
	model   string
	samples int
}
