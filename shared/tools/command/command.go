// Package command provides the tools of the agent that works on a terminal (seed 002). run_command runs one command on
// the host of the run's terminal, and run_commands runs a list of commands. task_complete ends the run, and ask_user
// asks its user a question. upload_file copies a file of the conversation to the host, and download_file copies one
// from it.
//
// A command is judged by its text ([shell.Judge]) and by the stored documents of its host and terminal, so a process
// that only judges and shows commands needs no connection. The place of a command consists of the user, the machine and
// the directory. The server sets it, the card shows it, and the approval is bound to it. A command runs on its host
// under package supervisor, so it is started only once, even if the process that requested it dies.
package command

import (
	"context"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/blob"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// The tools' names for the model.
const (
	Run      = "run_command"
	Complete = "task_complete"
	Ask      = "ask_user"
)

// Limits of a command's time.
const (
	DefaultLimit = 30 * time.Second
	MaxLimit     = 15 * time.Minute
)

// maxReasoning, maxSummary and maxQuestion are the size limits of these texts, in bytes.
const (
	maxReasoning = 4 << 10
	maxSummary   = 8 << 10
	maxQuestion  = 4 << 10
)

// Hosts opens connections to hosts.
type Hosts interface {
	// Get returns a connection to the host. The caller returns it with release. The errors are ToolExecutionError
	// host_unreachable, AuthError host_login, and PolicyError host_key_changed; after each, nothing was sent to the
	// host.
	Get(ctx context.Context, h *terminal.Host) (conn supervisor.Conn, release func(), err error)
}

// Options configures the tools.
type Options struct {
	Store store.Store
	Files blob.Store // has the content of uploaded files; nil: none can be copied to a host
	Hosts Hosts      // nil in a process that only judges and shows commands
	Deny  []string   // programs that must not run on any host (TERMINAL_DENY); if there are any, no opaque command runs
}

// Args are the arguments of run_command.
type Args struct {
	Command        string `json:"command" jsonschema:"The command line, for the shell of the host."`
	Reasoning      string `json:"reasoning" jsonschema:"Why this command, in one or two sentences for the user."`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"Seconds after which the command is ended: 30 if left out, at most 900."`
}

// limit returns the command's time limit.
func (a Args) limit() time.Duration {
	if a.TimeoutSeconds > 0 {
		return time.Duration(a.TimeoutSeconds) * time.Second
	}
	return DefaultLimit
}

// grace is the time that a host needs to stop a command at its limit, plus the time until a process that follows it
// notices.
const grace = 15 * time.Second

// atMost returns the longest duration of a call.
func (a Args) atMost() time.Duration { return a.limit() + grace }

// Result is the result of a command, for the model and for the card.
type Result struct {
	Output     string `json:"output"` // stdout and stderr together, as text
	ExitCode   int    `json:"exitCode"`
	Truncated  bool   `json:"truncated"`       // the middle of the output is left out
	TimedOut   bool   `json:"timedOut"`        // it was stopped at its time limit
	Cwd        string `json:"cwd"`             // the directory after the command
	DurationMs int64  `json:"durationMs"`      // by the host's clock
	Asked      bool   `json:"asked,omitempty"` // it waited for input and was stopped

	LeftBehind int      `json:"leftBehind,omitempty"` // number of processes that it left running, which were killed
	Ended      []string `json:"ended,omitempty"`      // the names of some of these programs
}

// Summary is the argument of task_complete.
type Summary struct {
	Summary string `json:"summary" jsonschema:"The work done and the findings, for the user."`
}

// Words is the result of task_complete, and ends the run.
type Words struct {
	Text string `json:"text"`
}

// Question is the argument of ask_user.
type Question struct {
	Question string `json:"question" jsonschema:"One question, in the user's language."`
}

// Answer is the result of ask_user.
type Answer struct {
	Answer string `json:"answer"`
}

// New returns the tools for a terminal.
func New(o Options) tool.Set {
	r := &runner{Options: o, denied: map[string]bool{}}
	for _, name := range o.Deny {
		r.denied[name] = true
	}
	return tool.NewSet(r.tool(), r.listTool(), r.uploadTool(), r.downloadTool(), complete(), ask())
}

func (r *runner) tool() *tool.Tool {
	return tool.Define(tool.Def[Args, Result]{
		Name: Run,
		Description: "Runs one command on the host of the user's terminal, in the terminal's directory, and returns " +
			"what it printed and its exit code. Commands that do more than look wait for the user's yes.",
		SideEffect:  true,
		Class:       tool.ClassOpaque, // for a command that can no longer be judged
		Untrusted:   true,
		Echoes:      true,
		KeepsOutput: true,
		Moves:       true,
		Refine:      refine,
		Normalize:   normalize,
		Rule:        r.rule,
		Note:        note,
		Shows:       shows,
		Replaces:    replaces,
		Targets:     func(Args) []tool.Target { return nil },
		Preview:     preview,
		Summary:     summary,
		Heading:     func(a Args) string { return "Command: " + a.Command },
		Step:        step,
		Place:       r.place,
		Reads:       terminal.Reads,
		Limit:       Args.atMost,
		Prepare:     r.prepare,
		Execute:     r.execute,
		Reconcile:   r.reconcile,
		LookUp:      r.lookUp,
		Interrupt:   r.interrupt,
	})
}

func refine(s *jsonschema.Schema) {
	text(s, "command", shell.MaxLength)
	text(s, "reasoning", maxReasoning)
	timed(s)
}

// timed limits the property timeoutSeconds.
func timed(s *jsonschema.Schema) {
	seconds := s.Properties["timeoutSeconds"]
	seconds.Minimum, seconds.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(MaxLimit.Seconds())
}

// runner executes the calls of the tools.
type runner struct {
	Options
	denied map[string]bool
}

func complete() *tool.Tool {
	return tool.Define(tool.Def[Summary, Words]{
		Name:        Complete,
		Description: "Ends the task. Call it alone, when the task is done or cannot be done, and say which.",
		Final:       true,
		Refine:      func(s *jsonschema.Schema) { text(s, "summary", maxSummary) },
		Execute:     func(_ context.Context, _ tool.Call, s Summary) (Words, error) { return Words{s.Summary}, nil },
		Summary:     func(s Summary) string { return s.Summary },
		Step:        completeStep,
	})
}

func ask() *tool.Tool {
	return tool.Define(tool.Def[Question, Answer]{
		Name: Ask,
		Description: "Asks the user one question and returns the answer. Use it where only the user can decide or " +
			"knows the missing input, and never for a password.",
		Refine:  func(s *jsonschema.Schema) { text(s, "question", maxQuestion) },
		Wait:    24 * time.Hour,
		Preview: func(q Question) tool.Preview { return questionPreview(q) },
	})
}

func questionPreview(q Question) tool.Preview {
	p := tool.Preview{Title: "Answer a question"}
	p.AddText("Question", q.Question)
	return p
}

// text limits the size of a property that is a text.
func text(s *jsonschema.Schema, property string, most int) {
	s.Properties[property].MinLength, s.Properties[property].MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(most)
}
