package journal

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
)

// maxDeliveries is how often a run is delivered that cannot be read or moved, or that kills the process that reads it:
// at once, and after 1, 2, 4 and 8 minutes. Then it is put aside: it is not delivered again until an operator redrives
// it (ops redrive) or its owner decides something.
const maxDeliveries = 5

// ErrPostponed means that no process can move the run, and that this is recorded: delivering it again at once would not
// help.
var ErrPostponed = errors.New("journal: the run cannot be read or moved, and was postponed")

// Postponed reports whether [Loop.Advance] found a run that no process can move, and has put its next try off or put
// the run aside.
func Postponed(err error) bool { return errors.Is(err, ErrPostponed) }

// lateAfter is how late a run may normally reach a process: the sweep's minute, and what the queue needs.
const lateAfter = 3 * time.Minute

// LoadCounted loads the run. A process that is killed by what it reads leaves no lease behind. So where the run comes
// so late that an earlier process may have died of it, or was postponed before, the attempt is counted before the
// documents are decoded. A run that comes in time, as all do except after an outage, needs no commit for this.
//
// What the run's later steps need of its owner and its thread is read in the same round trip where the hints say which
// they are. Every step looks a document up by the path that the run itself names, so what wrong hints have read is not
// found by any: they cost a round trip later, and nothing else.
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
		ex.Log.ErrorContext(ctx, "a run ended every process that read it and was put aside", "counter", "run_aside",
			"runId", ex.ID, "tries", tries)
		return ErrPostponed
	}
	d.Version, d.Fields = versions[0], fields
	ex.Docs[path], ex.Counted = d, true
	ex.observeTime(d.Version, sent)
	return ex.fold(ctx)
}

// hintedPaths returns the documents that the hints name: the user, what they have linked, and the thread. Hints that
// name none are left out.
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

// nameable reports whether a document's name can be made of the hint.
func nameable(hint string) bool {
	return hint != "" && !strings.Contains(hint, "/") && store.ValidPath(document.ThreadPath(hint)) == nil &&
		store.ValidPath(document.UserPath(hint)) == nil
}

// LinkedPaths returns the documents by which the tools of the agent, or all tools where it is not here, know what the
// scope's user has linked.
func (l *Env) LinkedPaths(in tool.Scope, agent string) []string {
	if its := l.Agents.Get(agent); its != nil {
		return its.Of(l.Tools).Reads(in)
	}
	return l.Tools.Reads(in)
}

// postponedFields returns the fields of a run that was tried tries times: it is due later each time, and never once it
// is put aside.
func postponedFields(d store.Doc, tries int64, asideNow bool) map[string]any {
	f := document.RunFieldsOf(d)
	f.Tries, f.Due = tries, d.ReadTime.UTC().Truncate(time.Microsecond).Add(time.Minute<<(tries-1))
	if asideNow {
		f.Due, f.Aside = document.Never, true
	}
	return f.Map(document.ID(d))
}

// Postpone puts the next try off, or after the last try the run aside, so that a run that no process can move does not
// hold up others. It changes only the fields that the sweep looks at, because the document may be unreadable.
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
	if !ex.Counted || tries == 0 { // a commit that moves the run takes the count with it
		tries++
	}
	if _, err := ex.Store.Commit(ctx,
		store.Update(path, d.Version, postponedFields(d, tries, tries >= maxDeliveries), d.Data)); err != nil {
		return cause // another process changed it, or the store is down: it is delivered again
	}
	if tries < maxDeliveries {
		ex.Log.WarnContext(ctx, "a run cannot be read or moved and is tried again later", "counter", "run_set_back",
			"runId", ex.ID, "tries", tries, "error", cause)
	} else {
		ex.Log.ErrorContext(ctx, "a run cannot be read or moved and was put aside", "counter", "run_aside", "runId",
			ex.ID, "tries", tries, "error", cause)
	}
	return ErrPostponed
}
