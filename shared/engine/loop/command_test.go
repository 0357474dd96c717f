package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type commandArgs struct {
	Command string `json:"command"`
}

type commandResult struct {
	ExitCode int `json:"exitCode"`
}

// terminalDoc is the document of the tests' terminals: a host that may run read-only commands.
type terminalDoc struct {
	AutoRun bool   `json:"autoRun"`
	Dir     string `json:"dir"`
}

// host is the host on which the commands of the tests run. A command lives there independently of the process that
// began it. sleep takes as many seconds as it says, and all other commands take no time.
type host struct {
	*env
	mu    sync.Mutex
	runs  []string          // commands that were started
	calls map[string]*begun // by their actions
	down  bool              // the host cannot be reached
	deaf  bool              // an interrupt does not reach the command
	// where processes die: before or after a call is started, at a request for its outcome, or while they follow it
	dies  string
	full  bool // the host refuses every new command
	looks int
}

// begun is a command on the host. One that was never started has no end.
type begun struct{ end time.Time }

// begin begins the call. A call that was started before, or that must never begin, is refused.
func (h *host) begin(id string, takes time.Duration) (*begun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.down:
		return nil, tool.Ambiguous(errors.New("the host cannot be reached"))
	case h.calls[id] != nil:
		return nil, tool.Ambiguous(errors.New("it was begun before, or never is"))
	case h.full:
		return nil, fault.New(fault.Tool, "host_full", "The host is full.")
	}
	h.calls[id] = &begun{h.clock().Add(takes)}
	return h.calls[id], nil
}

// await waits until the process has ended. It returns false if ctx ended first.
func (h *host) await(ctx context.Context, p *begun) bool {
	for {
		h.mu.Lock()
		left := p.end.Sub(h.clock())
		h.mu.Unlock()
		switch {
		case left <= 0:
			return true
		case ctx.Err() != nil:
			return false
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(left, 100*time.Millisecond)):
		}
	}
}

func (h *host) death() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dies
}

// becomes sets how processes die from now on, and whether the host is unreachable.
func (h *host) becomes(dies string, down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dies, h.down = dies, down
}

func (h *host) execute(ctx context.Context, c tool.Call, in commandArgs) (commandResult, error) {
	dies := h.death()
	if dies == "before" {
		runtime.Goexit()
	}
	var seconds int
	_, _ = fmt.Sscanf(in.Command, "sleep %d", &seconds)
	p, err := h.begin(c.ActionID, time.Duration(seconds)*time.Second)
	if err != nil {
		return commandResult{}, err
	}
	h.mu.Lock()
	h.runs = append(h.runs, in.Command)
	h.mu.Unlock()
	if dies == "after" {
		runtime.Goexit()
	}
	if !h.await(ctx, p) {
		return commandResult{}, tool.Ambiguous(ctx.Err())
	}
	return h.ended(in)
}

// ended returns the result of a command that was not interrupted.
func (h *host) ended(in commandArgs) (commandResult, error) {
	if in.Command == "sleep 100" { // longer than its limit
		return commandResult{}, tool.Partial(commandResult{ExitCode: 4}, fault.New(fault.Tool, "timeout", "Too long."))
	}
	return commandResult{ExitCode: 3}, nil
}

func (h *host) reconcile(ctx context.Context, c tool.Call, in commandArgs) (tool.Verdict, commandResult, string,
	error) {
	if h.death() == "asked" && !c.Over {
		runtime.Goexit()
	}
	h.mu.Lock()
	p := h.calls[c.ActionID]
	h.looks++
	down := h.down
	if !down && p == nil && c.Over {
		h.calls[c.ActionID] = &begun{}
	}
	h.mu.Unlock()
	switch {
	case down:
		return "", commandResult{}, "", errors.New("the host cannot be reached")
	case p == nil && c.Over, p != nil && p.end.IsZero():
		return tool.Never, commandResult{}, "", nil
	case p == nil:
		return tool.NotDone, commandResult{}, "", nil
	case h.death() == "looking":
		runtime.Goexit()
	case !h.await(ctx, p):
		return tool.Running, commandResult{}, "", nil
	}
	out, err := h.ended(in)
	return tool.Done, out, "", err
}

func (h *host) interrupt(_ context.Context, c tool.Call, _ commandArgs) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch p := h.calls[c.ActionID]; {
	case h.down, h.deaf:
		return errors.New("the host cannot be reached")
	case p == nil:
		h.calls[c.ActionID] = &begun{}
	case h.clock().Before(p.end):
		p.end = h.clock()
	}
	return nil
}

// running reports whether a command is in progress.
func (h *host) running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.calls {
		if h.clock().Before(p.end) {
			return true
		}
	}
	return false
}

// commands gives the env an agent that runs commands on ana's terminal, in strict order.
func commands(t testing.TB, w *env, model ...script.Turn) *host {
	t.Helper()
	onTerminal(t, w)
	agent := w.loop.Agents[run.Terminal]
	agent.Order, agent.OnReject = registry.Strict, registry.RejectContinues
	h := &host{env: w, calls: map[string]*begun{}}
	w.loop.Tools = tool.NewSet(tool.Define(h.command()))
	w.loop.Model = w.model
	w.model.Then(model...)
	return h
}

func (h *host) command() tool.Def[commandArgs, commandResult] {
	read := func(ctx context.Context, in tool.Scope) (d terminalDoc, err error) {
		doc, err := document.Read(ctx, h.store, document.TerminalPath(in.UID, in.Terminal))
		if err != nil {
			return d, err
		}
		return d, document.Decode(doc, &d)
	}
	return tool.Def[commandArgs, commandResult]{Name: "run_command", Description: "Runs a command.", SideEffect: true,
		Preview: func(in commandArgs) tool.Preview { return tool.Preview{Title: "Run " + in.Command} },
		Reads:   func(in tool.Scope) []string { return []string{document.TerminalPath(in.UID, in.Terminal)} },
		Place: func(ctx context.Context, in tool.Scope) (tool.Place, error) {
			d, err := read(ctx, in)
			return tool.Place{Label: "On", Name: "ana@host in " + d.Dir, ID: "host " + d.Dir}, err
		},
		Rule: func(ctx context.Context, c tool.Call, in commandArgs) (tool.CallPolicy, error) {
			d, err := read(ctx, c.Scope())
			r := tool.CallPolicy{Class: tool.ClassChange, Mode: tool.RuleAsk, ID: "command_asks",
				Reason: "A command asks.",
				Facts:  tool.Facts{"host": "h1"}}
			switch name, _, _ := strings.Cut(in.Command, " "); name {
			case "ls":
				r.Class = tool.ClassRead
				if d.AutoRun {
					r.Mode, r.ID = tool.RuleAllow, "command_read_only"
				}
			case "rm":
				r.Class, r.Warnings = tool.ClassDestructive, []string{"It deletes below " + d.Dir}
			case "panic":
				panic("the tool's own")
			case "odd":
				r.ID = "Not a rule"
			case "mkfs":
				r.Mode, r.ID, r.Reason = tool.RuleDeny, "command_denied", "The operator forbids this."
			}
			if r.Class != tool.ClassDestructive {
				r.Always = &tool.Always{Key: "h1 " + in.Command, Shown: in.Command + " on ana@host"}
			}
			return r, err
		},
		Limit: func(in commandArgs) time.Duration {
			if in.Command == "sleep 100" {
				return 100 * time.Second
			}
			return 15 * time.Minute
		},
		Execute: h.execute, Reconcile: h.reconcile, Interrupt: h.interrupt,
		Note: func(_ commandArgs, out commandResult) tool.Facts {
			return tool.Facts{"exitCode": string(rune('0' + out.ExitCode))}
		},
	}
}

// set stores the terminal's document.
func (h *host) set(t testing.TB, d terminalDoc) {
	t.Helper()
	path := document.TerminalPath("ana", anasTerminal)
	docs, err := h.store.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(d)
	if _, err := h.store.Commit(t.Context(), store.Update(path, docs[0].Version, nil, data)); err != nil {
		t.Fatal(err)
	}
}

// asksFor is a turn of the model that calls for the commands, and then one that ends the run.
func asksFor(commands ...string) []script.Turn {
	var calls []script.Call
	for _, c := range commands {
		calls = append(calls, script.Call{Name: "run_command", Args: commandArgs{c}})
	}
	return []script.Turn{{Calls: calls}, {Text: "Done."}}
}

func (h *host) start(t testing.TB) *run.View {
	t.Helper()
	v, err := h.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Agent: run.Terminal},
		loop.Prompt{Terminal: anasTerminal, Text: "look"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (h *host) decide(t testing.TB, v *run.View, n int, d run.Decision) error {
	t.Helper()
	_, err := h.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, n),
		Decision: d})
	return err
}

func TestCallPolicy(t *testing.T) {
	for command, want := range map[string]struct {
		autoRun  bool
		status   run.ActionStatus
		class    tool.Class
		rule     string
		warnings []string
		reason   string
	}{
		"ls":      {true, run.ActionCompleted, tool.ClassRead, "command_read_only", nil, ""},
		"ls ":     {false, run.ActionAwaiting, tool.ClassRead, "command_asks", nil, "A command asks."},
		"touch x": {true, run.ActionAwaiting, tool.ClassChange, "command_asks", nil, "A command asks."},
		"rm x": {true, run.ActionAwaiting, tool.ClassDestructive, "command_asks", []string{
			"This deletes or overwrites something that cannot be restored.", "It deletes below "}, "A command asks."},
		"mkfs":  {true, run.ActionFailed, tool.ClassChange, "command_denied", nil, ""},
		"panic": {true, run.ActionFailed, "", "unknown", nil, ""},
		"odd":   {true, run.ActionFailed, "", "unknown", nil, ""},
	} {
		t.Run(command, func(t *testing.T) {
			h := commands(t, newEnv(t), asksFor(command)...)
			h.set(t, terminalDoc{AutoRun: want.autoRun})
			v := h.start(t)
			a := v.Actions[0]
			if a.Status != want.status || a.Class != want.class {
				t.Fatalf("the action is %+v", a)
			}
			if want.status == run.ActionAwaiting {
				ap := h.open("ana")[0]
				if ap.Class != want.class || ap.Reason != want.reason ||
					!slices.Equal(ap.Preview.Warnings, want.warnings) {
					t.Errorf("asked as %+v", ap)
				}
			}
			if ran := len(h.runs) > 0; ran != (want.status == run.ActionCompleted) {
				t.Errorf("ran %v", h.runs)
			}
			page, err := h.rec.Audit(t.Context(), "ana", v.RunID, "", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page.Entries {
				if e.ActionID == "" {
					continue
				}
				code := map[string]string{"outcome": "3"}[e.Kind]
				if e.Rule != want.rule || e.Class != string(want.class) || want.class != "" &&
					e.Facts["host"] != "h1" ||
					e.Facts["exitCode"] != code {
					t.Errorf("the audit says %+v", e)
				}
			}
		})
	}
}

// TestCallPolicyRevokedBeforeEffect withdraws the permission between the turn and the intent, and between the approval
// and the intent.
func TestCallPolicyRevokedBeforeEffect(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		h := commands(t, w, asksFor("ls")...)
		h.set(t, terminalDoc{AutoRun: true})
		prepares := h.command()
		prepares.Prepare = func(context.Context, tool.Call, commandArgs) (string, error) {
			h.set(t, terminalDoc{AutoRun: false}) // after the turn is stored, and before the intent is
			return "handle", nil
		}
		w.loop.Tools = tool.NewSet(tool.Define(prepares))
		v := h.start(t)
		if v.Status != run.Awaiting || len(h.runs) > 0 {
			t.Fatalf("after the permission was taken back the run is %s, and ran %v", v.Status, h.runs)
		}
		if ap := h.open("ana")[0]; ap.Class != tool.ClassRead || ap.Reason != "A command asks." {
			t.Errorf("asked as %+v", ap)
		}
	})
}

func TestCallPolicyChangedBeforeApproval(t *testing.T) {
	h := commands(t, newEnv(t), asksFor("rm x")...)
	h.set(t, terminalDoc{Dir: "/tmp"})
	v := h.start(t)
	h.set(t, terminalDoc{Dir: "/"})
	if err := h.decide(t, v, 1, run.ApproveOnce); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Fatalf("a yes to another directory: %v", err)
	}
	ap := h.open("ana")[0]
	if ap.ApprovalID != run.ApprovalID(v.RunID, 2) || !slices.Contains(ap.Preview.Warnings, "It deletes below /") {
		t.Errorf("asked again as %+v", ap)
	}
	if err := h.decide(t, v, 2, run.ApproveOnce); err != nil {
		t.Fatal(err)
	}
	if err := h.deliver(t.Context()); err != nil || !slices.Equal(h.runs, []string{"rm x"}) {
		t.Errorf("ran %v, %v", h.runs, err)
	}
}

// TestCallPolicyOfEdit edits a harmless command into one that deletes.
func TestCallPolicyOfEdit(t *testing.T) {
	h := commands(t, newEnv(t), asksFor("touch x")...)
	v := h.start(t)
	edit := func(command string) (*run.View, error) {
		args, _ := json.Marshal(commandArgs{command})
		return h.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1),
			Decision: run.ApproveEdited, EditedArgs: args})
	}
	if _, err := edit("mkfs"); !fault.Is(err, fault.Policy, "denied") {
		t.Errorf("an edit to what is denied: %v", err)
	}
	v, err := edit("rm x")
	if err != nil || v.Actions[0].Class != tool.ClassDestructive {
		t.Errorf("edited: %+v, %v", v.Actions[0], err)
	}
}

func TestCallPolicyAfterOperatorRules(t *testing.T) {
	for status, rules := range map[run.ActionStatus]policy.Rules{
		run.ActionAwaiting: {AskSideEffects: true}, run.ActionFailed: {DenySideEffects: true}} {
		h := commands(t, newEnv(t), asksFor("ls")...)
		h.set(t, terminalDoc{AutoRun: true})
		h.loop.Rules = rules
		if v := h.start(t); v.Actions[0].Status != status || len(h.runs) > 0 {
			t.Errorf("by %+v: %+v", rules, v.Actions[0])
		}
	}
}

// TestAlwaysAllowCommand allows one exact command. From then on, only that command runs, only on this host, until the
// permission is withdrawn or 90 days have passed.
func TestAlwaysAllowCommand(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		h := commands(t, open(t), slices.Concat(asksFor("touch x"), asksFor("touch x"), asksFor("touch y")[:1],
			asksFor("touch x"))...)
		v := h.start(t)
		want := []run.Decision{run.ApproveOnce, run.ApproveAlwaysCommand, run.ApproveEdited, run.Reject}
		if ap := h.open("ana")[0]; !slices.Equal(ap.Decisions, want) {
			t.Errorf("%v are offered", ap.Decisions)
		}
		if err := h.decide(t, v, 1, run.ApproveAlways); !fault.Is(err, fault.Policy, fault.CodeNotApplicable) ||
			fault.As(err).Status() != 409 {
			t.Errorf("a command has no recipient: %v", err)
		}
		if err := h.decide(t, v, 1, run.ApproveAlwaysCommand); err != nil {
			t.Fatal(err)
		}
		if err := h.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		runs := func(want string, n int) {
			t.Helper()
			v := h.start(t)
			asked := v.Status == run.Awaiting
			if asked == (want == "runs") || len(h.runs) != n {
				t.Errorf("the run is %s, and %v ran; want that it %s", v.Status, h.runs, want)
			}
			if asked {
				if _, err := h.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
					t.Fatal(err)
				}
			}
		}
		runs("runs", 2) // touch x
		runs("asks", 2) // touch y
		list, err := h.rec.Allowlist(t.Context(), "ana")
		if err != nil || len(list) != 1 || list[0].Command != "touch x on ana@host" || list[0].Recipient != "" ||
			list[0].ExpiresAt.Sub(list[0].CreatedAt) != policy.EntryLife {
			t.Fatalf("the list is %+v, %v", list, err)
		}
		h.tick(policy.EntryLife + time.Hour)
		runs("asks", 2)
	})
}

func TestAlwaysAllowDestructiveCommand(t *testing.T) {
	h := commands(t, newEnv(t), asksFor("rm x")...)
	v := h.start(t)
	if ap := h.open("ana")[0]; slices.Contains(ap.Decisions, run.ApproveAlwaysCommand) {
		t.Errorf("%v are offered", ap.Decisions)
	}
	for _, d := range []run.Decision{run.ApproveAlwaysCommand, run.ApproveAlways} {
		if err := h.decide(t, v, 1, d); !fault.Is(err, fault.Policy, fault.CodeNotApplicable) {
			t.Errorf("%s: %v; want error %v %v", d, err, fault.Policy, fault.CodeNotApplicable)
		}
	}
}

// TestAlwaysAllowRevoked withdraws the permission before the intent.
func TestAlwaysAllowRevoked(t *testing.T) {
	h := commands(t, newEnv(t), slices.Concat(asksFor("touch x"), asksFor("touch x"))...)
	if err := h.decide(t, h.start(t), 1, run.ApproveAlwaysCommand); err != nil {
		t.Fatal(err)
	}
	if err := h.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := h.rec.Allowlist(t.Context(), "ana")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	d := h.command()
	d.Prepare = func(context.Context, tool.Call, commandArgs) (string, error) {
		return "handle", h.rec.Disallow(t.Context(), "ana", list[0].ID, "")
	}
	h.loop.Tools = tool.NewSet(tool.Define(d))
	if v := h.start(t); v.Status != run.Awaiting || len(h.runs) != 1 {
		t.Errorf("the run is %s, and %v ran", v.Status, h.runs)
	}
}

// TestCommandsPerDay uses up a day's commands, some with an approval and some without.
func TestCommandsPerDay(t *testing.T) {
	h := commands(t, newEnv(t), slices.Concat(asksFor("ls", "ls a", "touch x"), asksFor("ls"))...)
	h.set(t, terminalDoc{AutoRun: true})
	agent := h.loop.Agents[run.Terminal]
	agent.Limits.MaxPerDay, agent.Limits.CountAllowed = 3, true
	v := h.start(t)
	if v.Status != run.Awaiting || len(h.runs) != 2 {
		t.Fatalf("the run is %s, and %v ran", v.Status, h.runs)
	}
	if err := h.decide(t, v, 1, run.ApproveOnce); err != nil {
		t.Fatal(err)
	}
	// a command with an approval is not counted again
	if err := h.deliver(t.Context()); err != nil || len(h.runs) != 3 {
		t.Fatalf("%v ran, %v", h.runs, err)
	}
	_, err := h.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Agent: run.Terminal},
		loop.Prompt{Terminal: anasTerminal, Text: "look"})
	if !fault.Is(err, fault.Policy, fault.CodeTooMany) || !strings.Contains(err.Error(), "3 actions") {
		t.Errorf("a fourth: %v", err)
	}
	h.tick(24 * time.Hour)
	if h.start(t); len(h.runs) != 4 {
		t.Errorf("on the next day %v ran", h.runs)
	}
}

// TestCommandsPerDayWithinRun reaches the day's limit within a run, before a read-only command.
func TestCommandsPerDayWithinRun(t *testing.T) {
	h := commands(t, newEnv(t), asksFor("ls", "ls a", "ls b")...)
	h.set(t, terminalDoc{AutoRun: true})
	agent := h.loop.Agents[run.Terminal]
	agent.Limits.MaxPerDay, agent.Limits.CountAllowed = 2, true
	v := h.start(t)
	if a := v.Actions[2]; v.Status != run.Completed || a.ErrorReason != fault.CodeTooMany || len(h.runs) != 2 {
		t.Errorf("the run is %s, its last action %+v, and %v ran", v.Status, a, h.runs)
	}
}

// TestCommandsDecidedTheNextDay has the user decide on the day after the cards. A command counts on the day on which it
// runs too, and does not run if that day's commands are used up.
func TestCommandsDecidedTheNextDay(t *testing.T) {
	h := commands(t, newEnv(t), asksFor("touch x")[0], asksFor("touch y")[0], script.Turn{Text: "Done."},
		script.Turn{Text: "Done."})
	agent := h.loop.Agents[run.Terminal]
	agent.Limits.MaxPerDay, agent.Limits.CountAllowed, agent.Limits.ApprovalTTL = 2, true, 48*time.Hour
	const other = "host-of-ana-0001-terminal-2"
	h.opensTerminal(t, "ana", other)
	x := h.start(t)
	y, err := h.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Agent: run.Terminal},
		loop.Prompt{Terminal: other, Text: "look"})
	if err != nil {
		t.Fatal(err)
	}
	h.tick(24 * time.Hour)
	agent.Limits.MaxPerDay = 1
	for _, v := range []*run.View{x, y} {
		if err := h.decide(t, v, 1, run.ApproveOnce); err != nil {
			t.Fatal(err)
		}
		if err := h.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(h.runs, []string{"touch x"}) {
		t.Errorf("%v ran", h.runs)
	}
	if a := h.view(t, y).Actions[0]; a.ErrorReason != fault.CodeTooMany || a.Status != run.ActionFailed {
		t.Errorf("the second command: %+v", a)
	}
}

// TestCommandsOfOneTurn checks that the rest of a turn continues after an exit code, but not after a rejection or a
// command that was ended at its limit. The model reads the output of that command. The run continues in each case.
func TestCommandsOfOneTurn(t *testing.T) {
	for name, c := range map[string]struct {
		turn   []string
		decide run.Decision
		ran    []string
		told   []string
	}{
		"exit code": {[]string{"touch x", "touch y"}, run.ApproveOnce, []string{"touch x", "touch y"},
			[]string{`"exitCode":3`}},
		"a no": {[]string{"touch x", "touch y"}, run.Reject, nil,
			[]string{"The user rejected this", "This was not run"}},
		"timeout": {[]string{"sleep 100", "touch y"}, run.ApproveOnce, []string{"sleep 100"},
			[]string{"Too long.", `"exitCode":4`, "This was not run"}},
	} {
		inTime(t, 5*time.Minute, func(t *testing.T, h *host) {
			v := h.start(t)
			for n := 1; len(h.open("ana")) > 0; n++ {
				if waiting := len(h.open("ana")); waiting != 1 {
					t.Errorf("%s: %d approvals wait at once", name, waiting)
				}
				if err := h.decide(t, v, n, c.decide); err != nil {
					t.Fatal(err)
				}
				if err := h.deliver(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if now := h.view(t, v); now.Status != run.Completed || now.ModelCalls != 2 || !slices.Equal(h.runs, c.ran) {
				t.Errorf("%s: the run is %s after %d turns, and %v ran", name, now.Status, now.ModelCalls, h.runs)
			}
			requests := h.model.Requests()
			contents := requests[len(requests)-1].Contents
			for _, want := range c.told {
				if said := string(contents[len(contents)-1]); !strings.Contains(said, want) {
					t.Errorf("%s: the model is told %s, without %s", name, said, want)
				}
			}
		}, c.turn...)
	}
}

// TestTurnsOnTerminalBounded calls for a command in each of 20 turns. The last turn has no tools.
func TestTurnsOnTerminalBounded(t *testing.T) {
	var turns []script.Turn
	for range 19 {
		turns = append(turns, asksFor("ls")[0])
	}
	h := commands(t, newEnv(t), append(turns, script.Turn{Text: "That is all."})...)
	h.set(t, terminalDoc{AutoRun: true})
	h.loop.Agents[run.Terminal].Limits.ModelCalls = 20
	v := h.start(t)
	requests := h.model.Requests()
	if v.Status != run.Completed || len(h.runs) != 19 || len(requests) != 20 || requests[18].NoTools ||
		!requests[19].NoTools {
		t.Errorf("the run is %s after %d commands and %d turns", v.Status, len(h.runs), len(requests))
	}
}
