package journal

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
)

// Execution is one process's hold on one run: the documents that it has read, and what they say.
type Execution struct {
	*Env
	ID         string   // the run's
	Owner      string   // this execution's name in leases and intents
	Mark       string   // for a run that it starts (run.Input.Mark)
	Earlier    []string // runs whose waiting calls the user gives up by starting this one
	sink       Sink
	Unread     bool      // nobody reads the updates
	MustCommit bool      // what is to be committed is known nowhere else: wait for a store that is down
	Counted    bool      // this attempt is counted in the run's document (LoadCounted)
	Until      time.Time // after which it is handed over before the next step; zero: when the function's time is up
	Progressed bool      // a step was made by this execution, so handing over makes progress

	Asked string          // the span that has asked for the run to be moved (queue.Message)
	span  Span            // in which this execution moves the run (TraceRun)
	mover context.Context // of whoever has this execution move the run (Stay); nil: nobody yet

	Tools  tool.Set // as they are known to this execution: those of Env, and of Served what there was (see Served)
	Docs   map[string]store.Doc
	Run    run.Run
	Events []run.Event
	State  *run.State
	answer *tool.Tool // see Offered
	page   tool.Set   // likewise
	heard  *heard     // see Heard; nil: nobody has asked

	storeTime, localTime time.Time // the same moment by both clocks, or the store's is earlier
	sentTime             time.Time // by the local clock, and not later than storeTime
}

// NewExecution returns this process's hold on the run, with nothing read yet. The sink may be nil.
func (l *Env) NewExecution(runID string, emit Sink) *Execution {
	unread := emit == nil
	if unread {
		emit = func(Update) {}
	}
	return &Execution{Env: l, ID: runID, Owner: run.NewID(l.Random), sink: emit, Unread: unread,
		Tools: l.ToolsNow(), Docs: map[string]store.Doc{}}
}

// Now returns the time by the store's clock, or an earlier one where the store's last answer was long in coming: the
// lease of another process is not taken for lapsed too soon.
func (ex *Execution) Now() time.Time {
	return ex.storeTime.Add(max(0, ex.Env.Now().Sub(ex.localTime))).UTC().Truncate(time.Microsecond)
}

// observeTime sets the clock by the time of the store's answer to what was sent at sent, by the local clock.
func (ex *Execution) observeTime(t, sent time.Time) {
	if t.After(ex.storeTime) {
		ex.storeTime, ex.localTime, ex.sentTime = t, ex.Env.Now(), sent
	}
}

// Read reads documents into the cache, in one round trip, replacing what was there.
func (ex *Execution) Read(ctx context.Context, paths ...string) error {
	sent := ex.Env.Now()
	docs, err := ex.Store.Get(ctx, paths...)
	if err != nil {
		return StoreError(err)
	}
	for _, d := range docs {
		ex.Docs[d.Path] = d
		ex.observeTime(d.ReadTime, sent)
	}
	return nil
}

// Load reads the run and the documents named with it, and folds its events.
func (ex *Execution) Load(ctx context.Context, also ...string) error {
	if err := ex.Read(ctx, append([]string{document.RunPath(ex.ID)}, also...)...); err != nil {
		return err
	}
	return ex.fold(ctx)
}

// LoadRead has ex take the run's document as it was read, and fold its events.
func LoadRead(ctx context.Context, ex *Execution, d store.Doc) error {
	ex.Docs[d.Path] = d
	return ex.fold(ctx)
}

func (ex *Execution) fold(ctx context.Context) error {
	d := ex.Docs[document.RunPath(ex.ID)]
	if !d.Exists() {
		ex.Run, ex.Events, ex.State = run.Run{}, nil, &run.State{}
		return nil
	}
	ex.Run = run.Run{}
	if err := document.Decode(d, &ex.Run); err != nil {
		return err
	}
	chunks, err := ex.readChunks(ctx, ex.Run.Log.ChunkPaths(d.Path, "events"))
	if err != nil {
		return err
	}
	if ex.Events, err = ex.Run.Log.All(chunks...); err != nil {
		return err
	}
	ex.State, err = run.Fold(ex.Events)
	return err
}

// readChunks returns the content of documents that never change, such as the older parts of a log, and reads only those
// that were not read yet.
func (ex *Execution) readChunks(ctx context.Context, paths []string) ([]json.RawMessage, error) {
	var missing []string
	for _, p := range paths {
		if _, ok := ex.Docs[p]; !ok {
			missing = append(missing, p)
		}
	}
	for page := range slices.Chunk(missing, store.MaxReads) {
		if err := ex.Read(ctx, page...); err != nil {
			return nil, err
		}
	}
	out := make([]json.RawMessage, len(paths))
	for i, p := range paths {
		out[i] = ex.Docs[p].Data
	}
	return out, nil
}

// Notify sends the update to the sink, as one of this run.
func (ex *Execution) Notify(n Update) {
	n.RunID, n.ThreadID = ex.Run.ID, ex.Run.ThreadID
	ex.sink(n)
}

// View returns the run as its owner sees it, with a summary in the server's words until the run has its own, and with
// those of its open approvals whose documents were read or written.
func (ex *Execution) View() *run.View {
	var waiting []run.ApprovalView
	titles := map[string]string{} // of stored cards, by action, which need not be made anew
	for _, a := range ex.State.Open() {
		var ap run.Approval
		d, known := ex.Docs[document.ApprovalPath(a.ApprovalID)]
		if !known || document.Decode(d, &ap) != nil { // whoever needs it reads it, and is told what is wrong with it
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
		return run.ActionTitle(ex.Tools, a)
	}))
	v.Waiting = waiting
	for i, a := range ex.State.Actions {
		v.Actions[i].Step = run.StepOf(ex.Tools, a)
	}
	return v
}
