package webhook_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/notify/webhook"
)

// told records the notifications sent to two endpoints: crm, and pager, which can be down or hang.
type told struct {
	mu     sync.Mutex
	sent   []string
	down   bool
	hang   bool
	asks   string // Retry-After of an endpoint that is down
	failed []webhook.Failure
}

func (w *told) RoundTrip(r *http.Request) (*http.Response, error) {
	name := strings.TrimSuffix(r.URL.Host, ".example")
	w.mu.Lock()
	w.sent = append(w.sent, name+" "+r.Header.Get("Webhook-Id"))
	down, hang, header := w.down && name == "pager", w.hang && name == "pager", http.Header{"Retry-After": {w.asks}}
	w.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	status := http.StatusNoContent
	if down {
		status = http.StatusServiceUnavailable
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r}, nil
}

// took returns the notifications sent since its last call, in order for each endpoint.
func (w *told) took() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	slices.SortStableFunc(sent, func(a, b string) int { return strings.Compare(a[:3], b[:3]) })
	return strings.Join(sent, ", ")
}

func (w *told) set(down, hang bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down, w.hang = down, hang
}

func newDirect(t *testing.T) (*webhook.Direct, *told) {
	t.Helper()
	hooks, err := webhook.Parse([]byte(`{"webhooks":[{"name":"crm","url":"https://crm.example"},`+
		`{"name":"pager","url":"https://pager.example","types":["run.countersign.approval.requested"]}]}`),
		[]byte(`{"crm":["`+key+`"],"pager":["`+key+`"]}`))
	if err != nil {
		t.Fatal(err)
	}
	w := &told{}
	client := outbound.Patient(&http.Client{Transport: w}, time.Now)
	d := webhook.NewDirect(hooks, "", webhook.Sender{Client: client, Now: time.Now},
		func(f webhook.Failure) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.failed = append(w.failed, f)
		})
	t.Cleanup(func() { _ = d.Close() }) // never fails
	return d, w
}

// news returns the run's first n notifications. Each is a request for an approval, except the last of three.
func news(run string, n int) (all []event.Event) {
	for i := 1; i <= n; i++ {
		t := event.ApprovalRequested
		if i == 3 {
			t = event.RunEnded
		}
		all = append(all, event.Event{ID: fmt.Sprintf("%s.%d", run, i), Type: t, Time: time.Now(),
			Data: event.Data{RunID: run}})
	}
	return all
}

// TestDirectToDownEndpoint checks that an endpoint that is down delays no other. It receives the missed notifications
// later, in order, and the other endpoint receives nothing twice.
func TestDirectToDownEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDirect(t)
		w.set(true, false)
		first := news("run1", 2)
		if err := d.Publish(t.Context(), first...); !errors.Is(err, event.ErrUnderWay) {
			t.Errorf("at first: %v", err)
		}
		if got := w.took(); got != "crm run1.1, crm run1.2, pager run1.1" {
			t.Errorf("told %s", got)
		}
		w.set(false, false)
		all := append(first, news("run1", 3)[2])
		if err := d.Publish(t.Context(), all...); !errors.Is(err, event.ErrUnderWay) {
			t.Errorf("while one has missed some: %v", err)
		}
		if got := w.took(); got != "crm run1.3, pager run1.1, pager run1.2" {
			t.Errorf("told %s", got)
		}
		if err := d.Publish(t.Context(), all...); err != nil || w.took() != "" {
			t.Errorf("in the end: %v", err)
		}
		if len(w.failed) != 1 || w.failed[0].Hook != "pager" || w.failed[0].NoticeID != "run1.1" ||
			w.failed[0].GivenUp {
			t.Errorf("failed %+v", w.failed)
		}
	})
}

// TestDirectToHangingEndpoint checks that a call returns at once while an endpoint hangs, and that the endpoint gets
// one request at a time about a run.
func TestDirectToHangingEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDirect(t)
		w.set(false, true)
		at := time.Now()
		for range 3 {
			if err := d.Publish(t.Context(), news("run1", 1)...); !errors.Is(err, event.ErrUnderWay) {
				t.Error(err)
			}
			synctest.Wait()
		}
		if took := time.Since(at); took != 0 {
			t.Errorf("it has waited %v", took)
		}
		if got := w.took(); got != "crm run1.1, pager run1.1" {
			t.Errorf("told %s", got)
		}
		if err := d.Close(); err != nil || len(w.failed) != 0 {
			t.Errorf("closed with %v, %+v", err, w.failed)
		}
	})
}

// TestDirectToBusyEndpoint checks that an endpoint that asked to wait gets nothing before that time, about any run, and
// everything after it. If the time is after the last attempt, the notification is given up at once.
func TestDirectToBusyEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDirect(t)
		w.set(true, false)
		w.asks = "1800"
		for i, run := range []string{"run1", "run1", "run2"} {
			if err := d.Publish(t.Context(), news(run, 1)...); !errors.Is(err, event.ErrUnderWay) {
				t.Errorf("while it is down: %v", err)
			}
			if got, want := w.took(), []string{"crm run1.1, pager run1.1", "", "crm run2.1"}[i]; got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		w.set(false, false)
		time.Sleep(30 * time.Minute)
		for _, run := range []string{"run1", "run2"} {
			_ = d.Publish(t.Context(), news(run, 1)...) // it is under way
			if got := w.took(); got != "pager "+run+".1" {
				t.Errorf("told after the wait: %s", got)
			}
		}
		w.set(true, false)
		w.asks = "999999"
		late := news("run3", 1)
		time.Sleep(time.Second)
		_ = d.Publish(t.Context(), late...)
		synctest.Wait()
		if last := w.failed[len(w.failed)-1]; last.NoticeID != "run3.1" || !last.GivenUp {
			t.Errorf("asked to wait for longer than a day: %+v", last)
		}
	})
}

// TestDirectLastAttempt checks that attempts end after a day.
func TestDirectLastAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, w := newDirect(t)
		w.set(true, false)
		all := news("run1", 2)
		tries := 0
		for ; d.Publish(t.Context(), all...) != nil; tries++ {
			if tries > 30 {
				t.Fatal("it never gives up")
			}
			synctest.Wait()
			time.Sleep(time.Hour)
		}
		synctest.Wait()
		last := w.failed[len(w.failed)-1]
		if tries < 25 || last.NoticeID != "run1.2" || !last.GivenUp || w.failed[0].GivenUp {
			t.Errorf("after %d tries: %+v", tries, last)
		}
	})
}
