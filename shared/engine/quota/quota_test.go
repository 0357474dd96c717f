package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// instance is a budget with the writes that it makes, by the second.
type instance struct {
	*quota.Budget
	writes map[int64]int
	total  int
}

// newInstance returns an instance whose clock is off by skew.
func newInstance(st store.Store, limits quota.Limits, skew time.Duration) *instance {
	i := &instance{writes: map[int64]int{}}
	counted := faulty.Wrap(st, faulty.Commits(faulty.After(func(*faulty.Call) {
		i.writes[time.Now().Unix()]++
		i.total++
	})))
	i.Budget = quota.New(quota.Config{Store: counted, Limits: limits,
		Now: func() time.Time { return time.Now().Add(skew) }})
	return i
}

func usedUp(err error) bool {
	return errors.Is(err, quota.ErrUsedUp) && fault.Is(err, fault.Model, model.CodeQuota) &&
		fault.As(err).RetryAfter > 0
}

// inBubble runs a test at the beginning of a minute of a clock that only waits move.
func inBubble(t *testing.T, test func(t *testing.T, st store.Store)) {
	synctest.Test(t, func(t *testing.T) { test(t, memory.New(time.Now)) })
}

func TestBudgetWithoutLimits(t *testing.T) {
	b := quota.New(quota.Config{})
	if err := b.Take(t.Context(), quota.Call{UID: "ana", Tokens: 1 << 40}); b != nil || err != nil {
		t.Errorf("without limits: %v, %v", b, err)
	}
}

// TestBudgetOfAllInstances lets instances whose clocks differ ask as often as they can for five minutes. Together they
// have the quota of each minute, and each writes at most once a second.
func TestBudgetOfAllInstances(t *testing.T) {
	inBubble(t, func(t *testing.T, st store.Store) {
		const requests = 600
		skews := []time.Duration{0, 9 * time.Second, -9 * time.Second, 0, time.Second}
		var granted [5]atomic.Int64
		began := time.Now()
		var instances []*instance
		done := make(chan struct{})
		for n, skew := range skews {
			i := newInstance(st, quota.Limits{Requests: requests}, skew)
			instances = append(instances, i)
			go func() {
				defer func() { done <- struct{}{} }()
				for asked := 0; time.Since(began) < 5*time.Minute; asked++ {
					err := i.Take(t.Context(), quota.Call{Model: "m", UID: fmt.Sprint(n, asked%7)})
					switch minute := int(time.Since(began) / time.Minute); {
					case err == nil && minute < len(granted):
						granted[minute].Add(1)
					case err != nil && !usedUp(err):
						t.Errorf("%v", err)
					}
					time.Sleep(50 * time.Millisecond)
				}
			}()
		}
		for range skews {
			<-done
		}
		for minute := range granted {
			if n := granted[minute].Load(); n < requests*9/10 || n > requests {
				t.Errorf("minute %d had %d calls", minute, n)
			}
		}
		for n, i := range instances {
			for second, writes := range i.writes {
				if writes > 1 {
					t.Errorf("instance %d wrote %d times in second %d", n, writes, second)
				}
			}
		}
	})
}

// TestBudgetRoundTrips counts the writes of an instance that is well below its quota.
func TestBudgetRoundTrips(t *testing.T) {
	inBubble(t, func(t *testing.T, st store.Store) {
		i := newInstance(st, quota.Limits{Requests: 10_000, Tokens: 100_000_000}, 0)
		for range 1000 { // in 100 seconds
			if err := i.Take(t.Context(), quota.Call{Model: "m", UID: "ana", Tokens: 5_000}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if i.total > 40 {
			t.Errorf("1000 calls made %d writes", i.total)
		}
	})
}

// TestTokens checks that large requests use up the tokens of a minute, that one which is larger than the quota has a
// minute of its own, and that models do not share their quotas.
func TestTokens(t *testing.T) {
	inBubble(t, func(t *testing.T, st store.Store) {
		b := quota.New(quota.Config{Store: st, Limits: quota.Limits{Requests: 1000, Tokens: 10_000}})
		take := func(name string, tokens int) error {
			return b.Take(t.Context(), quota.Call{Model: name, UID: "ana", Tokens: tokens})
		}
		for range 3 {
			if err := take("m", 3_000); err != nil {
				t.Fatal(err)
			}
		}
		if err := take("m", 3_000); !usedUp(err) {
			t.Errorf("the fourth: %v", err)
		}
		if err := take("publishers/google/models/other", 1_000_000); err != nil {
			t.Errorf("another model: %v", err)
		}
		if err := take("publishers/google/models/other", 1); !usedUp(err) {
			t.Errorf("after a large one: %v", err)
		}
	})
}

// TestBudgetShortWait checks that a call which comes just before the next minute waits in its process.
func TestBudgetShortWait(t *testing.T) {
	inBubble(t, func(t *testing.T, st store.Store) {
		b := quota.New(quota.Config{Store: st, Limits: quota.Limits{Requests: 1}})
		call := quota.Call{Model: "m", UID: "ana", Holds: true, Books: true}
		if err := b.Take(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		time.Sleep(55 * time.Second)
		if err := b.Take(t.Context(), call); err != nil || time.Now().Second() > 1 {
			t.Errorf("%v at %v", err, time.Now())
		}
		time.Sleep(55 * time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Take(short, call); !usedUp(err) {
			t.Errorf("without time to wait: %v", err)
		}
	})
}

// TestBudgetAfterCrash drops an instance with its slice: the others have the rest of the minute, and all of the next.
func TestBudgetAfterCrash(t *testing.T) {
	inBubble(t, func(t *testing.T, st store.Store) {
		const requests = 1000
		i := newInstance(st, quota.Limits{Requests: requests}, 0)
		for range 200 {
			if err := i.Take(t.Context(), quota.Call{Model: "m", UID: "ana"}); err != nil {
				t.Fatal(err)
			}
		}
		other := quota.New(quota.Config{Store: st, Limits: quota.Limits{Requests: requests}})
		count := func() (n int) {
			for minute := time.Now().Minute(); ; n++ {
				err := other.Take(t.Context(), quota.Call{Model: "m", UID: "bo"})
				if err != nil || time.Now().Minute() != minute {
					return n
				}
			}
		}
		if n := count(); n < requests-200-requests/10 || n > requests-200 {
			t.Errorf("%d calls are left in the minute of the crash", n)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		if n := count(); n < requests*9/10 || n > requests {
			t.Errorf("%d calls in the next minute", n)
		}
	})
}

// TestCallersGone ends the contexts of callers that wait for the next write. The others get their answers.
func TestCallersGone(t *testing.T) {
	inBubble(t, func(t *testing.T, st store.Store) {
		b := quota.New(quota.Config{Store: st, Limits: quota.Limits{Requests: 10}})
		if err := b.Take(t.Context(), quota.Call{Model: "m", UID: "ana"}); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		left, got := make(chan error, 5), make(chan error, 5)
		for range 5 {
			go func() { left <- b.Take(gone, quota.Call{Model: "m", UID: "ana"}) }()
			synctest.Wait()
			go func() { got <- b.Take(t.Context(), quota.Call{Model: "m", UID: "bo"}) }()
			synctest.Wait()
		}
		cancel()
		for range 5 {
			if err := <-left; !fault.Is(err, fault.Model, model.CodeCancelled) {
				t.Errorf("a caller that left: %v", err)
			}
			if err := <-got; err != nil {
				t.Errorf("a caller that stayed: %v", err)
			}
		}
		for range 4 { // those that left have used nothing
			if err := b.Take(t.Context(), quota.Call{Model: "m", UID: "bo"}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestBudgetWithoutDocument checks that calls are made if the store is down, if other instances' writes always come
// first, and if a later release has written the document, which stays as it is.
func TestBudgetWithoutDocument(t *testing.T) {
	for name, hook := range map[string]faulty.Hook{
		"reads":     faulty.Gets(faulty.Fail(store.ErrUnavailable)),
		"writes":    faulty.Commits(faulty.Fail(store.ErrUnavailable)),
		"conflicts": faulty.Commits(faulty.Fail(store.ErrConflict)),
		"later":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, st store.Store) {
				const later = `{"format":1,"minute":1,"taken":0,"regions":["eu"]}`
				path := document.QuotaPath("m")
				faults := st
				if hook != nil {
					faults = faulty.Wrap(st, hook)
				} else if _, err := st.Commit(t.Context(), store.Create(path, nil, []byte(later))); err != nil {
					t.Fatal(err)
				}
				b := quota.New(quota.Config{Store: faults, Limits: quota.Limits{Requests: 1}})
				for range 3 {
					if err := b.Take(t.Context(), quota.Call{Model: "m", UID: "ana"}); err != nil {
						t.Error(err)
					}
				}
				if docs, err := st.Get(t.Context(), path); err != nil || hook == nil && string(docs[0].Data) != later {
					t.Errorf("%v: %s", err, docs[0].Data)
				}
			})
		})
	}
}
