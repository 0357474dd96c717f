package tool

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// StepKind says how a call is shown among the steps of a run.
type StepKind string

// The kinds of a step.
const (
	StepCommand  StepKind = "command"  // something that is, or was, carried out
	StepComplete StepKind = "complete" // the task is done
	StepAborted  StepKind = "aborted"  // it was not carried out, or not to its end, because somebody said so
	StepError    StepKind = "error"    // it could not be done
)

// Step is a call as one of the steps that its user follows: what the model asked for, and what came of it.
type Step struct {
	Kind       StepKind `json:"kind"`
	Reasoning  string   `json:"reasoning,omitempty"` // the model's
	Command    string   `json:"command,omitempty"`
	Class      Class    `json:"class,omitempty"`
	Output     string   `json:"output,omitempty"` // what the model was told, its first MaxStepOutput characters
	ExitCode   *int     `json:"exitCode,omitempty"`
	Truncated  bool     `json:"truncated,omitempty"` // there was more than Output has
	TimedOut   bool     `json:"timedOut,omitempty"`
	DurationMS int64    `json:"durationMs,omitempty"`
	Cwd        string   `json:"cwd,omitempty"` // after it

	LeftBehind int      `json:"leftBehind,omitempty"` // processes that it left running, which were ended with it
	Ended      []string `json:"ended,omitempty"`      // the programs of the first of them
}

// maxTried is how much is kept of what the model asked for where it is refused, in bytes.
const maxTried = 2 << 10

// Tried returns what the step of a call shows as its command whose arguments are refused, in visible form, or nothing.
func (t *Tool) Tried(args json.RawMessage) (shown string) {
	if !t.has.step {
		return ""
	}
	defer func() {
		if recover() != nil {
			shown = ""
		}
	}()
	shown, _ = visible.Text(clip.Text(t.tried(args), maxTried))
	return shown
}

// MaxStepOutput is how much of an output a step shows, in characters.
const MaxStepOutput = 2000

// Step returns how the call is shown as a step, or nil where the tool's calls are not. The arguments are canonical, or
// nil where the model's could not be read; the result is what is recorded of the call, which may be nothing or a part.
func (t *Tool) Step(args, result json.RawMessage) (step *Step) {
	if !t.has.step {
		return nil
	}
	defer func() {
		if recover() != nil {
			step = &Step{Kind: StepError}
		}
	}()
	s := t.step(args, result)
	for i, n := 0, 0; i < len(s.Output); n++ {
		if n == MaxStepOutput {
			s.Output, s.Truncated = s.Output[:i], true
			break
		}
		_, size := utf8.DecodeRuneInString(s.Output[i:])
		i += size
	}
	return &s
}
