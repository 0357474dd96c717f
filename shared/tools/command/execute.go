package command

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// The error codes of a command.
const (
	CodeTimeout = fault.Code("timeout")         // it was stopped at its time limit; the result has the output so far
	CodeStopped = fault.Code("cancelled")       // the user stopped it together with the run
	CodeNoHome  = fault.Code("no_home")         // the host has no writable home directory
	CodeNoShell = fault.Code("no_shell")        // the host lacks the shell for which its commands are judged
	CodeRestart = fault.Code("host_restarted")  // the process died between the preparation and the start of the command
	CodeNoDir   = fault.Code("no_directory")    // the terminal's directory no longer exists
	CodeMoved   = fault.Code("directory_moved") // the terminal's directory leads to another place than the card showed
	CodeAsked   = fault.Code("input_needed")    // it waited for input that was not typed
	CodeHangup  = fault.Code("connection_lost") // it ended with its connection
	CodeOutside = fault.Code("link_leads_out")  // the path of a file to print leads elsewhere through a link
)

// machine holds a host's supervisor client, and the place of the command on the host.
type machine struct {
	*supervisor.Client
	conn    supervisor.Conn
	at      site
	release func()
}

// open connects to the terminal's host and its supervisor. It sends nothing of the command.
func (r *runner) open(ctx context.Context, s tool.Scope) (*machine, error) {
	at, err := r.site(ctx, s)
	if err != nil {
		return nil, err
	}
	if r.Hosts == nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "This process cannot connect to hosts.")
	}
	conn, release, err := r.Hosts.Get(ctx, &at.Host)
	if err != nil {
		return nil, err
	}
	k, err := supervisor.Open(ctx, conn)
	if err != nil {
		release()
		if fault.Is(err, fault.Tool, fault.CodeHostUnreachable) { // the connection was lost in the meantime
			err = tool.Transient(err)
		}
		return nil, err
	}
	return &machine{k, conn, at, release}, nil
}

// prepare makes sure that the command can run and be found again. It returns the handle, which identifies the host.
func (r *runner) prepare(ctx context.Context, c tool.Call, a Args) (string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", err
	}
	defer m.release()
	if err := r.ready(ctx, m, c, a); err != nil {
		return "", err
	}
	if err := r.standing(ctx, m, c, a); err != nil {
		return "", err
	}
	return m.Handle(), nil
}

// ready checks that the host can run the commands as they were judged.
func (r *runner) ready(ctx context.Context, m *machine, c tool.Call, commands ...Args) error {
	was := grammar(&m.at.Host)
	if err := r.learnShell(ctx, m, c); err != nil {
		return err
	}
	for _, a := range commands {
		j, err := shell.Judge(a.Command, grammar(&m.at.Host))
		if err == nil {
			err = checkSystem(m, c, &j)
		}
		if err != nil {
			return err
		}
		if c.Approved && was != grammar(&m.at.Host) {
			if approved, err := shell.Judge(a.Command, was); err != nil || approved.Class != j.Class {
				return errOtherShell(grammar(&m.at.Host))
			}
		}
		if m.Facts.Home == "" && j.Class != shell.ReadOnly {
			return errNoHome()
		}
	}
	return nil
}

// learnShell records the host's shell if the commands were judged for another one: the host was never checked, or its
// shell has changed. The intent depends on the recorded shell, so the policy then judges the command again.
func (r *runner) learnShell(ctx context.Context, m *machine, c tool.Call) error {
	if slices.Contains(m.Facts.Shells, grammar(&m.at.Host)) {
		return nil
	}
	if len(m.Facts.Shells) == 0 {
		return errNoShell()
	}
	m.at.Host.Shell = m.Facts.Shells[0]
	return terminal.SetShell(ctx, r.Store, c.UID, m.at.Host.ID, m.at.Host.Shell)
}

func errNoShell() error {
	return fault.New(fault.Tool, CodeNoShell, "The host has neither bash nor sh to run the command. Nothing was run.")
}

func errOtherShell(g shell.Grammar) error {
	return fault.New(fault.Policy, fault.CodeStaleView,
		"The host runs commands with %s, which would read this command differently than approved. Nothing was run.", g)
}

func errNoHome() error {
	return fault.New(fault.Tool, CodeNoHome,
		"The host's user has no home directory that can be written to, so it could not be found out what became of "+
			"a command. Only commands that look are run there.")
}

// execute runs the command, once.
func (r *runner) execute(ctx context.Context, c tool.Call, a Args) (Result, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return Result{}, err
	}
	defer m.release()
	out := newPrinted(c.Output)
	defer out.close()
	start, err := r.start(m, c, a, c.ActionID)
	if err != nil {
		return Result{}, err
	}
	res, err := m.Start(ctx, start, out)
	if err != nil {
		return Result{}, r.notStarted(ctx, m.at, c, a, err)
	}
	return r.ended(ctx, c, a, out, res)
}

// start returns the supervisor's form of the command, with the given ID and in the machine's directory.
func (r *runner) start(m *machine, c tool.Call, a Args, id string) (supervisor.Start, error) {
	j, err := shell.Judge(a.Command, grammar(&m.at.Host))
	if err != nil {
		return supervisor.Start{}, err
	}
	line, opens, err := r.opens(m, c, a, &j)
	if err != nil {
		return supervisor.Start{}, err
	}
	s := supervisor.Start{ID: id, Terminal: m.at.ID, Command: line, Grammar: grammar(&m.at.Host),
		Plain: plain(c, &j, opens), Cwd: m.at.Cwd, Limit: a.limit(), Opens: opens,
		Pin:  pin(m, c, a),
		Size: supervisor.Size{Cols: m.at.Cols, Rows: m.at.Rows}, Handle: c.Handle}
	if c.Approved {
		s.Real = m.at.Real // the card shows this directory
	}
	return s, nil
}

// notStarted returns the outcome after an error of supervisor.Start. If the error leaves the outcome open, notStarted
// asks the host.
func (r *runner) notStarted(ctx context.Context, at site, c tool.Call, a Args, err error) error {
	if to := (*supervisor.MovedError)(nil); errors.As(err, &to) {
		if err := r.moved(ctx, c, at.Cwd, to.To); err != nil {
			return err
		}
		return asks(a, CodeMoved, "The terminal's directory leads to another place than its card showed. Nothing was "+
			"run.")
	}
	if asked := notOpened(a, err); asked != nil {
		return asked
	}
	switch {
	case errors.Is(err, supervisor.ErrHome):
		return errNoHome()
	case errors.Is(err, supervisor.ErrOther):
		return fault.New(fault.Tool, CodeRestart,
			"The host was restarted, or its user's home directory was emptied, since this was prepared. Nothing "+
				"was run.")
	case errors.Is(err, supervisor.ErrShell):
		return errNoShell()
	case errors.Is(err, supervisor.ErrNever):
		return errStopped()
	case errors.Is(err, supervisor.ErrCut):
		return tool.Transient(err)
	case errors.Is(err, supervisor.ErrCwd):
		if err := r.moved(ctx, c, "", ""); err != nil {
			return err
		}
		return fault.New(fault.Tool, CodeNoDir,
			"The terminal's directory no longer exists. Nothing was run; the next command begins in the home "+
				"directory.")
	case tool.IsTransient(err):
		return err
	}
	return tool.Ambiguous(err)
}

func errStopped() error { return fault.New(fault.Policy, CodeStopped, "The command was stopped.") }

// ended returns the outcome of a command that has ended, and stores its directory for the next command.
func (r *runner) ended(ctx context.Context, c tool.Call, a Args, out *printed, res supervisor.Result) (Result, error) {
	result := out.result(res, supervisor.MaxText)
	if res.Cwd != "" {
		if err := r.moved(ctx, c, res.Cwd, res.Real); err != nil {
			return Result{}, tool.Ambiguous(err) // the caller asks the host again, and stores the directory then
		}
	}
	if early := endedEarly(a, res); early != nil {
		return Result{}, tool.Ran(result, early)
	}
	return result, nil
}

// endedEarly returns the reason why a command was stopped before it ended by itself, or nil.
func endedEarly(a Args, res supervisor.Result) error {
	switch {
	case res.TimedOut:
		return fault.New(fault.Tool, CodeTimeout,
			"The command was ended because it took longer than %d seconds. Its output so far is in the result.",
			int(a.limit().Seconds()))
	case res.Asked:
		return fault.New(fault.Tool, CodeAsked,
			"The command waited for input and was ended, because no one typed any. Its output so far, with what it "+
				"asked, is in the result.")
	case res.Hangup:
		return fault.New(fault.Tool, CodeHangup,
			"The command ended with the connection to its host: the host cannot keep a terminal without a connection.")
	case res.Stopped:
		return errStopped()
	}
	return nil
}

// programs returns the names of the killed programs in a readable form, because a program can choose any name.
func programs(names []string) (shown []string) {
	for _, name := range names {
		name, _ = visible.Line(name)
		shown = append(shown, obs.RemoveSecrets(name))
	}
	return shown
}

// keepFor is the time limit for storing the directory.
const keepFor = 10 * time.Second

// moved stores the directory in which the terminal's next command starts, and its path without links.
func (r *runner) moved(ctx context.Context, c tool.Call, dir, real string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepFor)
	defer cancel()
	return terminal.SetCwd(ctx, r.Store, c.UID, c.Terminal, dir, real)
}

// reconcile asks the host for the outcome of the command. If the command is running, reconcile follows it until the
// command or ctx ends.
func (r *runner) reconcile(ctx context.Context, c tool.Call, a Args) (tool.Verdict, Result, string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", Result{}, "", err
	}
	defer m.release()
	state, _, err := m.Reconcile(ctx, c.ActionID, c.Handle, c.Over)
	switch {
	case errors.Is(err, supervisor.ErrHome):
		return withoutJournal(c)
	case err != nil:
		return "", Result{}, "", err
	}
	switch state {
	case supervisor.Done, supervisor.Running:
		return r.follow(ctx, m, c, a)
	case supervisor.Absent:
		return tool.NotDone, Result{}, "", nil
	case supervisor.Never:
		return tool.Never, Result{}, "", nil
	case supervisor.Lost:
		return tool.Unknown, Result{}, lost, nil
	}
	return tool.Unknown, Result{}, restarted, nil
}

// noJournal is the reason for the verdict unknown about a command that neither the server nor the host has recorded.
const noJournal = "The host has no journal of this command, which proves nothing if its journals were deleted. " +
	"Please look at the host."

// lookUp asks the host for the journal of a command without a record.
func (r *runner) lookUp(ctx context.Context, c tool.Call, a Args) (tool.Verdict, Result, string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", Result{}, "", err
	}
	defer m.release()
	state, _, err := m.Reconcile(ctx, c.ActionID, m.Handle(), false)
	switch {
	case errors.Is(err, supervisor.ErrHome):
		return tool.Unknown, Result{}, noJournal, nil
	case err != nil:
		return "", Result{}, "", err
	case state == supervisor.Done || state == supervisor.Running:
		return r.follow(ctx, m, c, a)
	case state == supervisor.Lost:
		return tool.Unknown, Result{}, lost, nil
	}
	return tool.Unknown, Result{}, noJournal, nil
}

// withoutJournal returns the verdict for a command on a host that keeps no journals. If the host had journals when the
// command was prepared, they were lost, perhaps by the command itself, and the outcome is unknown. If it never had any,
// the command only reads, so running it again is harmless.
func withoutJournal(c tool.Call) (tool.Verdict, Result, string, error) {
	switch {
	case supervisor.Journaled(c.Handle):
		return tool.Unknown, Result{}, restarted, nil
	case c.Over:
		return tool.Never, Result{}, "", nil
	}
	return tool.NotDone, Result{}, "", nil
}

// follow reads the command's output from its beginning until the command has ended. It does not pass on output a second
// time.
func (r *runner) follow(ctx context.Context, m *machine, c tool.Call, a Args) (tool.Verdict, Result, string, error) {
	out := newPrinted(c.Output)
	defer out.close()
	res, err := m.Attach(ctx, c.ActionID, 0, out)
	switch {
	case errors.Is(err, supervisor.ErrLost):
		return tool.Unknown, Result{}, lost, nil
	case err != nil && ctx.Err() != nil:
		return tool.Running, Result{}, "", nil
	case err != nil:
		return "", Result{}, "", err
	}
	result, err := r.ended(ctx, c, a, out, res)
	return tool.Done, result, "", err
}

// interrupt stops the command, or prevents its start.
func (r *runner) interrupt(ctx context.Context, c tool.Call, _ Args) error {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return err
	}
	defer m.release()
	err = m.Stop(ctx, c.ActionID)
	if errors.Is(err, supervisor.ErrHome) {
		return nil // it only reads, or has deleted its journal, and ends by itself
	}
	return err
}

// The reasons for an unknown outcome, for the user.
const (
	lost = "The command was started on the host, and no process of it still runs, but it left no exit code. Please " +
		"look at what it did."
	restarted = "The host was restarted, or its user's home was emptied, after the command was sent. Please look " +
		"whether it was run."
)
