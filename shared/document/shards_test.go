package document_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
)

// distant is a store whose every query takes a while, and one of which fails.
type distant struct {
	store.Store
	fails            int64 // the shard; -1: none
	reading, highest atomic.Int64
}

var errDistant = errors.New("down")

func (d *distant) Query(ctx context.Context, q store.Query) ([]store.Doc, error) {
	n := d.reading.Add(1)
	defer d.reading.Add(-1)
	for most := d.highest.Load(); n > most && !d.highest.CompareAndSwap(most, n); most = d.highest.Load() {
	}
	shard := q.Where[0].Value.(int64)
	select {
	case <-time.After(time.Duration(10+shard%3) * time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if shard == d.fails {
		return nil, errDistant
	}
	return []store.Doc{{Path: fmt.Sprintf("runs/%d", shard)}}, nil
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
				st, began, pages := &distant{fails: c.fails}, time.Now(), int64(0)
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
				if took := time.Since(began); pages != c.pages || took > c.atMost || st.highest.Load() > 16 {
					t.Errorf("%d pages in %v, up to %d at once", pages, took, st.highest.Load())
				}
				if n := st.reading.Load(); n != 0 {
					t.Errorf("%d readings are under way after the end", n)
				}
			})
		})
	}
}
