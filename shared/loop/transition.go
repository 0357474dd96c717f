package loop

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// mover is one process's hold on one run: the documents it has read, and what they say.
type mover struct {
	*Loop
	id      string // the run's
	owner   string // this invocation's name in leases and intents
	mark    string // of a run that it starts (agent.Question)
	emit    Sink
	patient bool // what is to be committed is known nowhere else: a store that is down is waited for
	counted bool // this attempt stands in the run's document (attempt)
	worked  bool // a step was made in this invocation, so handing over makes progress

	docs   map[string]store.Doc
	run    agent.Run
	events []agent.Event
	state  *agent.State

	storeTime, localTime time.Time // one moment on both clocks
}

func (l *Loop) mover(runID string, emit Sink) *mover {
	if emit == nil {
		emit = func(Notice) {}
	}
	return &mover{Loop: l, id: runID, owner: agent.NewID(l.Random), emit: emit, docs: map[string]store.Doc{}}
}

// now is the store's time.
func (m *mover) now() time.Time {
	return m.storeTime.Add(max(0, m.Now().Sub(m.localTime))).UTC().Truncate(time.Microsecond)
}

func (m *mover) sawTime(t time.Time) {
	if t.After(m.storeTime) {
		m.storeTime, m.localTime = t, m.Now()
	}
}

// read brings documents into the cache, in one round trip, over what was there.
func (m *mover) read(ctx context.Context, paths ...string) error {
	docs, err := m.Store.Get(ctx, paths...)
	if err != nil {
		return unavailable(err)
	}
	for _, d := range docs {
		m.docs[d.Path] = d
		m.sawTime(d.ReadTime)
	}
	return nil
}

// load reads the run, and whatever else is asked for with it, and folds its events.
func (m *mover) load(ctx context.Context, also ...string) error {
	if err := m.read(ctx, append([]string{document.RunPath(m.id)}, also...)...); err != nil {
		return err
	}
	return m.fold(ctx)
}

func (m *mover) fold(ctx context.Context) error {
	d := m.docs[document.RunPath(m.id)]
	if !d.Exists() {
		m.run, m.events, m.state = agent.Run{}, nil, &agent.State{}
		return nil
	}
	m.run = agent.Run{}
	if err := document.Decode(d, &m.run); err != nil {
		return err
	}
	chunks, err := m.chunks(ctx, m.run.Log.ChunkPaths(d.Path, "events"))
	if err != nil {
		return err
	}
	if m.events, err = m.run.Log.All(chunks...); err != nil {
		return err
	}
	m.state, err = agent.Fold(m.events)
	return err
}

// chunks gives the older parts of the log, reading only what is not yet here: they never change.
func (m *mover) chunks(ctx context.Context, paths []string) ([]json.RawMessage, error) {
	var missing []string
	for _, p := range paths {
		if _, ok := m.docs[p]; !ok {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		if err := m.read(ctx, missing...); err != nil {
			return nil, err
		}
	}
	out := make([]json.RawMessage, len(paths))
	for i, p := range paths {
		out[i] = m.docs[p].Data
	}
	return out, nil
}

// errNeed is how a decision asks for a document that was not read yet.
type errNeed []string

func (e errNeed) Error() string { return "loop: a document is needed first" }

// The bounds of one transition: how often a lost race is tried again, and how often a store that does not answer is.
const (
	maxRaces  = 200
	maxOutage = 4
)

// answerTime is how long somebody who waits for the answer is kept waiting by a store that does not: what they asked for
// can be asked for again, and what was committed after all is found by the sweep.
const answerTime = 9 * time.Second

func promptly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, answerTime)
}

// transition makes a decision true. decide looks at the run as it stands and drafts what follows; it does nothing else,
// for it is called again whenever the commit lost a race: read again, decide again. A decision that drafts nothing
// costs nothing. A commit whose answer was lost is settled in the same way: the run is read again, and a decision that
// has become true drafts nothing.
func (m *mover) transition(ctx context.Context, decide func(*draft) error) error {
	races, outages := 0, 0
	for {
		d, err := m.decide(ctx, decide)
		if err != nil {
			return err
		}
		if d.empty() {
			return nil
		}
		err = d.commit(ctx)
		switch {
		case err == nil:
			d.announce()
			return nil
		case errors.Is(err, store.ErrConflict) && races < maxRaces:
			races++
		case errors.Is(err, store.ErrUnavailable) && (m.patient || outages < maxOutage):
			outages++
		default:
			return unavailable(err)
		}
		if err := m.pause(ctx, races+outages*10); err != nil {
			return unavailable(err)
		}
		known := m.run.ID != ""
		if err := m.reload(ctx); err != nil {
			outages++
			if !m.patient && outages > maxOutage {
				return err
			}
		}
		if known && m.run.ID == "" { // deleted: there is nothing left to decide about
			return fault.NotFound()
		}
	}
}

// decide drafts, reading what the decision asks for.
func (m *mover) decide(ctx context.Context, decide func(*draft) error) (*draft, error) {
	for {
		d, err := m.draft()
		if err != nil {
			return nil, err
		}
		err = decide(d)
		if err == nil {
			err = d.close()
		}
		var need errNeed
		if !errors.As(err, &need) {
			return d, err
		}
		if err := m.read(ctx, m.companions(need)...); err != nil {
			return nil, err
		}
	}
}

// companions adds to what is needed what the run's later steps will need, so that it is one round trip and not two: the
// user's document and the thread.
func (m *mover) companions(need []string) []string {
	for _, p := range []string{document.UserPath(m.run.UID), document.ThreadPath(m.run.ThreadID)} {
		if _, ok := m.docs[p]; !ok && m.run.ID != "" && !slices.Contains(need, p) {
			need = append(need, p)
		}
	}
	return need
}

// reload reads all mutable documents of the cache again.
func (m *mover) reload(ctx context.Context) error {
	chunks := map[string]bool{}
	for _, p := range m.run.Log.ChunkPaths(document.RunPath(m.id), "events") {
		chunks[p] = true
	}
	paths := []string{document.RunPath(m.id)}
	for p := range m.docs {
		if p != paths[0] && !chunks[p] {
			paths = append(paths, p)
		}
	}
	if err := m.read(ctx, paths...); err != nil {
		return err
	}
	return m.fold(ctx)
}

// pause waits before try n: a random part of a time that grows to half a second, so that racers spread and a store
// that is down is not hammered.
func (m *mover) pause(ctx context.Context, n int) error {
	limit := min(500*time.Millisecond, time.Duration(n)*4*time.Millisecond)
	return m.Sleep(ctx, m.spread(limit))
}

// spread is a random duration up to limit.
func (l *Loop) spread(limit time.Duration) time.Duration {
	var b [8]byte
	if _, err := l.Random.Read(b[:]); err != nil || limit <= 0 {
		return limit
	}
	return time.Duration(binary.LittleEndian.Uint64(b[:]) % uint64(limit))
}

// unavailable turns a store's error into the one that callers may show; errors that are ours already stay.
func unavailable(err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, store.ErrTooLarge):
		return fault.New(fault.Validation, codeTooLarge, "This is more than can be stored at once.").Because(err)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrConflict), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.New(fault.Tool, fault.CodeStoreUnavailable, "The store does not answer just now. Nothing was lost; please try again.").After(5 * time.Second).Because(err)
	case errors.Is(err, store.ErrInvalid):
		return err
	}
	return fmt.Errorf("%w: %w", errStore, err)
}

// errStore wraps a store's error that no retry mends and that says nothing about the run, such as a missing permission.
var errStore = errors.New("loop: the store failed")
