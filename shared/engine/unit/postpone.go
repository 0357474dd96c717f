package unit

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// maxDeliveries is the number of times that a run is delivered if it cannot be read or advanced, or if it kills its
// process: at once, and after 1, 2, 4 and 8 minutes. The run is then quarantined. It is not delivered again until an
// operator redrives it (ops redrive) or its owner decides something.
const maxDeliveries = 5

// ErrPostponed means that no process can advance the run and that this is recorded. An immediate redelivery would not
// help.
var ErrPostponed = errors.New("unit: the run cannot be read or advanced, and is postponed")

// Postponed reports whether loop.Loop.Advance found a run that no process can advance, and postponed or quarantined it.
func Postponed(err error) bool { return errors.Is(err, ErrPostponed) }

// lateAfter is how late a run may normally reach a process: the sweep's minute plus the delivery time of the queue.
const lateAfter = 3 * time.Minute

// LoadCounted loads the run. A process that is killed by the documents that it reads leaves no lease behind. So if the
// run is so late that an earlier process may have died of it, or if it was postponed before, LoadCounted commits the
// attempt before it decodes the documents. A run that arrives in time needs no such commit; only runs after an outage
// do.
//
// The hints name the run's owner and thread, so that their documents are read in the same round trip. Every later step
// uses the paths in the run itself, so wrong hints only cost a further round trip.
//
// LoadCounted returns ErrHeld if another process has just changed the run, and ErrPostponed if it quarantined the run.
func (ex *Execution) LoadCounted(ctx context.Context, hints queue.Message) error {
	path := document.RunPath(ex.ID)
	if err := ex.Read(ctx, append([]string{path}, ex.hintedPaths(hints)...)...); err != nil {
		return err
	}
	d := ex.Docs[path]
	f := document.RunFieldsOf(d)
	late := d.ReadTime.Sub(f.Due)
	if f.Due.IsZero() || late < 0 || late < lateAfter && f.Tries == 0 {
		return ex.fold(ctx)
	}
	tries := f.Tries
	exhausted := tries >= maxDeliveries // each of them killed its process
	fields := postponedFields(d, min(tries+1, maxDeliveries), exhausted)
	sent := ex.Env.Now()
	versions, err := ex.Store.Commit(ctx, store.Update(path, d.Version, fields, d.Data))
	switch {
	case errors.Is(err, store.ErrConflict):
		return ErrHeld // another process has just changed the run
	case err != nil:
		return StoreError(err)
	case exhausted:
		ex.Log.ErrorContext(ctx, "a run crashed every process that read it and is quarantined", "counter", "run_aside",
			"runId", ex.ID, "tries", tries)
		return ErrPostponed
	}
	d.Version, d.Fields = versions[0], fields
	ex.Docs[path], ex.Counted = d, true
	ex.clock.observe(d.Version, sent)
	return ex.fold(ctx)
}

// hintedPaths returns the paths that the hints name: the user's document, the user's linked accounts, and the thread.
// Missing or invalid hints are skipped.
func (l *Env) hintedPaths(hints queue.Message) (paths []string) {
	if nameable(hints.UID) {
		scope := tool.Scope{UID: hints.UID, Terminal: hints.Terminal}
		if !nameable(hints.Terminal) {
			scope.Terminal = ""
		}
		paths = append(l.LinkedPaths(scope, hints.Agent), document.UserPath(hints.UID))
	}
	if nameable(hints.ThreadID) {
		paths = append(paths, document.ThreadPath(hints.ThreadID))
	}
	return paths
}

// nameable reports whether the hint can be part of a document's path.
func nameable(hint string) bool {
	return hint != "" && !strings.Contains(hint, "/") && store.ValidPath(document.ThreadPath(hint)) == nil &&
		store.ValidPath(document.UserPath(hint)) == nil
}

// LinkedPaths returns the paths of the documents that describe the linked accounts of the scope's user, for the tools
// of the agent. If this process does not know the agent, it returns those for all tools.
func (l *Env) LinkedPaths(in tool.Scope, agent string) []string {
	if agent := l.Agents.Get(agent); agent != nil {
		return agent.Of(l.Tools).Reads(in)
	}
	return l.Tools.Reads(in)
}

// postponedFields returns the fields of a run that was tried tries times. Each try makes it due later; a quarantined
// run is never due.
func postponedFields(d store.Doc, tries int64, quarantined bool) map[string]any {
	f := document.RunFieldsOf(d)
	f.Tries, f.Due = tries, d.ReadTime.UTC().Truncate(time.Microsecond).Add(time.Minute<<(tries-1))
	if quarantined {
		f.Due, f.Quarantined = document.Never, true
	}
	return f.Map(document.ID(d))
}

// Postpone delays the next try, or quarantines the run after the last one, so that a run that no process can advance
// does not hold up others. It changes only the fields that the sweep reads, because the document may be unreadable. It
// returns ErrPostponed, or cause if that could not be committed.
func (ex *Execution) Postpone(ctx context.Context, cause error) error {
	ctx, cancel := Detached(ctx)
	defer cancel()
	path := document.RunPath(ex.ID)
	docs, err := ex.Store.Get(ctx, path)
	if err != nil || !docs[0].Exists() {
		return cause
	}
	d := docs[0]
	tries := document.RunFieldsOf(d).Tries
	if !ex.Counted || tries == 0 { // a commit that advances the run takes the count with it
		tries++
	}
	if _, err := ex.Store.Commit(ctx,
		store.Update(path, d.Version, postponedFields(d, tries, tries >= maxDeliveries), d.Data)); err != nil {
		return cause // another process changed it, or the store is down: the queue delivers it again
	}
	if tries < maxDeliveries {
		ex.Log.WarnContext(ctx, "a run cannot be read or advanced and is retried later", "counter", "run_set_back",
			"runId", ex.ID, "tries", tries, "error", cause)
	} else {
		ex.Log.ErrorContext(ctx, "a run cannot be read or advanced and is quarantined", "counter", "run_aside", "runId",
			ex.ID, "tries", tries, "error", cause)
	}
	return ErrPostponed
}
