package document

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	json "github.com/go-json-experiment/json/v1" // encoding/json in every case, in half the time

	"github.com/countersign-run/countersign/shared/store"
)

// Decode unmarshals the document's JSON content into the value that into points to. The error contains the document's
// path and none of its content.
func Decode(d store.Doc, into any) error {
	if err := json.Unmarshal(d.Data, into); err != nil {
		return fmt.Errorf("document: %s cannot be read: %w", d.Path, err)
	}
	return nil
}

// onlyKnown refuses members that the value does not have.
var onlyKnown = jsonv2.JoinOptions(json.DefaultOptionsV1(), jsonv2.RejectUnknownMembers(true))

// DecodeKnown is [Decode], and also reports whether the content has members that the value does not know. A later
// release has written them.
func DecodeKnown(d store.Doc, into any) (more bool, err error) {
	if jsonv2.Unmarshal(d.Data, into, onlyKnown) == nil {
		return false, nil
	}
	err = Decode(d, into)
	return err == nil, err
}

// Get reads the document at the path and decodes it into a value. If the document does not exist, the value stays
// unchanged and the returned Doc reports so. The error is the store's or Decode's.
func Get(ctx context.Context, st store.Store, path string, into any) (store.Doc, error) {
	docs, err := st.Get(ctx, path)
	if err != nil {
		return store.Doc{}, err
	}
	if !docs[0].Exists() {
		return docs[0], nil
	}
	return docs[0], Decode(docs[0], into)
}

// With returns a context in which [Read] returns these documents without asking the store.
func With(ctx context.Context, docs ...store.Doc) context.Context {
	if len(docs) == 0 {
		return ctx
	}
	known := map[string]store.Doc{}
	for _, d := range docs {
		known[d.Path] = d
	}
	return context.WithValue(ctx, knownKey{}, known)
}

// Anew returns a context in which [Read] asks the store, even for documents that [With] has added.
func Anew(ctx context.Context) context.Context { return context.WithValue(ctx, knownKey{}, nil) }

type knownKey struct{}

// Read returns the document at the path. It returns the one that [With] has put into the context, if any, and otherwise
// asks the store.
func Read(ctx context.Context, st store.Store, path string) (store.Doc, error) {
	known, _ := ctx.Value(knownKey{}).(map[string]store.Doc)
	if d, ok := known[path]; ok {
		return d, nil
	}
	docs, err := st.Get(ctx, path)
	if err != nil {
		return store.Doc{}, err
	}
	return docs[0], nil
}

// Pages returns the pages of a query, starting after q.After. Each page has q.Limit documents, except the last, which
// has fewer and may be empty. After an error the sequence ends. The error is the store's, or reports that the store
// returned the same page twice.
func Pages(ctx context.Context, st store.Store, q store.Query) iter.Seq2[[]store.Doc, error] {
	return func(yield func([]store.Doc, error) bool) {
		for {
			docs, err := st.Query(ctx, q)
			if !yield(docs, err) || err != nil || len(docs) < q.Limit {
				return
			}
			next := After(q, docs[len(docs)-1])
			if q.After != nil && q.After.ID == next.ID {
				yield(nil, errSamePage)
				return
			}
			q.After = next
		}
	}
}

var errSamePage = errors.New("document: the store returns the same page again")

// All returns the documents of a query and reads them page by page. After an error of the store the sequence ends.
func All(ctx context.Context, st store.Store, q store.Query) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		for docs, err := range Pages(ctx, st, q) {
			if err != nil {
				yield(store.Doc{}, err)
				return
			}
			for _, d := range docs {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// sideBySide is the number of shards that are read concurrently.
const sideBySide = 16

// FirstPages returns the first page of each shard's query, in the order of the shards. It reads up to sideBySide shards
// ahead, so that a distant store does not delay each shard in turn. After an error of the store the sequence ends. No
// read is in progress once the sequence has ended.
func FirstPages(ctx context.Context, st store.Store, of func(shard int64) store.Query) iter.Seq2[[]store.Doc, error] {
	type page struct {
		docs []store.Doc
		err  error
	}
	return func(yield func([]store.Doc, error) bool) {
		var reading sync.WaitGroup
		defer reading.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var pages [Shards]chan page
		read := func(shard int) {
			q := of(int64(shard))
			pages[shard] = make(chan page, 1)
			reading.Go(func() {
				docs, err := st.Query(ctx, q)
				pages[shard] <- page{docs, err}
			})
		}
		for shard := range sideBySide {
			read(shard)
		}
		for shard := range pages {
			p := <-pages[shard]
			if next := shard + sideBySide; next < Shards && p.err == nil {
				read(next)
			}
			if !yield(p.docs, p.err) || p.err != nil {
				return
			}
		}
	}
}

// Waiting returns all runs that have not ended and are not quarantined, shard by shard. After an error of the store the
// sequence ends.
func Waiting(ctx context.Context, st store.Store, pageSize int) iter.Seq2[store.Doc, error] {
	return func(yield func(store.Doc, error) bool) {
		for shard := range int64(Shards) {
			for d, err := range All(ctx, st, WaitingRuns(shard, pageSize)) {
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// After returns the position of a document in the query's order. The next page begins after it.
func After(q store.Query, d store.Doc) *store.Cursor {
	return &store.Cursor{Value: d.Fields[q.OrderBy], ID: ID(d)}
}
