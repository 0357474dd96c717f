package loop_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// scarce sets a quota that all processes share, and gives the model many answers.
func (w *env) scarce(requests int) {
	w.patience, w.quota = time.Hour, quota.Limits{Requests: requests}
	w.loop = w.process()
	for range 100 {
		w.model.Then(script.Turn{Text: "Done."})
	}
}

func (w *env) greets(t *testing.T, uid string) *run.View {
	t.Helper()
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: uid}, loop.Prompt{Text: "Hi."})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestQuotaWait checks that a run waits without a process when the shared quota is used up, says until when, and is
// answered in that minute. Meanwhile the model is not asked.
func TestQuotaWait(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.scarce(3)
		var waits *run.View
		for n := 0; waits == nil; n++ {
			if n > 20 {
				t.Fatal("no run waits")
			}
			if v := w.greets(t, "ana"); v.Status != run.Completed {
				waits = v
			}
		}
		asked := len(w.model.Requests())
		v, r := w.see(t, waits.RunID)
		// Firestore's minutes continue while the test's clock stands still, so the turn can be more than a minute away.
		wait := v.ResumesAt.Sub(w.clock())
		if v.Status != run.Planning || v.ResumesAt.IsZero() || wait > 3*time.Minute ||
			r.Lease.Owner != "" || !strings.Contains(v.Summary, "will try again") {
			t.Fatalf("%s until %s, held by %q: %s", v.Status, v.ResumesAt, r.Lease.Owner, v.Summary)
		}
		w.tick(max(wait, 0) + 3*time.Second)
		if due := w.sweepsAnew(t); due != 1 {
			t.Fatalf("%d runs are due", due)
		}
		if v, _ = w.see(t, v.RunID); v.Status != run.Completed || len(w.model.Requests()) != asked+1 {
			t.Errorf("%s after %d more requests: %s", v.Status, len(w.model.Requests())-asked, v.Message)
		}
	})
}

// TestQuotaBetweenUsers lets one user's runs wait for hours of quota. Another user's run is answered in the next
// minute.
func TestQuotaBetweenUsers(t *testing.T) {
	w := newEnv(t)
	w.scarce(10)
	for range 100 {
		w.greets(t, "ana")
	}
	v := w.greets(t, "bo")
	if wait := v.ResumesAt.Sub(w.clock()); wait <= 0 || wait > time.Minute {
		t.Fatalf("it is %s until %s, at %s", v.Status, v.ResumesAt, w.clock())
	}
	w.tick(v.ResumesAt.Sub(w.clock()) + 3*time.Second)
	w.sweepsAnew(t)
	got, _, err := w.loop.Get(t.Context(), "bo", v.RunID)
	if err != nil || got.Status != run.Completed {
		t.Errorf("%v: %+v; want got.Status %v", err, got, run.Completed)
	}
}

// TestQuotaOfThousandRuns starts a thousand runs of fifty users at once, with a quota of 100 requests a minute. All are
// completed, none fails, and each minute has no more than its quota. The wait of the 990th is as computed: 100 in the
// first minute, and 90 in each later one.
func TestQuotaOfThousandRuns(t *testing.T) {
	w := newEnv(t)
	w.patience, w.quota = time.Hour, quota.Limits{Requests: 100}
	w.loop = w.process()
	const runs, users = 1000, 50
	for range runs {
		w.model.Then(script.Turn{Text: "Done."})
	}
	ids := make([]string, runs)
	for i := range ids {
		ids[i] = w.greets(t, fmt.Sprint("user-", i%users)).RunID
	}
	done := map[string]int{} // the minute in which each run was completed
	asked := 0
	for minute := 0; len(done) < runs; minute++ {
		if minute > 20 {
			t.Fatalf("%d of %d runs are completed after %d minutes", len(done), runs, minute)
		}
		for i, id := range ids {
			if _, ended := done[id]; ended {
				continue
			}
			v, _, err := w.loop.Get(t.Context(), fmt.Sprint("user-", i%users), id)
			switch {
			case err != nil || v.Status == run.Failed:
				t.Fatalf("run %d is %+v, %v; want it to wait", i, v, err)
			case v.Status == run.Completed:
				done[id] = minute
			}
		}
		if n := len(w.model.Requests()) - asked; n > 100 {
			t.Errorf("%d requests in minute %d; want at most 100", n, minute)
		}
		asked = len(w.model.Requests())
		w.tick(time.Minute)
		w.sweepsAnew(t)
	}
	waits := slices.Sorted(maps.Values(done))
	if p99, want := waits[runs*99/100], (runs*99/100-100)/90+1; p99 > want {
		t.Errorf("99 of 100 runs waited up to %d minutes; want %d", p99, want)
	}
}

// TestQuotaWithoutPatience checks that a run whose program does not wait fails with the model's error at once, and that
// one which would wait for more than an hour does.
func TestQuotaWithoutPatience(t *testing.T) {
	w := newEnv(t)
	w.scarce(1)
	w.loop.ModelPatience = 0
	w.greets(t, "ana")
	if v := w.greets(t, "ana"); v.Status != run.Failed || !strings.Contains(v.Message, "quota") {
		t.Errorf("%s: %s; want v.Status %v, v.Message with “quota”", v.Status, v.Message, run.Failed)
	}
	w.loop.ModelPatience = 2 * time.Minute
	for n := range 4 {
		if v := w.greets(t, "bo"); (v.Status == run.Failed) != (n > 1) {
			t.Errorf("run %d is %s until %s", n, v.Status, v.ResumesAt)
		}
	}
}

// TestQuotaOfSeveralProcesses lets processes ask at the same time on each store. Together they have no more than the
// quota of the minutes that it took, and the document has no user's ID.
func TestQuotaOfSeveralProcesses(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		const processes, calls, requests = 3, 20, 25
		minute := func() int64 {
			docs, err := w.store.Get(t.Context(), document.QuotaPath("m"))
			if err != nil {
				t.Fatal(err)
			}
			return docs[0].ReadTime.Unix() / 60
		}
		from := minute()
		var granted atomic.Int64
		done := make(chan struct{})
		for range processes {
			b := quota.New(quota.Config{Store: w.store, Limits: quota.Limits{Requests: requests}, Sleep: noWait})
			for n := range calls {
				go func() {
					defer func() { done <- struct{}{} }()
					err := b.Take(t.Context(), quota.Call{Model: "m", UID: fmt.Sprint("user-", n%4), Books: true})
					switch {
					case err == nil:
						granted.Add(1)
					case fault.As(err).RetryAfter <= 0:
						t.Error(err)
					}
				}()
			}
		}
		for range processes * calls {
			<-done
		}
		n, minutes := granted.Load(), minute()-from+1
		if n < requests*9/10-5 || n > requests*minutes {
			t.Errorf("%d calls in %d minutes", n, minutes)
		}
		docs, err := w.store.Get(t.Context(), document.QuotaPath("m"))
		if err != nil || !json.Valid(docs[0].Data) || strings.Contains(string(docs[0].Data), "user") {
			t.Errorf("%v: %s", err, docs[0].Data)
		}
	})
}
