package app_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// TestPreferWait checks that a client that prefers to wait gets the end of its run in the answer to its approval,
// whichever process advances the run.
func TestPreferWait(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		w := deploy(t)
		w.waitsForEnd(w.Deployment)
	})
	t.Run("firestore", func(t *testing.T) {
		host := emulators.Firestore(t)
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		w := deploy(t, "STORE=firestore", "QUEUE=embedded", "FIRESTORE_EMULATOR_HOST="+host,
			"GOOGLE_CLOUD_PROJECT=demo-"+strings.ToLower(rand.Text()[:20]))
		w.waitsForEnd(w.Deployment)
	})
	t.Run("moved by another server on the same file", func(t *testing.T) {
		dir := t.TempDir()
		w := deployWith(t, testkit.Options{Dir: dir})
		other := &testkit.Deployment{Cloud: w.Cloud, Logs: &testkit.Log{}}
		if err := other.Start(t.Context(), testkit.Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := other.Stop(); err != nil {
				t.Error(err)
			}
		}()
		w.waitsForEnd(other)
	})
}

// waitsForEnd approves with one request that waits, while a server advances the run.
func (w *proved) waitsForEnd(moves *testkit.Deployment) {
	w.t.Helper()
	w.mail()
	r := w.ask()
	moved := make(chan error, 1)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	go func() {
		n, err := 0, error(nil)
		for n == 0 && err == nil && ctx.Err() == nil { // until the approval is stored
			n, err = moves.Deliver(ctx)
		}
		moved <- err
	}()
	w.App.API.Budget = time.Hour
	soon, tooLate := context.WithTimeout(w.t.Context(), await.Most)
	defer tooLate()
	a, err := w.Resolve(soon, "ana", r.Approvals[0], "approve_once", "Prefer", "wait=50")
	cancel()
	if err := errors.Join(err, <-moved); err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	if a.HTTP != http.StatusOK || a.Status != "completed" || a.Header.Get("Preference-Applied") != "wait=50" {
		w.t.Errorf("%d %s, applied %q", a.HTTP, a.Body, a.Header.Get("Preference-Applied"))
	}
	if sent := w.Effects(); len(sent) != 1 {
		w.t.Errorf("%d e-mails were sent", len(sent))
	}
}

// TestPreferAcrossOrigins checks that a page can send the preference, and read the applied one.
func TestPreferAcrossOrigins(t *testing.T) {
	w := deploy(t, "ALLOWED_ORIGINS=https://shop.example")
	a, err := w.Call(t.Context(), "ana", http.MethodOptions, "/api/agent/approvals/resolve", "",
		"Origin", "https://shop.example", "Access-Control-Request-Method", "POST")
	if err != nil || !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "Prefer,") ||
		!strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "Preference-Applied,") {
		t.Errorf("%v: %v; want a.Header.Get(\"Access-Control-Allow-Headers\") with “Prefer,”, "+
			"a.Header.Get(\"Access-Control-Expose-Headers\") with “Preference-Applied,”",
			err, a.Header)
	}
}

// TestStreamsOfOneUser checks over HTTP that one user's open streams leave room for others. Beyond a quarter of the
// instance's concurrency, a stream is refused, a wait is answered at once, and another user is served.
func TestStreamsOfOneUser(t *testing.T) {
	w := deploy(t, "FUNCTION_CONCURRENCY=8")
	w.mail()
	r := w.ask()
	path := "/api/agent/runs/" + r.RunID + "/events"
	var streams sync.WaitGroup
	defer streams.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		began := w.stream(ctx, &streams, "ana", path)
		if got := <-began; got.StatusCode != http.StatusOK {
			t.Fatalf("a stream within the quarter is answered %s", got.Status)
		}
	}
	for _, refused := range []struct{ method, path, body string }{
		{"GET", path, ""}, {"POST", "/api/agent/run/stream", `{"prompt":"hi"}`}} {
		a, err := w.Call(t.Context(), "ana", refused.method, refused.path, refused.body)
		if after, e := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || a.HTTP != http.StatusTooManyRequests ||
			a.Error.Code != "too_many" || e != nil || after < 1 {
			t.Errorf("a stream beyond it: %v %d %s, Retry-After %q", err, a.HTTP, a.Body, a.Header.Get("Retry-After"))
		}
	}
	a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_once", testkit.Wait...)
	if err != nil || a.HTTP != http.StatusOK || a.Status != "executing" || a.Header.Get("Preference-Applied") != "" {
		t.Errorf("a wait beyond it: %v %d %s", err, a.HTTP, a.Body)
	}
	if got, err := w.Call(t.Context(), "ben", "POST", "/api/agent/run/stream", `{"prompt":"hi"}`); err != nil ||
		got.HTTP != http.StatusOK {
		t.Errorf("another user: %v %d %s", err, got.HTTP, got.Body)
	}
	w.deliver() // the run ends, and its streams too
	streams.Wait()
	if a, err := w.Call(t.Context(), "ana", "GET", path, ""); err != nil || a.HTTP != http.StatusOK {
		t.Errorf("once they are closed: %v %d %s", err, a.HTTP, a.Body)
	}
}

// stream opens a stream that is read to its end, and sends its answer as soon as the first line has arrived.
func (w *proved) stream(ctx context.Context, open *sync.WaitGroup, uid, path string) <-chan *http.Response {
	w.t.Helper()
	token, err := w.SignIn(ctx, uid)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Base+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	began := make(chan *http.Response, 1)
	open.Go(func() {
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			began <- &http.Response{Status: fmt.Sprint(err)}
			return
		}
		defer res.Body.Close()
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			select {
			case began <- res:
			default: // already sent
			}
		}
	})
	return began
}
