// Package watch tells those who watch documents of a store within one process that a document changed: what
// store/memory and store/embedded have in common.
package watch

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The pauses before a document is read again after [store.ErrUnavailable].
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// Get reads documents, as [store.Store] does.
type Get func(ctx context.Context, paths ...string) ([]store.Doc, error)

// Hub knows who watches which document. The zero value has no watchers.
type Hub struct {
	mu       sync.Mutex
	watchers map[string]map[*watcher]bool // by path
}

// watcher is one reader of one document.
type watcher struct {
	changed chan struct{} // holds one signal: the document may differ from what was delivered
	version time.Time     // what was delivered, under the hub's lock
	served  bool          // something was delivered
}

// Watch implements the method of [store.Store]: it reads the document when it begins, and again after each signal. It
// has no goroutine of its own.
func (h *Hub) Watch(ctx context.Context, path string, get Get) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		w := h.join(path)
		defer h.leave(path, w)
		for {
			d, err := patient(ctx, path, get)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(store.Doc{}, err)
				return
			}
			if h.news(w, d.Version) && !yield(d, nil) {
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

// patient reads the document, and waits for a store that is not available.
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

// Committed signals the watchers of the documents that were written.
func (h *Hub) Committed(writes []store.Write) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) == 0 {
		return
	}
	for _, w := range writes {
		for one := range h.watchers[w.Doc.Path] {
			one.signal()
		}
	}
}

// Paths returns the documents that are watched.
func (h *Hub) Paths() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	paths := make([]string, 0, len(h.watchers))
	for p := range h.watchers {
		paths = append(paths, p)
	}
	return paths
}

// Found signals the watchers of the document that have another version of it than the one that the store has now, which
// is zero if the document does not exist.
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

func (w *watcher) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // one signal is waiting, and the document is read after it
	}
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

// news reports whether the version was not delivered yet, and notes that it is.
func (h *Hub) news(w *watcher, version time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.served && w.version.Equal(version) {
		return false
	}
	w.served, w.version = true, version
	return true
}
