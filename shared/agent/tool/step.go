package tool

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// StepKind states how a call is shown among the steps of a run.
type StepKind string

// The kinds of a step.
const (
	StepCommand  StepKind = "command"  // it runs or has run
	StepComplete StepKind = "complete" // the task is done
	StepAborted  StepKind = "aborted"  // someone stopped or rejected it
	StepError    StepKind = "error"    // it failed
	StepFile     StepKind = "file"     // it transfers or has transferred a file
)

// Step is a call as one of the steps that a user follows: what the model requested, and the outcome.
type Step struct {
	Kind       StepKind `json:"kind"`
	Reasoning  string   `json:"reasoning,omitempty"` // the model's reasoning
	Command    string   `json:"command,omitempty"`
	Class      Class    `json:"class,omitempty"`
	Output     string   `json:"output,omitempty"` // the first MaxStepOutput characters of the model's result
	ExitCode   *int     `json:"exitCode,omitempty"`
	Truncated  bool     `json:"truncated,omitempty"` // Output is cut
	TimedOut   bool     `json:"timedOut,omitempty"`
	DurationMS int64    `json:"durationMs,omitempty"`
	Cwd        string   `json:"cwd,omitempty"` // working directory after the call

	LeftBehind int      `json:"leftBehind,omitempty"` // processes that it left running; they were stopped with it
	Ended      []string `json:"ended,omitempty"`      // names of the first of these programs

	// Commands are the commands of a list, in their order. Command and Output then have all of them. A command that was
	// not run has the kind StepAborted.
	Commands []Step `json:"commands,omitempty"`

	File *File `json:"file,omitempty"` // the file that the call transfers
}

// File is a file that a call transfers.
type File struct {
	Name   string `json:"name"`
	Path   string `json:"path"`             // on the host
	Size   int64  `json:"size,omitempty"`   // in bytes; with SHA256
	SHA256 string `json:"sha256,omitempty"` // of the transferred file
	Kept   bool   `json:"kept,omitempty"`   // the call's stored output is the file
}

// maxTried is the maximum length of a refused request in a step, in bytes.
const maxTried = 2 << 10

// Tried returns the text that a step shows as the command of a call whose arguments were refused, with hidden
// characters made visible. It returns "" if the tool's calls are not shown as steps.
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

// MaxStepOutput is the maximum length of a step's output, in characters.
const MaxStepOutput = 2000

// Step returns the call as a step, or nil if the tool's calls are not shown as steps. The arguments are canonical, or
// nil if they were unreadable. result is the recorded result, which may be empty or partial.
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
	s.cut()
	for i := range s.Commands {
		s.Commands[i].cut()
	}
	return &s
}

// cut shortens the output to MaxStepOutput characters.
func (s *Step) cut() {
	for i, n := 0, 0; i < len(s.Output); n++ {
		if n == MaxStepOutput {
			s.Output, s.Truncated = s.Output[:i], true
			return
		}
		_, size := utf8.DecodeRuneInString(s.Output[i:])
		i += size
	}
}
