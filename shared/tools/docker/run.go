package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// Limits of a script.
const (
	MaxScript    = 64 << 10 // bytes
	DefaultLimit = 120 * time.Second
	MaxLimit     = 300 * time.Second
)

// grace is the time for stopping a script at its limit, and for this process to notice that.
const grace = 20 * time.Second

// Result is the result of a script.
type Result struct {
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	ExitCode   int    `json:"exitCode"`
	Truncated  bool   `json:"truncated,omitempty"`  // the middle of the output is left out
	TimedOut   bool   `json:"timedOut,omitempty"`   // it was stopped at its time limit
	OutputLost bool   `json:"outputLost,omitempty"` // the process that read the output has died
}

// script is a script to run in a container.
type script struct {
	text  string
	limit time.Duration
}

// around runs the script $2 in a container, and stops it after $1 seconds together with everything else that runs there
// except the container's own command: kill -1 reaches every process of the user except the one that calls it. A
// background process therefore cannot outlive the limit of its script. If a script itself exits with the code of the
// limit, around replaces that code with exitInstead and prints a line about it, because the code is the only evidence
// after the reader has died.
const around = `trap 'kill -9 -1; exit ` + exitAtLimit + `' ALRM
(trap 'kill $s; exit' TERM; sleep "$1" & s=$!; wait $s; kill -ALRM $$) </dev/null >/dev/null 2>&1 &
w=$!
/bin/sh -c "$2" </dev/null &
wait $!
c=$?
kill $w 2>/dev/null
if [ $c = ` + exitAtLimit + ` ]; then
	c=` + exitInstead + `
	echo "countersign: it exited with ` + exitAtLimit + `, which is reported as ` + exitInstead + `" >&2
fi
exit $c`

// exitAtLimit is the exit code of a script that was stopped at its limit, and of no other script. A script that exits
// with that code itself gets exitInstead.
const (
	exitAtLimit = "241"
	exitInstead = "240"
)

func (s script) command() []string {
	return []string{"/bin/sh", "-c", around, "countersign", strconv.Itoa(int(s.limit.Seconds())), s.text}
}

// shows returns the file contents that a script has printed.
func (s script) shows(out Result) (parts []tool.Part) {
	const rest = "Read the file with " + ReadFile + "."
	for _, name := range shell.Excerpts(s.text, shell.POSIX) {
		parts = append(parts, tool.Part{Text: inContainer(name), Rest: rest, Excerpt: true,
			Lost: "what the script did not print"})
	}
	prints, _, _ := shell.Contents(s.text, shell.POSIX)
	for _, name := range prints {
		p := tool.Part{Text: inContainer(name), Rest: rest}
		switch {
		case out.Truncated || out.OutputLost:
			p.Lost = "the omitted part of the output"
		case obs.Redacted(out.Stdout):
			p.Lost = lostSecret
		}
		parts = append(parts, p)
	}
	return parts
}

// replaces returns the files that a script overwrites with a text of its own.
func (s script) replaces() (texts []tool.Text) {
	_, writes, _ := shell.Contents(s.text, shell.POSIX)
	for _, name := range writes {
		texts = append(texts, inContainer(name))
	}
	return texts
}

// inContainer returns the name of a file in the container, for a path in a script.
func inContainer(name string) tool.Text {
	if !path.IsAbs(name) {
		name = path.Join(container.Work, name)
	}
	return tool.Text{Name: name}
}

// running completes the definition of a tool that runs a script in a container. where returns the container.
func running[In any](t *tools, d tool.Def[In, Result], what func(In) script,
	where func(context.Context, Engine, tool.Call, In) (id string, err error)) *tool.Tool {
	d.SideEffect, d.Untrusted, d.Echoes, d.KeepsOutput = true, true, true, true
	d.Contained = t.Network == ""
	d.Limit = func(in In) time.Duration { return what(in).limit + grace }
	d.Note = func(_ In, out Result) tool.Facts { return tool.Facts{"exit": strconv.Itoa(out.ExitCode)} }
	d.Prepare = func(ctx context.Context, c tool.Call, in In) (string, error) {
		e, err := t.engine()
		if err != nil {
			return "", err
		}
		id, err := where(ctx, e, c, in)
		if err != nil {
			return "", err
		}
		found, err := find(ctx, e, c, id)
		if err != nil {
			return "", err
		}
		process, err := e.NewProcess(ctx, found.ID, what(in).command())
		if err != nil {
			return "", nothingDone(err)
		}
		return handle{found.ID, process}.String(), nil
	}
	d.Shows = func(in In, out Result) []tool.Part { return what(in).shows(out) }
	d.Replaces = func(in In) []tool.Text { return what(in).replaces() }
	d.Execute = func(ctx context.Context, c tool.Call, in In) (Result, error) { return t.run(ctx, c, what(in)) }
	d.Reconcile = func(ctx context.Context, c tool.Call, in In) (tool.Verdict, Result, string, error) {
		return t.settle(ctx, c, what(in))
	}
	d.Interrupt = func(ctx context.Context, c tool.Call, _ In) error { return t.interrupt(ctx, c) }
	return tool.Define(d)
}

// handle names a process in a container.
type handle struct{ container, process string }

func (h handle) String() string { return h.container + "/" + h.process }

func handleOf(c tool.Call) handle {
	id, process, _ := strings.Cut(c.Handle, "/")
	return handle{id, process}
}

// run starts the process and waits for its end.
func (t *tools) run(ctx context.Context, c tool.Call, s script) (Result, error) {
	e, err := t.engine()
	if err != nil {
		return Result{}, err
	}
	h := handleOf(c)
	shown := obs.NewSecretFilter(c.Output)
	var stdout, stderr supervisor.Kept
	err = e.Run(ctx, h.process, container.Streams{Stdout: io.MultiWriter(&stdout, shown),
		Stderr: io.MultiWriter(&stderr, shown)})
	_ = shown.Close() // the script continues without a reader of its output
	if err != nil {
		return Result{}, tool.Ambiguous(err)
	}
	p, err := untilEnded(ctx, e, h.process)
	if err != nil {
		return Result{}, tool.Ambiguous(err)
	}
	if !p.Started {
		return Result{}, tool.Ambiguous(errNotBegun)
	}
	out := Result{ExitCode: p.ExitCode}
	var cut [2]bool
	out.Stdout, cut[0] = textOf(&stdout)
	out.Stderr, cut[1] = textOf(&stderr)
	out.Truncated = cut[0] || cut[1]
	return ended(out, s)
}

var errNotBegun = fault.New(fault.Tool, fault.CodeInternal, "The container engine did not start this.")

// textOf returns the output in the form that the model reads.
func textOf(k *supervisor.Kept) (string, bool) {
	raw, cut := k.Bytes()
	text, more := supervisor.Text(raw, supervisor.MaxText)
	return obs.RemoveSecrets(text), cut || more
}

// ended returns the outcome of a script that has ended. The exit code decides whether it succeeded.
func ended(out Result, s script) (Result, error) {
	switch {
	case out.ExitCode == 0:
		return out, nil
	case strconv.Itoa(out.ExitCode) != exitAtLimit:
		return Result{}, tool.Ran(out, fault.New(fault.Tool, CodeExit, "It ran, and ended with the exit code %d.",
			out.ExitCode))
	}
	out.TimedOut = true
	return Result{}, tool.Ran(out, fault.New(fault.Tool, CodeTimeout, "It was ended because it took longer "+
		"than %d seconds, with all else that ran in the container beside its own command.", int(s.limit.Seconds())))
}

// untilEnded checks a process repeatedly until it no longer runs.
func untilEnded(ctx context.Context, e Engine, process string) (container.Process, error) {
	for {
		p, err := e.Look(ctx, process)
		if err != nil || !p.Running {
			return p, err
		}
		if err := wait.For(ctx, lookEvery); err != nil {
			return p, err
		}
	}
}

// settle determines the outcome of a script, and waits for the end of one that still runs. To stop a script that must
// not continue, it removes the container, which is no longer needed.
func (t *tools) settle(ctx context.Context, c tool.Call, s script) (tool.Verdict, Result, string, error) {
	e, err := t.engine()
	if err != nil {
		return "", Result{}, "", err
	}
	h := handleOf(c)
	p, err := untilEnded(ctx, e, h.process)
	switch {
	case errors.Is(err, container.ErrMissing):
		return t.gone(ctx, e, c)
	case err != nil && p.Running:
		return tool.Running, Result{}, "", nil
	case err != nil:
		return "", Result{}, "", fault.As(err)
	case p.Started:
		out, err := ended(Result{ExitCode: p.ExitCode, OutputLost: true}, s)
		return tool.Done, out, "", err
	case !c.Over:
		return tool.NotDone, Result{}, "", nil
	}
	if err := t.interrupt(ctx, c); err != nil {
		return "", Result{}, "", fault.As(err)
	}
	return tool.Never, Result{}, "", nil
}

// gone returns the verdict for a process that the engine does not know.
func (t *tools) gone(ctx context.Context, e Engine, c tool.Call) (tool.Verdict, Result, string, error) {
	_, err := e.Find(ctx, owner(c), handleOf(c).container)
	switch {
	case errors.Is(err, container.ErrMissing) && c.Over:
		return tool.Done, Result{}, "", tool.Ran(Result{OutputLost: true}, fault.New(fault.Policy, CodeStopped,
			"It was stopped. Its container and everything written in it were removed."))
	case errors.Is(err, container.ErrMissing):
		return tool.Unknown, Result{}, "Its container is gone, and with it what it printed.", nil
	case err != nil:
		return "", Result{}, "", fault.As(err)
	}
	return tool.Unknown, Result{}, "The container engine has forgotten it, as it does some minutes after the end. " +
		"Please check in the container what it did.", nil
}

// interrupt stops everything in the container, and prevents further starts there.
func (t *tools) interrupt(ctx context.Context, c tool.Call) error {
	e, err := t.engine()
	if err != nil {
		return err
	}
	if err := e.Remove(ctx, handleOf(c).container); err != nil && !errors.Is(err, container.ErrMissing) {
		return fault.As(err)
	}
	return nil
}

// ScriptArgs are the arguments of docker.executeScript.
type ScriptArgs struct {
	ContainerID    string `json:"containerId" jsonschema:"The id that createContainer has returned."`
	Script         string `json:"script" jsonschema:"A script for the container's /bin/sh, which begins in /work."`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty" jsonschema:"Seconds after which it is ended: 120 if left out, at most 300."`
}

func (t *tools) script() *tool.Tool {
	return running(t, tool.Def[ScriptArgs, Result]{
		Name: Script,
		Description: "Runs a script in a container of this task and returns what it printed and its exit code. " +
			"Processes that it leaves behind go on until the container goes, or a script is ended at its limit.",
		Refine: func(s *jsonschema.Schema) {
			s.Properties["containerId"].Pattern = idPattern
			p := s.Properties["script"]
			p.MinLength, p.MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(MaxScript)
			refineSeconds(s)
		},
		Normalize: func(a ScriptArgs) (ScriptArgs, error) { return a, checkText("script", a.Script) },
		// nothing is pinned: a script can run only in the run's own containers
		Pinned: func(ScriptArgs) any { return struct{}{} },
		Preview: func(a ScriptArgs) tool.Preview {
			p := tool.Preview{Title: "Run a script in a container"}
			p.AddText("Script", a.Script)
			p.AddLine("Container", a.ContainerID)
			p.AddField("Ended after", fmt.Sprintf("at most %d seconds", int(limit(a.TimeoutSeconds).Seconds())))
			t.warn(&p)
			return p
		},
		Summary: func(a ScriptArgs) string {
			return fmt.Sprintf("Ran a script in the container %.12s.", a.ContainerID)
		},
	}, func(a ScriptArgs) script { return script{a.Script, limit(a.TimeoutSeconds)} },
		func(_ context.Context, _ Engine, _ tool.Call, a ScriptArgs) (string, error) {
			return a.ContainerID, nil
		})
}

const idPattern = `^[0-9a-f]{64}$`

func refineSeconds(s *jsonschema.Schema) {
	p := s.Properties["timeoutSeconds"]
	p.Minimum, p.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(MaxLimit.Seconds())
}

func limit(seconds int) time.Duration {
	if seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return DefaultLimit
}

// checkText refuses text that cannot be passed to a process. The schema counts characters; this function counts
// bytes.
func checkText(field, text string) error {
	switch {
	case len(text) > MaxScript:
		return fault.Invalid(field, "the limit is %d bytes", MaxScript)
	case strings.ContainsRune(text, 0):
		return fault.Invalid(field, "a text without NUL is required")
	}
	return nil
}
