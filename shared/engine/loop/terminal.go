package loop

import (
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// checkTerminal returns a ValidationError if a run of the agent needs a terminal and none is named, or the other way
// round.
func checkTerminal(agent *registry.Agent, id string) error {
	switch {
	case agent.OnTerminal && id == "":
		return fault.Invalid("terminalId", "the agent %s works on a terminal; name one", agent.Name)
	case !agent.OnTerminal && id != "":
		return fault.Invalid("terminalId", "the agent %s does not work on a terminal", agent.Name)
	case id != "" && !run.ValidID(id):
		return fault.Invalid("terminalId", "invalid ID")
	}
	return nil
}

// addPath adds the path, unless paths contains it.
func addPath(paths []string, path string) []string {
	if slices.Contains(paths, path) {
		return paths
	}
	return append(paths, path)
}

// takeTerminal reserves the terminal for the new run. It returns AuthError not_found if the terminal is not the user's,
// and PolicyError terminal_busy if another run is open on it; the cause contains that run's ID and status. The commit
// fails if the terminal has been removed by then.
func takeTerminal(tx *unit.Tx, uid, id string) error {
	if id == "" {
		return nil
	}
	path := document.TerminalPath(uid, id)
	if d := tx.Ex.Docs[path]; !d.Exists() {
		return fault.NotFound()
	}
	holder, kept := run.TerminalRun{}, document.TerminalRunPath(uid, id)
	if _, err := tx.Doc(kept, &holder); err != nil {
		return err
	}
	open, err := tx.OpenRun(holder.RunID)
	if err != nil {
		return err
	}
	if open != nil {
		return fault.New(fault.Policy, fault.CodeTerminalBusy,
			"This terminal has an unfinished request (%s). Wait for it to end, or stop it.", open.Status).
			Because(open)
	}
	tx.AddPrecondition(path)
	tx.Put(kept, run.TerminalRun{UID: uid, RunID: tx.Ex.ID})
	return nil
}

// CheckTerminal returns AuthError not_found if the user has no such terminal, and AuthError unauthenticated if the user
// is disabled.
func (l *Loop) CheckTerminal(ctx context.Context, uid, id string) error {
	docs, err := l.Store.Get(ctx, document.UserPath(uid), document.TerminalPath(uid, id))
	if err != nil {
		return unit.StoreError(err)
	}
	u := &run.User{UID: uid}
	if docs[0].Exists() {
		if err := document.Decode(docs[0], u); err != nil {
			return err
		}
	}
	if err := u.CheckEnabled(); err != nil {
		return err
	}
	if !docs[1].Exists() {
		return fault.NotFound()
	}
	return nil
}
