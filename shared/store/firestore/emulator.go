package firestore

import (
	"context"
	"iter"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// silence is how long the emulator's listener may be silent before the document is read.
const silence = 5 * time.Second

// watchEmulator watches a document of the emulator. The emulator sometimes loses a change that is committed while a
// listener begins, and then sends every later listener the earlier state until the next change. The Firestore service
// does not.
func (s *Store) watchEmulator(ctx context.Context, path string) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		states := s.states(ctx, path)
		defer func() {
			cancel()
			for range states {
			}
		}()
		var last *store.Doc // version and read time of the last delivered state
		for {
			var d store.Doc
			select {
			case st, more := <-states:
				if !more {
					return
				}
				if st.err != nil {
					yield(st.doc, st.err)
					return
				}
				d = st.doc
			case <-time.After(silence):
				docs, err := s.Get(ctx, path)
				if err != nil {
					continue // the listener reports lasting errors
				}
				d = docs[0]
			}
			if last != nil && known(*last, d) {
				continue
			}
			last = &store.Doc{Version: d.Version, ReadTime: d.ReadTime}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// known reports whether d is the last delivered state or an earlier one.
func known(last, d store.Doc) bool {
	return d.Version.Equal(last.Version) || d.ReadTime.Before(last.ReadTime) ||
		d.Exists() && d.Version.Before(last.ReadTime)
}

// told is one result of a watch: a state or an error.
type told struct {
	doc store.Doc
	err error
}

// states watches the document until ctx ends. It closes the channel when nothing more comes.
func (s *Store) states(ctx context.Context, path string) <-chan told {
	states := make(chan told)
	go func() {
		defer close(states)
		for d, err := range s.watch(ctx, path) {
			states <- told{d, err}
		}
	}()
	return states
}
