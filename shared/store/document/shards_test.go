package document_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

var errDistant = errors.New("down")

// distant returns a store with slow queries. One of them fails. highest is the largest number of queries in progress at
// once, reading the present number.
func distant(fails int64) (st store.Store, highest, reading *atomic.Int64) {
	highest, reading = &atomic.Int64{}, &atomic.Int64{}
	return faulty.Wrap(memory.New(time.Now), func(ctx context.Context, call *faulty.Call, _ faulty.Next) error {
		n := reading.Add(1)
		defer reading.Add(-1)
		for most := highest.Load(); n > most && !highest.CompareAndSwap(most, n); most = highest.Load() {
		}
		shard := call.Query.Where[0].Value.(int64)
		select {
		case <-time.After(time.Duration(10+shard%3) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if shard == fails {
			return errDistant
		}
		call.Docs = []store.Doc{{Path: fmt.Sprintf("runs/%d", shard)}}
		return nil
	}), highest, reading
}

func TestFirstPages(t *testing.T) {
	of := func(shard int64) store.Query { return document.DueRuns(shard, at, 9) }
	for name, c := range map[string]struct {
		fails, leaves, pages int64
		atMost               time.Duration
	}{
		"all":                  {-1, -1, 64, 60 * time.Millisecond},
		"one fails":            {20, -1, 20, 30 * time.Millisecond},
		"the first one fails":  {0, -1, 0, 12 * time.Millisecond},
		"the caller has left":  {-1, 3, 4, 13 * time.Millisecond},
		"at the very last one": {63, -1, 63, 60 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, highest, reading := distant(c.fails)
				began, pages := time.Now(), int64(0)
				for docs, err := range document.FirstPages(t.Context(), st, of) {
					if err != nil {
						if !errors.Is(err, errDistant) || pages != c.fails {
							t.Errorf("%v after %d pages", err, pages)
						}
						continue
					}
					if docs[0].Path != fmt.Sprintf("runs/%d", pages) {
						t.Errorf("page %d is of %s", pages, docs[0].Path)
					}
					pages++
					if pages == c.leaves+1 {
						break
					}
				}
				if took := time.Since(began); pages != c.pages || took > c.atMost || highest.Load() > 16 {
					t.Errorf("%d pages in %v, up to %d at once", pages, took, highest.Load())
				}
				if n := reading.Load(); n != 0 {
					t.Errorf("%d readings are under way after the end", n)
				}
			})
		})
	}
}
