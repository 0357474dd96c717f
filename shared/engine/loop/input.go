package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Input is the start of a run: exactly one of [Prompt], [Call], [Session], [Import] and [Compress].
type Input interface {
	// check returns an error if the input does not fit the agent or exceeds a limit. It stores nothing.
	check(ctx context.Context, ex *unit.Execution, agent *registry.Agent) error

	// needs returns what createRun must know about the input before it reads any document.
	needs(ex *unit.Execution, req StartRequest) needs

	// stored returns the input in its stored form, for every process that continues the run.
	stored(tx *unit.Tx) *run.Input

	// begin adds what only this input brings to the transition that creates the run, after the user's message.
	begin(ctx context.Context, tx *unit.Tx, places approval.Places) error
}

// needs holds the facts that createRun needs about an input before it reads any document.
type needs struct {
	message  string     // the user's message in the thread; "": none
	terminal string     // the terminal that the run reserves; "": none
	paths    []string   // documents that begin reads
	tool     *tool.Tool // the tool of a run of one call, or nil
	noModel  bool       // the run does not begin with a model call, which would count against the user's limits
	noDayCap bool       // the user's daily limit of approvals does not apply
}

// checkNoSession returns a ValidationError for an agent whose runs are sessions.
func checkNoSession(agent *registry.Agent) error {
	if agent.Plans {
		return fault.Invalid("agent", "the agent %s works in sessions; start one at /plans", agent.Name)
	}
	return nil
}

// seeThread gives the run's model what its agent sees of the thread's earlier runs.
func seeThread(tx *unit.Tx, input *run.Input) *run.Input {
	history := tx.Ex.Agents.Get(tx.Run.Agent).History
	if history == registry.HistoryVerbatim {
		openContextWindow(tx, input)
	}
	inWords := history == registry.HistoryWords || input.Window != nil && input.Window.Count == 0
	if inWords && !input.SingleCall { // a run of one call has no model
		input.History = tx.Thread.History()
		if len(input.History) > 0 {
			input.Mark = markOf(tx)
		}
	}
	return input
}

// openContextWindow gives the run a context window over the contents of the thread's earlier runs. If the thread has
// none yet, because its runs saw only text so far, seeThread adds the text once more. From then on it is part of the
// thread's contents.
func openContextWindow(tx *unit.Tx, input *run.Input) {
	window := tx.Thread.Window
	input.Window, input.Mark = &window, markOf(tx)
}

// markOf returns the thread's mark for the server's records. One mark for all runs keeps the service's cache of the
// conversation valid.
func markOf(tx *unit.Tx) string {
	if tx.Thread.Mark == "" {
		tx.Thread.Mark = tx.Ex.Mark
	}
	return tx.Thread.Mark
}

// leaveEarlier stops the thread from waiting for the approvals and answers of its earlier runs, because the user
// continues the conversation without them.
func leaveEarlier(tx *unit.Tx) { tx.Ex.Earlier, tx.Thread.Waiting = tx.Thread.Waiting, nil }

// remembers reports whether the run's model can call a tool that changes the user's notes. Only such a run sees the
// notes.
func remembers(ex *unit.Execution, agent string, in run.Input) bool {
	of := ex.Agents.Get(agent)
	for name, t := range ex.Toolbox.Tools {
		if t.Lasting && in.Has(name) && of != nil && of.Has(name) {
			return true
		}
	}
	return false
}

// tellPreferences gives the run's model the user's preferences. Another program's agent does not get them.
func tellPreferences(tx *unit.Tx, input *run.Input) error {
	if input.DelegatedBy != nil || input.SingleCall || input.Compress {
		return nil
	}
	u, err := tx.User()
	if err == nil {
		input.Preferences = u.Preferences.Words()
	}
	return err
}

// tellNotes gives the run the user's notes. Another program's agent does not get them.
func tellNotes(tx *unit.Tx, input *run.Input) error {
	if input.DelegatedBy != nil || !remembers(tx.Ex, tx.Run.Agent, *input) {
		return nil
	}
	var m run.Memory
	_, err := tx.Doc(document.NotesPath(tx.Run.UID), &m)
	input.Notes = m.Notes
	return err
}
