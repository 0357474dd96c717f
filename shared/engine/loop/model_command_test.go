package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// The limits of the commands of the random histories.
const (
	commandLimit = 15 * time.Minute
	commandLate  = commandLimit + 2*time.Minute // a command that runs by then may be left to its user
)

// machine runs the commands of the random histories. A command lives there independently of the process that began it,
// and ends by the clock.
type machine struct {
	calls map[string]*onMachine // by their actions
	gone  map[string]bool       // calls whose record was gone when their outcome was requested
	quick bool                  // commands no longer take time
	lost  bool                  // an interrupt did not reach it in the last process that was run
}

func newMachine() *machine { return &machine{calls: map[string]*onMachine{}, gone: map[string]bool{}} }

// onMachine is a call on the machine.
type onMachine struct {
	begun, never bool
	end          time.Time // of one that was started
	ended        bool      // it was interrupted
	followed     bool      // a later process found it running
}

// machineDoc is the user's settings for the machine. Commands are ruled and placed by it.
type machineDoc struct {
	AutoRun bool `json:"autoRun,omitempty"`
	Locked  bool `json:"locked,omitempty"`
	Dir     int  `json:"dir,omitempty"`
}

func machinePath(uid string) string { return document.TerminalPath(uid, anasTerminal) }

func (d machineDoc) place() tool.Place {
	return tool.Place{Label: "On", Name: fmt.Sprintf("ana@host in /%d", d.Dir), ID: fmt.Sprintf("host /%d", d.Dir)}
}

// rules returns the ruling for a command.
func (d machineDoc) rules(in commandArgs) tool.CallMode {
	name, _, _ := strings.Cut(in.Command, " ")
	switch {
	case d.Locked || name == "mkfs":
		return tool.RuleDeny
	case d.AutoRun && name == "ls":
		return tool.RuleAllow
	}
	return tool.RuleAsk
}

// commandDef is a tool whose calls may outlast the process that began them, and whose calls are ruled one by one.
func (m *trialed) commandDef() tool.Def[commandArgs, commandResult] {
	read := func(ctx context.Context, uid string) (d machineDoc, err error) {
		doc, err := document.Read(ctx, m.store, machinePath(uid))
		if err == nil && doc.Exists() {
			err = document.Decode(doc, &d)
		}
		return d, err
	}
	return tool.Def[commandArgs, commandResult]{Name: "command", Description: "Runs a command.", SideEffect: true,
		KeepsOutput: true, Interruptible: true,
		Preview: func(in commandArgs) tool.Preview { return tool.Preview{Title: "Run " + in.Command} },
		Reads:   func(in tool.Scope) []string { return []string{machinePath(in.UID)} },
		Place: func(ctx context.Context, in tool.Scope) (tool.Place, error) {
			d, err := read(ctx, in.UID)
			return d.place(), err
		},
		Rule: func(ctx context.Context, c tool.Call, in commandArgs) (tool.CallPolicy, error) {
			d, err := read(ctx, c.UID)
			return tool.CallPolicy{Class: tool.ClassChange, Mode: d.rules(in), ID: "command_rule",
				Reason: "A command is ruled."}, err
		},
		Limit:   func(commandArgs) time.Duration { return commandLimit },
		Execute: m.executeCommand, Reconcile: m.reconcileCommand, Interrupt: m.interruptCommand,
	}
}

func (m *trialed) executeCommand(ctx context.Context, c tool.Call, in commandArgs) (commandResult, error) {
	m.witness.carriesOut(c)
	p := processOf(ctx)
	p.beforeEffect()
	behaves := m.behave()
	switch behaves {
	case "lost":
		return commandResult{}, tool.Ambiguous(errors.New("the connection broke before it was begun"))
	case "transient":
		return commandResult{}, tool.Transient(errors.New("busy"))
	case "refuse", "reauth":
		return commandResult{}, fault.New(fault.Tool, "host_unreachable", "The host cannot be reached.")
	}
	if m.machine.gone[c.ActionID] { // the record is gone with the handle, so the call can no longer begin
		return commandResult{}, fault.New(fault.Tool, "host_restarted", "The host was restarted.")
	}
	h := m.machine.calls[c.ActionID]
	if h != nil {
		return commandResult{}, tool.Ambiguous(errors.New("it was begun before, or never is"))
	}
	h = m.machine.begin(m.clock(), in)
	m.machine.calls[c.ActionID] = h
	m.witness.begun(c)
	p.afterEffect()
	if behaves == "ambiguous" || behaves == "hang" || !m.awaits(p, h) {
		return commandResult{}, tool.Ambiguous(errors.New("the function's time was up"))
	}
	return printed(c, in)
}

// begin begins a command, which takes the number of seconds that it names.
func (h *machine) begin(now time.Time, in commandArgs) *onMachine {
	var seconds int
	if _, err := fmt.Sscanf(in.Command, "%s %d", new(string), &seconds); err != nil || h.quick {
		seconds = 0
	}
	return &onMachine{begun: true, end: now.Add(time.Duration(seconds) * time.Second)}
}

// printed prints the output of a command that has ended, and returns its result.
func printed(c tool.Call, in commandArgs) (commandResult, error) {
	_, err := fmt.Fprintln(c.Output, in.Command)
	return commandResult{}, err
}

// awaits waits for the end of a command. The process stands still until the test lets it look again. awaits reports
// whether the command has ended.
func (m *trialed) awaits(p *process, h *onMachine) bool {
	if m.underWay(h) {
		p.standStill()
	}
	return !m.underWay(h)
}

// underWay reports whether a command is in progress.
func (m *trialed) underWay(h *onMachine) bool { return h != nil && h.begun && m.clock().Before(h.end) }

func (m *trialed) reconcileCommand(ctx context.Context, c tool.Call, in commandArgs) (tool.Verdict, commandResult,
	string, error) {
	switch m.answers() {
	case "down":
		return "", commandResult{}, "", errors.New("the host cannot be reached")
	case "unknown":
		m.machine.gone[c.ActionID] = true
		return tool.Unknown, commandResult{}, "Its record is gone.", nil
	}
	h := m.machine.calls[c.ActionID]
	if h == nil && !c.Over {
		return tool.NotDone, commandResult{}, "", nil
	}
	if h == nil {
		h = &onMachine{never: true}
		m.machine.calls[c.ActionID] = h
	}
	h.followed = h.followed || m.underWay(h)
	switch {
	case h.never:
		return tool.Never, commandResult{}, "", nil
	case c.Over && m.underWay(h) && !m.machine.lost:
		m.witness.broken(invariants.RejectStops, "action %s runs on, and its run is over", c.ActionID)
	case m.awaits(processOf(ctx), h):
		out, err := printed(c, in)
		return tool.Done, out, "", err
	}
	return tool.Running, commandResult{}, "", nil
}

func (m *trialed) interruptCommand(_ context.Context, c tool.Call, _ commandArgs) error {
	if len(m.settle) > 0 && m.settle[0] == "down" {
		m.settle, m.machine.lost = m.settle[1:], true
		return errors.New("the host cannot be reached")
	}
	switch h := m.machine.calls[c.ActionID]; {
	case h == nil:
		m.machine.calls[c.ActionID] = &onMachine{never: true}
	case m.underWay(h):
		h.end, h.ended = m.clock(), true
	}
	return nil
}

// rests ends every running command, and lets commands take no time from now on.
func (m *trialed) rests() {
	m.machine.quick = true
	for _, h := range m.machine.calls {
		if m.underWay(h) {
			h.end = m.clock()
		}
	}
}

// standStill makes the process stand still until the test lets it continue or ends it.
func (p *process) standStill() {
	left := p.mishap
	p.stop()
	p.mishap = left
}

// ofOutput reports whether a commit contains only output. Such a commit is made beside the process that carries out the
// call, so no mishap of that process affects it.
func ofOutput(c *faulty.Call) bool {
	for _, o := range c.Writes {
		if o.Op != store.OpCheck && !strings.Contains(o.Doc.Path, "/outputs/") {
			return false
		}
	}
	return true
}

// unwatched makes watches deliver no changes. A watcher would otherwise see a change at a random moment, and no
// sequence would be the same each time it is played.
func unwatched(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	if c.Method != faulty.Watch {
		return next(ctx)
	}
	<-ctx.Done()
	return ctx.Err()
}

// changeMachine acts as the user, who allows read-only commands without an approval, locks the machine, or changes the
// directory.
func (s *sequence) changeMachine(t *rapid.T) {
	d := machineDoc{AutoRun: pick(t, "unasked", true, true, false),
		Locked: pick(t, "locked", false, false, false, false, true),
		Dir:    pick(t, "directory", 0, 0, 1)}
	if err := s.setMachine(d); err != nil {
		t.Fatal(err)
	}
}

// setMachine stores the user's settings for the machine. They exist from the beginning, as for each host, because an
// intent cannot depend on a document that does not exist.
func (m *trialed) setMachine(d machineDoc) error {
	docs, err := m.store.Get(m.ctx, machinePath(ana))
	if err != nil {
		return err
	}
	data, err := strictjson.Marshal(d)
	if err != nil {
		return err
	}
	write := store.Create(machinePath(ana), nil, data)
	if docs[0].Exists() {
		write = store.Update(docs[0].Path, docs[0].Version, nil, data)
	}
	_, err = m.store.Commit(m.ctx, write)
	return err
}

// aboutACommand changes something about a command that is allowed or in progress. Chance alone does this too seldom.
func (s *sequence) aboutACommand(t *rapid.T) {
	for _, id := range s.witness.order {
		r := s.witness.runs[id]
		if r == nil || r.state.End != nil {
			continue
		}
		for _, a := range r.state.Current() {
			switch {
			case a.Tool != "command":
			case a.Runnable():
				s.advance(life{runID: id,
					mishap: pick(t, "mishap", stopsAtEffect, stopsAtEffect, diesAtEffect, noMishap)})
				return
			case a.Status == run.ActionExecuting:
				s.followOrStop(t, id)
				return
			}
		}
	}
}

// followOrStop lets another process follow a command after the lease of the process that began it, or stops the command
// as its owner. The stop's message may be delivered at once, and its interrupt may get lost.
func (s *sequence) followOrStop(t *rapid.T, runID string) {
	if pick(t, "stop", true, false) {
		if pick(t, "lost", false, false, true) {
			s.settleWith("down")
		}
		s.run(life{runID: runID}, func(ctx context.Context, p *loop.Loop) (*run.View, error) {
			return p.Cancel(ctx, ana, runID)
		})
	} else {
		s.tick(2 * time.Minute)
	}
	if pick(t, "at once", true, true, false) {
		s.advance(life{runID: runID})
	}
}

// aCommand draws a command. Most of them need an approval.
func (s *sequence) aCommand(t *rapid.T) json.RawMessage {
	command := pick(t, "command", "ls 0", "ls 600", "touch 900", "touch 40", "touch 900", "ls 0", "touch 0",
		"mkfs 0")
	data, _ := strictjson.Marshal(commandArgs{command})
	return data
}

// machineDoc returns the user's settings for the machine, by the last commit.
func (w *witness) machineDoc(uid string) (d machineDoc) {
	if doc, there := w.docs[machinePath(uid)]; there {
		if err := document.Decode(doc, &d); err != nil {
			w.broken(invariants.NoOrphan, "%s cannot be read: %v", doc.Path, err)
		}
	}
	return d
}

// ruled checks the intent of a command against the settings at the intent's commit.
func (c *commit) ruled(r *watched, a *run.Action) {
	var in commandArgs
	if err := json.Unmarshal(a.Args, &in); err != nil {
		c.broken(invariants.Authority, "action %s: %v", a.ID, err)
	}
	d := c.machineDoc(r.uid)
	mode, asked := d.rules(in), a.RequiresApproval || a.Decision != ""
	switch {
	case mode == tool.RuleDeny:
		c.broken(invariants.DenyRules, "action %s (%s) is started, and is denied by now", a.ID, in.Command)
	case mode != tool.RuleAllow && !asked:
		c.broken(invariants.AllowNow, "action %s (%s) is started unasked, and its rule is %s by now", a.ID, in.Command,
			mode)
	case d.place() != a.Place:
		c.broken(invariants.Authority, "action %s is started in %s, and was asked about in %s", a.ID, d.place().Name,
			a.Place.Name)
	}
}

// leaves checks that a command is left to its user only if it should have ended long ago or its record on the machine
// is gone. A command that runs must not be left, nor one that was ended at its limit, nor one that was not started
// before its run was stopped.
func (c *commit) leaves(r *watched, a *run.Action, e run.Event) {
	if a.Tool != "command" || c.world.machine.gone[a.ID] || !e.At.Before(a.UpdatedAt.Add(commandLate)) {
		return
	}
	switch h := c.world.machine.calls[a.ID]; {
	case h != nil && (c.world.underWay(h) || h.ended):
		c.broken(invariants.Unknown, "action %s was started at %s, runs or was ended, and is left to its user at %s",
			a.ID, a.UpdatedAt, e.At)
	case (h == nil || h.never) && r.state.Cancelled && !c.late: // a late process may have requested the outcome before
		c.broken(invariants.Unknown, "action %s of a stopped run was never begun, and is left to its user", a.ID)
	}
}

// leftRunning checks that no command of an ended run is in progress, unless its record on the machine is gone.
func (w *witness) leftRunning(r *watched) {
	for _, a := range r.state.Actions {
		if w.world.underWay(w.world.machine.calls[a.ID]) && !w.world.machine.gone[a.ID] {
			w.broken(invariants.RejectStops, "the run of action %s is over, and it runs", a.ID)
		}
	}
}

// carriesOut checks that a command runs while its intent is its last recorded event.
func (w *witness) carriesOut(call tool.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[call.RunID]
	if r == nil || r.state.Action(call.ActionID) == nil {
		w.broken(invariants.Authority, "action %s is carried out, and is not recorded", call.ActionID)
		return
	}
	if a := r.state.Action(call.ActionID); a.Status != run.ActionExecuting {
		w.broken(invariants.Final, "action %s is carried out, and is %s (%s)", a.ID, a.Status, a.Execution)
	}
}

// begun checks that the run of a command that was just begun is not over.
func (w *witness) begun(call tool.Call) {
	w.did(call, "command", sentAs(call.Args))
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.runs[call.RunID]; r == nil || r.state.End != nil {
		w.broken(invariants.RejectStops, "action %s is begun, and its run has ended", call.ActionID)
	}
}

// tallyMachine counts the results of the commands.
func (m *trialed) tallyMachine(into map[string]int) {
	for id, h := range m.machine.calls {
		_, a := m.witness.action(id)
		for what, is := range map[string]bool{
			"begun on a machine":            h.begun,
			"never begun":                   h.never,
			"interrupted":                   h.ended,
			"followed":                      h.followed,
			"begun on its rule":             h.begun && a != nil && a.Decision == "",
			"begun on a machine, for a yes": h.begun && a != nil && a.Decision != "",
		} {
			if is {
				into[what]++
			}
		}
	}
}
