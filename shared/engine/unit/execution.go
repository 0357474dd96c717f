package unit

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/provenance"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Execution is one process's work on one run: the snapshot that it has read, the tools that the run may call, and the
// lease under which it advances the run.
type Execution struct {
	*Env
	Snapshot
	Owner      string   // name of this execution in leases and intents
	Mark       string   // for a run that it starts (run.Input.Mark)
	Earlier    []string // runs whose waiting calls the user gives up by starting this one
	sink       Sink
	Unread     bool // no reader receives the updates
	MustCommit bool // the data to commit exists nowhere else: wait while the store is down
	Counted    bool // this attempt is counted in the run's document (LoadCounted)
	// Until is the time after which the run is handed over before the next step; zero: when the function's time is up.
	Until      time.Time
	Progressed bool // this execution has completed a step, so handing over makes progress
	// Unmade is the intent of a call that this execution has not made because its lease had lapsed.
	Unmade run.Started

	Asked  string          // traceparent of the span that requested the work (queue.Message)
	Trace  observe.Trace   // the span of this execution's work
	caller context.Context // context of the caller (Detach); nil: none yet

	foresight    *Foresight      // how model calls begin ahead of commits; nil: none do (Foresee)
	foreseeing   context.Context // context of the step that is foreseen
	ahead        *Ahead          // the call that has begun ahead of the last commit; nil: none
	discarded    int             // dropped calls that no commit has counted yet
	discardedFor string          // their user

	Toolbox    toolbox.Toolbox
	provenance *provenance.Record // cached by [Tx.Provenance]; nil: not built yet
}

// NewExecution returns an execution for the run. It has read nothing yet. A nil sink drops all updates.
func (l *Env) NewExecution(runID string, emit Sink) *Execution {
	unread := emit == nil
	if unread {
		emit = func(Update) {}
	}
	ex := &Execution{Env: l, Snapshot: newSnapshot(l, runID), Owner: run.NewID(l.Random), sink: emit, Unread: unread,
		Trace: l.NewTrace()}
	ex.Toolbox = toolbox.New(l.toolSource(), ex.Now)
	return ex
}

// EndTrace ends the span in which ex advanced the run. err is the reason why ex stopped, or nil. A run that another
// process holds is no error of the span.
func (ex *Execution) EndTrace(err error) {
	if err != nil && Held(err) {
		err = nil
	}
	ex.Trace.End(ex.State, err)
}

// Now returns the time by the store's clock, or an earlier time if the store's last answer took long. The lease of
// another process is therefore never treated as lapsed too soon.
func (ex *Execution) Now() time.Time { return ex.clock.earliest() }

// Notify sends the update to the sink, with the IDs of this run and its thread.
func (ex *Execution) Notify(n Update) {
	n.RunID, n.ThreadID = ex.Run.ID, ex.Run.ThreadID
	ex.sink(n)
}

// View returns the run in the form that its owner sees. Until the run has a summary of its own, the summary is in the
// server's words. The view includes the open approvals whose documents are cached.
func (ex *Execution) View() *run.View {
	var waiting []run.ApprovalView
	titles := map[string]string{} // titles of stored cards, by action
	for _, a := range ex.State.Open() {
		var ap run.Approval
		d, known := ex.Docs[document.ApprovalPath(a.ApprovalID)]
		if !known || document.Decode(d, &ap) != nil { // the caller that needs it reads it and gets the error
			continue
		}
		titles[ap.ActionID] = ap.Preview.Title
		if ap.UID == ex.Run.UID && ap.Status == run.ApprovalOpen && ex.Now().Before(ap.ExpiresAt) {
			waiting = append(waiting, ap.View())
		}
	}
	v := run.NewView(ex.Run, ex.State, run.ProgressSummary(ex.State, func(a *run.Action) string {
		if title := titles[a.ID]; title != "" {
			return title
		}
		return run.ActionTitle(ex.Toolbox.Tools, a)
	}))
	v.Waiting = waiting
	for i, a := range ex.State.Actions {
		v.Actions[i].Step = run.StepOf(ex.Toolbox.Tools, a)
	}
	return v
}
