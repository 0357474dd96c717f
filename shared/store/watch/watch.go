// Package watch notifies watchers of a store's documents within one process. store/memory and store/embedded share it.
package watch

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// Pauses before a document is read again after [store.ErrUnavailable].
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// Get reads documents, as the method of [store.Store] does.
type Get func(ctx context.Context, paths ...string) ([]store.Doc, error)

// Hub keeps track of the watchers of each document. The zero value has no watchers.
type Hub struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]bool // by path
}

// watcher is one reader of one document.
type watcher struct {
	changed chan struct{} // holds one signal: the document may differ from the delivered state

	// The hub's lock protects these fields:
	version time.Time  // of the delivered state
	served  bool       // a state was delivered
	written *store.Doc // the newest state that this process has committed since the last signal was read
	unknown bool       // the document was changed in another way since then, and must be read
}

// Watch implements the method of [store.Store]. It reads the document when it begins, and again after each signal that
// does not contain the new state. It starts no goroutine.
func (h *Hub) Watch(ctx context.Context, path string, get Get) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		w := h.join(path)
		defer h.leave(path, w)
		for {
			d, known := h.take(w)
			var err error
			if !known {
				d, err = patient(ctx, path, get)
			}
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(store.Doc{}, err)
				return
			}
			if h.news(w, d.Version, known) && !yield(d, nil) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-w.changed:
			}
		}
	}
}

// patient reads the document, and retries while the store is unavailable.
func patient(ctx context.Context, path string, get Get) (store.Doc, error) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		docs, err := get(ctx, path)
		if err == nil {
			return docs[0], nil
		}
		if !errors.Is(err, store.ErrUnavailable) {
			return store.Doc{}, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return store.Doc{}, ctx.Err()
		case <-timer.C:
		}
	}
}

// Committed passes the new states of written documents to their watchers. versions are the documents' new versions. If
// versions is nil, because it is unknown whether the commit was applied, the watchers read the documents.
func (h *Hub) Committed(writes []store.Write, versions []time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return
	}
	for i, w := range writes {
		all := h.watchers[w.Doc.Path]
		switch {
		case len(all) == 0 || w.Op == store.OpCheck:
		case versions == nil || w.Op == store.OpDelete: // a delete has no version that would give its time
			for one := range all {
				one.signal()
			}
		default:
			d := written(w.Doc, versions[i])
			for one := range all {
				one.bring(d)
			}
		}
	}
}

// written returns a document in the form that a read after the commit would return. It copies the data, which the
// caller may change.
func written(d store.Doc, version time.Time) *store.Doc {
	d.Version, d.ReadTime, d.Data = version, version, bytes.Clone(d.Data)
	fields := make(map[string]any, len(d.Fields))
	for name, v := range d.Fields {
		fields[name], _ = store.Canonical(v) // it was stored, so it has such a form
	}
	d.Fields = fields
	return &d
}

// Paths returns the paths of the watched documents.
func (h *Hub) Paths() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	paths := make([]string, 0, len(h.watchers))
	for p := range h.watchers {
		paths = append(paths, p)
	}
	return paths
}

// Found signals the watchers of the document that have a version other than this one, which the store has now. A zero
// version means that the document does not exist.
func (h *Hub) Found(path string, version time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[path] {
		if w.served && !w.version.Equal(version) {
			w.signal()
		}
	}
}

// All signals every watcher.
func (h *Hub) All() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, all := range h.watchers {
		for w := range all {
			w.signal()
		}
	}
}

// signal makes the watcher read the document.
func (w *watcher) signal() {
	w.unknown = true
	w.wake()
}

// bring passes a newer state to the watcher.
func (w *watcher) bring(d *store.Doc) {
	if w.written == nil || d.Version.After(w.written.Version) {
		w.written = d
	}
	w.wake()
}

func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // one signal is waiting
	}
}

// take returns the state that the last signals have brought, if it is certainly the newest: the watcher has delivered a
// state before, and only this process has changed the document.
func (h *Hub) take(w *watcher) (d store.Doc, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known = w.written != nil && !w.unknown && !w.version.IsZero(); known {
		d = *w.written
	}
	w.written, w.unknown = nil, false
	return d, known
}

func (h *Hub) join(path string) *watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers == nil {
		h.watchers = map[string]map[*watcher]bool{}
	}
	if h.watchers[path] == nil {
		h.watchers[path] = map[*watcher]bool{}
	}
	w := &watcher{changed: make(chan struct{}, 1)}
	h.watchers[path][w] = true
	return w
}

func (h *Hub) leave(path string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers[path], w)
	if len(h.watchers[path]) == 0 {
		delete(h.watchers, path)
	}
}

// news reports whether the version is new to the watcher, and records it as delivered. A state that a signal brought
// may be older than one that was read.
func (h *Hub) news(w *watcher, version time.Time, brought bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.served && w.version.Equal(version) || brought && version.Before(w.version) {
		return false
	}
	w.served, w.version = true, version
	return true
}
