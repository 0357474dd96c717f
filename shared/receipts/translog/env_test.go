package translog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/countersign-run/countersign/shared/receipts/translog"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a store with audit entries, and its log.
type world struct {
	testing.TB

	mu     sync.Mutex
	now    time.Time
	store  store.Store
	files  *objects
	key    translog.Key
	chains int
	added  []audit.Entry
}

func newWorld(t testing.TB) *world {
	t.Helper()
	key, err := translog.LocalKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, now: began, key: key}
	w.store = memory.New(w.clock)
	w.files = &objects{Objects: &inMemory{files: map[string][]byte{}}, signed: map[string]string{}}
	return w
}

// inMemory are files in a map.
type inMemory struct {
	mu    sync.Mutex
	files map[string][]byte
}

func (m *inMemory) Create(_ context.Context, name string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, had := m.files[name]; had && !bytes.Equal(old, data) {
		return errors.New("exists with other bytes")
	}
	m.files[name] = bytes.Clone(data)
	return nil
}

func (m *inMemory) Read(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, had := m.files[name]; had {
		return data, nil
	}
	return nil, translog.ErrGone
}

func (m *inMemory) Replace(_ context.Context, name string, was, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !bytes.Equal(m.files[name], was) {
		return store.ErrConflict
	}
	m.files[name] = data
	return nil
}

func (m *inMemory) List(_ context.Context, folder string) (names []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.files {
		if strings.HasPrefix(name, folder+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// publisher returns a publisher, as a new process has it.
func (w *world) publisher() *translog.Publisher {
	return &translog.Publisher{Store: w.store, Objects: w.files, Signer: w.key, Origin: w.key.Origin(), Now: w.clock,
		Log: slog.New(slog.DiscardHandler)}
}

func (w *world) publish(p *translog.Publisher, want int) {
	w.Helper()
	if n, err := p.Publish(w.Context()); err != nil || n != want {
		w.Fatalf("published %d entries, %v; want %d", n, err, want)
	}
}

// chain commits a chain of n entries, a millisecond apart from the time.
func (w *world) chain(at time.Time, n int, keep int) []audit.Entry {
	w.Helper()
	w.chains++
	var head audit.Head
	var writes []store.Write
	var entries []audit.Entry
	for i := range n {
		var e audit.Entry
		e, head = audit.Seal(head, audit.Entry{RunID: fmt.Sprintf("run-%016d", w.chains), UID: "ana",
			At: at.Add(time.Duration(i) * time.Millisecond), Kind: audit.Intent, KeepDays: keep})
		data, err := json.Marshal(e)
		if err != nil {
			w.Fatal(err)
		}
		writes = append(writes, store.Create(document.AuditPath(e.RunID, e.Seq), e.Fields(), data))
		entries = append(entries, e)
	}
	if _, err := w.store.Commit(w.Context(), writes...); err != nil {
		w.Fatal(err)
	}
	w.added = append(w.added, entries...)
	return entries
}

func (w *world) keys() note.Verifiers {
	w.Helper()
	text, err := translog.VerifierKey(w.Context(), w.key.Origin(), w.key)
	if err != nil {
		w.Fatal(err)
	}
	keys, err := translog.ParseKeys(text)
	if err != nil {
		w.Fatal(err)
	}
	return keys
}

// read reads the log, which must have no faults, and has the entries.
func (w *world) read(entries ...audit.Entry) *translog.Log {
	w.Helper()
	l, faults, err := translog.Read(w.Context(), w.files, w.keys())
	if err != nil || len(faults) > 0 {
		w.Fatalf("the log: %v, %v", faults, err)
	}
	for _, e := range entries {
		if !l.Has(e.Hash, e.At) {
			w.Errorf("entry %d of %s is not in the log", e.Seq, e.RunID)
		}
	}
	return l
}

// whole checks that the log has each entry of the store once.
func (w *world) whole() {
	w.Helper()
	l := w.read(w.added...)
	if gaps := l.Gaps(w.clock()); int(l.N) != len(w.added) || len(gaps) > 0 {
		w.Errorf("the log has %d entries and the gaps %v; want %d", l.N, gaps, len(w.added))
	}
}

var errKilled = errors.New("killed")

// objects are files that fail at the writes that a test chooses, and remember all checkpoints.
type objects struct {
	translog.Objects

	mu     sync.Mutex
	signed map[string]string // checkpoints by size
	fail   func() (before, after bool)
}

func (o *objects) Create(ctx context.Context, name string, data []byte) error {
	return o.write(func() error { return o.Objects.Create(ctx, name, data) })
}

func (o *objects) Replace(ctx context.Context, name string, was, data []byte) error {
	size := string(bytes.Split(data, []byte("\n"))[1])
	o.mu.Lock()
	if old, had := o.signed[size]; had && old != string(data) {
		panic("two checkpoints of one size")
	}
	o.signed[size] = string(data)
	o.mu.Unlock()
	return o.write(func() error { return o.Objects.Replace(ctx, name, was, data) })
}

func (o *objects) write(do func() error) error {
	var before, after bool
	if o.fail != nil {
		before, after = o.fail()
	}
	if before {
		return errKilled
	}
	if err := do(); err != nil || !after {
		return err
	}
	return errKilled
}
