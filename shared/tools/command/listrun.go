package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// CodeListFailed is the error code of a list in which a command ended with an exit code other than 0.
const CodeListFailed = fault.Code("command_failed")

// maxListText limits the output in a list's result, in bytes. Each command gets an equal share.
const maxListText = 2 * supervisor.MaxText

// prepareList makes sure that the commands can run and be found again. A list needs journals, because they show which
// of its commands have run.
func (r *runner) prepareList(ctx context.Context, c tool.Call, l List) (string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", err
	}
	defer m.release()
	if err := r.ready(ctx, m, c, l.each()...); err != nil {
		return "", err
	}
	if m.Facts.Home == "" {
		return "", errNoHome()
	}
	return m.Handle(), nil
}

// listRun is the work of one process on a list. Each command has a journal of its own on the host, so it starts only
// once. The journals alone determine the next command, so all processes that work on the list decide the same.
type listRun struct {
	*runner
	m      *machine
	call   tool.Call
	list   List
	result ListResult
	moved  bool // a command has ended, and the machine's directory is the one in which it ended
}

func (r *runner) listRun(m *machine, c tool.Call, l List) *listRun {
	run := &listRun{runner: r, m: m, call: c, list: l}
	for _, line := range l.Commands {
		run.result.Commands = append(run.result.Commands, LineResult{Command: line.Command, NotRun: true})
	}
	return run
}

// executeList runs the commands, beginning with the first. Once a command has run, an error that leaves the outcome
// open is ambiguous, and reconcileList continues the list.
func (r *runner) executeList(ctx context.Context, c tool.Call, l List) (ListResult, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return ListResult{}, err
	}
	defer m.release()
	run := r.listRun(m, c, l)
	for i := range l.Commands {
		if err := run.begin(ctx, i); err != nil {
			return ListResult{}, err
		}
	}
	return run.result, run.keepDirectory(ctx)
}

// begin starts a command and waits for its end. It returns an error if the list ends with this command.
func (l *listRun) begin(ctx context.Context, i int) error {
	out := l.output(i)
	defer out.close()
	start, err := l.start(l.m, l.call, l.list.args(i), supervisor.InList(l.call.ActionID, i))
	if err != nil {
		return l.notRun(ctx, i, err)
	}
	res, err := l.m.Start(ctx, start, out)
	if err != nil {
		return l.notRun(ctx, i, l.notStarted(ctx, l.m.at, l.call, l.list.args(i), err))
	}
	return l.ended(ctx, i, out, res)
}

// output returns the output of a command. In the output of the list, a heading with the command precedes it.
func (l *listRun) output(i int) *printed {
	_, _ = io.WriteString(l.call.Output, headed(i, l.list.Commands[i].Command)) // Output never fails
	return newPrinted(l.call.Output)
}

// headed returns the heading before the output of a command in a list.
func headed(i int, command string) string {
	between := ""
	if i > 0 {
		between = "\n"
	}
	return between + "$ " + command + "\n"
}

// notRun returns the outcome of a list if a command could not be started. Before the first command, it is the same as
// for a single command.
func (l *listRun) notRun(ctx context.Context, i int, err error) error {
	switch {
	case tool.AskedAnew(err) != nil && (i == 0 || !l.call.Approved): // all commands before it only read
		return tool.AskAnew(l.list, fault.As(err))
	case i == 0:
		return err
	case tool.IsTransient(err) || tool.IsAmbiguous(err):
		return tool.Ambiguous(err)
	}
	why := fault.As(err)
	l.moved = l.moved && why.Code != CodeNoDir && why.Code != CodeMoved // notStarted has stored the directory
	return l.over(ctx, fault.New(why.Class, why.Code, "%s of %d was not started (%s).%s", numbered(i),
		len(l.list.Commands), strings.ReplaceAll(string(why.Code), "_", " "), l.rest(i)).Because(err))
}

// ended records the result of a command, and returns an error if the list ends with it.
func (l *listRun) ended(ctx context.Context, i int, out *printed, res supervisor.Result) error {
	result := out.result(res, min(supervisor.MaxText, maxListText/len(l.list.Commands)))
	l.result.Commands[i] = LineResult{Command: l.list.Commands[i].Command, Result: &result}
	if res.Cwd != "" {
		l.m.at.Cwd, l.m.at.Real, l.moved = res.Cwd, res.Real, true
	}
	early := endedEarly(l.list.args(i), res)
	switch {
	case early != nil:
		return l.over(ctx, fault.As(early))
	case res.Exit != 0:
		return l.over(ctx, fault.New(fault.Tool, CodeListFailed, "%s of %d ended with exit code %d.%s", numbered(i),
			len(l.list.Commands), res.Exit, l.rest(i)))
	}
	return nil
}

// rest describes the state of the commands after the one with which the list ended.
func (l *listRun) rest(i int) string {
	if i == len(l.list.Commands)-1 {
		return ""
	}
	return " The commands after it were not run."
}

// over returns the outcome of a list that ends early, with the results of the commands that ran.
func (l *listRun) over(ctx context.Context, why *fault.Error) error {
	if err := l.keepDirectory(ctx); err != nil {
		return err
	}
	return tool.Ran(l.result, why)
}

// keepDirectory stores the directory of the last command that ran, for the terminal's next call. It is stored only when
// the list has ended, because until then the list is bound to the directory in which it was approved.
func (l *listRun) keepDirectory(ctx context.Context) error {
	if !l.moved {
		return nil
	}
	if err := l.runner.moved(ctx, l.call, l.m.at.Cwd, l.m.at.Real); err != nil {
		return tool.Ambiguous(err) // the host is asked again, and the directory is stored then
	}
	return nil
}

// reconcileList finds out from the journals how many commands have run. It follows a command that is running, and
// starts the commands after the last one that succeeded.
func (r *runner) reconcileList(ctx context.Context, c tool.Call, l List) (tool.Verdict, ListResult, string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", ListResult{}, "", err
	}
	defer m.release()
	run := r.listRun(m, c, l)
	for i := range l.Commands {
		verdict, reason, err := run.resume(ctx, i)
		if verdict != tool.Done || err != nil {
			return verdict, ListResult{}, reason, err
		}
	}
	if err := run.keepDirectory(ctx); err != nil {
		return "", ListResult{}, "", err
	}
	return tool.Done, run.result, "", nil
}

// resume brings one command to its end. The verdict is about the whole list. It is Done without an error if the next
// command may start.
func (l *listRun) resume(ctx context.Context, i int) (tool.Verdict, string, error) {
	id := supervisor.InList(l.call.ActionID, i)
	state, _, err := l.m.Reconcile(ctx, id, l.call.Handle, l.call.Over)
	switch {
	case errors.Is(err, supervisor.ErrHome):
		return tool.Unknown, l.doubt(i, restarted), nil
	case err != nil:
		return "", "", err
	}
	switch state {
	case supervisor.Done, supervisor.Running:
		return l.follow(ctx, i, id)
	case supervisor.Absent:
		if i == 0 {
			return tool.NotDone, "", nil
		}
		return settledList(ctx, l.begin(ctx, i))
	case supervisor.Never:
		if i == 0 {
			return tool.Never, "", nil
		}
		return settledList(ctx, l.over(ctx, fault.As(errStopped())))
	case supervisor.Lost:
		return tool.Unknown, l.doubt(i, lost), nil
	}
	return tool.Unknown, l.doubt(i, restarted), nil
}

// follow reads the output of a command until the command has ended.
func (l *listRun) follow(ctx context.Context, i int, id string) (tool.Verdict, string, error) {
	out := l.output(i)
	defer out.close()
	res, err := l.m.Attach(ctx, id, 0, out)
	switch {
	case errors.Is(err, supervisor.ErrLost):
		return tool.Unknown, l.doubt(i, lost), nil
	case err != nil:
		return settledList(ctx, tool.Ambiguous(err))
	}
	return settledList(ctx, l.ended(ctx, i, out, res))
}

// settledList returns the verdict after a command whose outcome is err. After an ambiguous error, the command or the
// list may continue, so there is no verdict yet.
func settledList(ctx context.Context, err error) (tool.Verdict, string, error) {
	switch {
	case tool.IsAmbiguous(err) && ctx.Err() != nil:
		return tool.Running, "", nil
	case tool.IsAmbiguous(err):
		return "", "", err
	}
	return tool.Done, "", err
}

// doubt returns the reason why the outcome of a list is unknown. It names the command.
func (l *listRun) doubt(i int, why string) string {
	before := ""
	if i > 0 {
		before = " The commands before it ended with exit code 0."
	}
	return fmt.Sprintf("%s of %d: %s%s%s", numbered(i), len(l.list.Commands), why, before, l.rest(i))
}

// interruptList stops the list. It stops each command, or prevents it from starting, beginning with the last, so that
// no other command starts while the running one is stopped.
func (r *runner) interruptList(ctx context.Context, c tool.Call, l List) error {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return err
	}
	defer m.release()
	for i := range slices.Backward(l.Commands) {
		err := m.Stop(ctx, supervisor.InList(c.ActionID, i))
		if err != nil && !errors.Is(err, supervisor.ErrHome) { // without a home, nothing can start
			return err
		}
	}
	return nil
}
