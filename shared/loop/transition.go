package loop

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
)

// execution is one process's hold on one run: the documents that it has read, and what they say.
type execution struct {
	*Loop
	id         string   // the run's
	owner      string   // this execution's name in leases and intents
	mark       string   // for a run that it starts (run.Input.Mark)
	earlier    []string // runs whose waiting calls the user gives up by starting this one
	sink       Sink
	mustCommit bool // what is to be committed is known nowhere else: wait for a store that is down
	counted    bool // this attempt is counted in the run's document (loadCounted)
	progressed bool // a step was made by this execution, so handing over makes progress

	docs   map[string]store.Doc
	run    run.Run
	events []run.Event
	state  *run.State

	storeTime, localTime time.Time // the same moment by both clocks
}

func (l *Loop) newExecution(runID string, emit Sink) *execution {
	if emit == nil {
		emit = func(Update) {}
	}
	return &execution{Loop: l, id: runID, owner: run.NewID(l.Random), sink: emit, docs: map[string]store.Doc{}}
}

// now returns the time by the store's clock.
func (ex *execution) now() time.Time {
	return ex.storeTime.Add(max(0, ex.Now().Sub(ex.localTime))).UTC().Truncate(time.Microsecond)
}

func (ex *execution) observeTime(t time.Time) {
	if t.After(ex.storeTime) {
		ex.storeTime, ex.localTime = t, ex.Now()
	}
}

// read reads documents into the cache, in one round trip, replacing what was there.
func (ex *execution) read(ctx context.Context, paths ...string) error {
	docs, err := ex.Store.Get(ctx, paths...)
	if err != nil {
		return storeError(err)
	}
	for _, d := range docs {
		ex.docs[d.Path] = d
		ex.observeTime(d.ReadTime)
	}
	return nil
}

// load reads the run and the documents named with it, and folds its events.
func (ex *execution) load(ctx context.Context, also ...string) error {
	if err := ex.read(ctx, append([]string{document.RunPath(ex.id)}, also...)...); err != nil {
		return err
	}
	return ex.fold(ctx)
}

func (ex *execution) fold(ctx context.Context) error {
	d := ex.docs[document.RunPath(ex.id)]
	if !d.Exists() {
		ex.run, ex.events, ex.state = run.Run{}, nil, &run.State{}
		return nil
	}
	ex.run = run.Run{}
	if err := document.Decode(d, &ex.run); err != nil {
		return err
	}
	chunks, err := ex.readChunks(ctx, ex.run.Log.ChunkPaths(d.Path, "events"))
	if err != nil {
		return err
	}
	if ex.events, err = ex.run.Log.All(chunks...); err != nil {
		return err
	}
	ex.state, err = run.Fold(ex.events)
	return err
}

// readChunks returns the older parts of the log, reading only those that are not cached: they never change.
func (ex *execution) readChunks(ctx context.Context, paths []string) ([]json.RawMessage, error) {
	var missing []string
	for _, p := range paths {
		if _, ok := ex.docs[p]; !ok {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		if err := ex.read(ctx, missing...); err != nil {
			return nil, err
		}
	}
	out := make([]json.RawMessage, len(paths))
	for i, p := range paths {
		out[i] = ex.docs[p].Data
	}
	return out, nil
}

// errMissingDocs is how a decision asks for documents that were not read yet.
type errMissingDocs []string

func (e errMissingDocs) Error() string { return "loop: a document must be read first" }

// Bounds of one transition: how often a lost race is tried again, and how often a store that does not answer.
const (
	maxRaces  = 200
	maxOutage = 4
)

// answerTimeout is how long a caller is kept waiting by a store that does not answer. The caller can ask again, and
// what was committed nevertheless is found by the sweep.
const answerTimeout = 9 * time.Second

func withAnswerTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerTimeout)
}

// transition decides what follows from the run's present state and commits it. decide looks at the run and fills the
// tx; it must do nothing else, because it is called again, on fresh documents, whenever the commit loses a race. A
// decision that leaves the tx empty costs no commit. A commit whose answer was lost is settled in the same way: the run
// is read again, and a decision that was committed already leaves the tx empty.
func (ex *execution) transition(ctx context.Context, decide func(*tx) error) error {
	races, outages := 0, 0
	for {
		tx, err := ex.decide(ctx, decide)
		if err != nil {
			return err
		}
		if tx.empty() {
			return nil
		}
		err = tx.commit(ctx)
		switch {
		case err == nil:
			tx.notifyUpdates()
			return nil
		case errors.Is(err, store.ErrConflict) && races < maxRaces:
			races++
		case errors.Is(err, store.ErrUnavailable) && (ex.mustCommit || outages < maxOutage):
			outages++
		default:
			return storeError(err)
		}
		if err := ex.backOffCommit(ctx, races+outages*10); err != nil {
			return storeError(err)
		}
		known := ex.run.ID != ""
		if err := ex.reload(ctx); err != nil {
			outages++
			if !ex.mustCommit && outages > maxOutage {
				return err
			}
		}
		if known && ex.run.ID == "" { // deleted: there is nothing left to decide about
			return fault.NotFound()
		}
	}
}

// decide fills a tx, reading the documents that the decision asks for.
func (ex *execution) decide(ctx context.Context, decide func(*tx) error) (*tx, error) {
	for {
		tx, err := ex.newTx()
		if err != nil {
			return nil, err
		}
		err = decide(tx)
		if err == nil {
			err = tx.prepareWrites()
		}
		var need errMissingDocs
		if !errors.As(err, &need) {
			return tx, err
		}
		if err := ex.read(ctx, ex.prefetch(need)...); err != nil {
			return nil, err
		}
	}
}

// prefetch adds to the documents that are needed those that the run's later steps will need, the user's document and
// the thread, so that one round trip serves for both.
func (ex *execution) prefetch(need []string) []string {
	for _, p := range []string{document.UserPath(ex.run.UID), document.ThreadPath(ex.run.ThreadID)} {
		if _, ok := ex.docs[p]; !ok && ex.run.ID != "" && !slices.Contains(need, p) {
			need = append(need, p)
		}
	}
	return need
}

// reload reads all mutable documents of the cache again, and folds the run's events.
func (ex *execution) reload(ctx context.Context) error {
	chunks := map[string]bool{}
	for _, p := range ex.run.Log.ChunkPaths(document.RunPath(ex.id), "events") {
		chunks[p] = true
	}
	paths := []string{document.RunPath(ex.id)}
	for p := range ex.docs {
		if p != paths[0] && !chunks[p] {
			paths = append(paths, p)
		}
	}
	if err := ex.read(ctx, paths...); err != nil {
		return err
	}
	return ex.fold(ctx)
}

// backOffCommit waits before try n: a random part of a time that grows to half a second, so that racing processes
// spread and a store that is down is not hammered.
func (ex *execution) backOffCommit(ctx context.Context, n int) error {
	limit := min(500*time.Millisecond, time.Duration(n)*4*time.Millisecond)
	return ex.Sleep(ctx, ex.jitter(limit))
}

// jitter returns a random duration below limit.
func (l *Loop) jitter(limit time.Duration) time.Duration {
	var b [8]byte
	if _, err := l.Random.Read(b[:]); err != nil || limit <= 0 {
		return limit
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(limit))
}

// storeError turns a store's error into one that callers may show. An error that is a *fault.Error already is returned
// unchanged.
func storeError(err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, store.ErrTooLarge):
		return fault.New(fault.Validation, codeTooLarge, "This is more than can be stored at once.").Because(err)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrConflict),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.Unavailable("The service is temporarily unavailable. Nothing was lost; please try again.", err)
	case errors.Is(err, store.ErrInvalid):
		return err
	}
	return fmt.Errorf("%w: %w", errStore, err)
}

// errStore wraps a store's error that no retry mends and that does not depend on the run, such as a missing permission.
var errStore = errors.New("loop: the store failed")
