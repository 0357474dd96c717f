package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// timed is a deployment whose clock, and the store's, a test advances.
type timed struct {
	*proved
	ahead   atomic.Int64
	forward func(time.Duration)
}

func (w *timed) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *timed) tick(d time.Duration) {
	w.forward(d)
	w.ahead.Add(int64(d))
}

// onTimedStores runs a test on a deployment over each store.
func onTimedStores(t *testing.T, test func(t *testing.T, open func(settings ...string) *timed)) {
	t.Run("embedded", func(t *testing.T) {
		test(t, func(settings ...string) *timed {
			w := &timed{forward: func(time.Duration) {}}
			w.open(t, nil, settings...)
			return w
		})
	})
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		test(t, func(settings ...string) *timed {
			w := &timed{}
			var shifted store.Store
			project := fmt.Sprintf("demo-limits-%d", time.Now().UnixNano())
			w.open(t, func(l *unit.Env) {
				shifted, w.forward = faulty.Shift(l.Store)
				l.Store = shifted
			}, append(settings, "STORE=firestore", "QUEUE=embedded", "GOOGLE_CLOUD_PROJECT="+project[:30])...)
			warm := document.UserPath("warm") // the emulator's first commit takes seconds
			if _, err := shifted.Commit(t.Context(), store.Create(warm, nil, []byte("{}"))); err != nil {
				t.Fatal(err)
			}
			w.App.API.Records = &records.Records{Store: shifted, Now: w.now, Files: w.App.API.Records.Files}
			w.App.API.Chat.Ledger = w.App.API.Records
			return w
		})
	})
}

func (w *timed) open(t *testing.T, change func(*unit.Env), settings ...string) {
	t.Helper()
	opts := []app.Option{app.WithClock(w.now)}
	if change != nil {
		opts = append(opts, app.WithEnv(change))
	}
	in := testkit.Open(t, testkit.Options{Settings: settings, App: opts})
	w.proved = &proved{in, t}
}

// signIn returns a token that outlasts the test's day.
func (w *timed) signIn(uid string) string {
	w.t.Helper()
	token, err := w.Issuer.Token(uid, testkit.Address(uid), testkit.Audience, 24*time.Hour)
	if err == nil {
		err = w.SignedIn(w.t.Context(), uid, token)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

func (w *timed) as(uid, path, body string, header ...string) testkit.Answer {
	w.t.Helper()
	a, err := testkit.Connect(nil, w.Base, w.signIn(uid))(w.t.Context(), "POST", path, body, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

const (
	runPath, streamPath, chatPath = "/api/agent/run", "/api/agent/run/stream", "/api/agent/chat"

	hello     = `{"prompt":"hi"}`
	helloPage = `{"message":"hi"}`
)

// refused expects a 429 with the code, and returns its Retry-After.
func (w *timed) refused(a testkit.Answer, code string) time.Duration {
	w.t.Helper()
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if a.HTTP != http.StatusTooManyRequests || a.Error.Class != "PolicyError" || a.Error.Code != code ||
		err != nil || after < 1 {
		w.t.Fatalf("%d %s, Retry-After %q", a.HTTP, a.Body, a.Header.Get("Retry-After"))
	}
	return time.Duration(after) * time.Second
}

func (w *timed) done(a testkit.Answer) {
	w.t.Helper()
	if a.HTTP != http.StatusOK {
		w.t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
}

func TestRunsWithinAMinute(t *testing.T) {
	onTimedStores(t, func(t *testing.T, open func(...string) *timed) {
		w := open("MAX_RUNS_PER_MINUTE=5")
		first := w.as("ana", runPath, hello, "Idempotency-Key", "one")
		w.done(first)
		w.tick(20 * time.Second)
		for range 3 {
			w.done(w.as("ana", runPath, hello))
		}
		w.done(w.as("ana", chatPath, helloPage))
		w.refused(w.as("ana", runPath, hello), "too_many")
		w.refused(w.as("ana", streamPath, hello), "too_many")
		w.refused(w.as("ana", chatPath, helloPage), "too_many")
		if again := w.as("ana", runPath, hello, "Idempotency-Key", "one"); again.HTTP != http.StatusOK ||
			again.RunID != first.RunID {
			t.Errorf("the same request again: %d %s", again.HTTP, again.Body)
		}
		w.done(w.as("bob", runPath, hello))
		after := w.refused(w.as("ana", runPath, hello, "Idempotency-Key", "two"), "too_many")
		if after > 40*time.Second {
			t.Errorf("to come back after %s, though the first began 20 s ago", after)
		}
		w.tick(after)
		w.done(w.as("ana", runPath, hello, "Idempotency-Key", "two"))
		w.refused(w.as("ana", runPath, hello), "too_many")
		w.tick(time.Minute)
		for range 5 {
			w.done(w.as("ana", runPath, hello))
		}
		w.refused(w.as("ana", runPath, hello), "too_many")
	})
}

func TestLimitsUnderRace(t *testing.T) {
	onTimedStores(t, func(t *testing.T, open func(...string) *timed) {
		for _, path := range []string{runPath, chatPath} {
			for _, setting := range []string{"MAX_RUNS_PER_MINUTE=3", "MAX_MODEL_CALLS_PER_DAY=3"} {
				w := open(setting)
				body := hello
				if path == chatPath {
					body = helloPage
				}
				var passed atomic.Int32
				var all sync.WaitGroup
				for range 6 {
					all.Go(func() {
						if a := w.as("ana", path, body); a.HTTP == http.StatusOK {
							passed.Add(1)
						} else if a.HTTP != http.StatusTooManyRequests {
							t.Errorf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusTooManyRequests)
						}
					})
				}
				all.Wait()
				if passed.Load() != 3 {
					t.Errorf("%s with %s: %d of 6 at once passed", path, setting, passed.Load())
				}
			}
		}
	})
}

func TestLimitModelCallsPerDay(t *testing.T) {
	onTimedStores(t, func(t *testing.T, open func(...string) *timed) {
		w := open("MAX_MODEL_CALLS_PER_DAY=3")
		w.mail()
		r := w.ask() // the first call
		w.SetModel(testkit.Says("Hello."))
		w.done(w.as("ana", runPath, hello))
		w.done(w.as("ana", chatPath, helloPage))
		for path, body := range map[string]string{runPath: hello, streamPath: hello, chatPath: helloPage} {
			if after := w.refused(w.as("ana", path, body), "budget"); after > 24*time.Hour {
				t.Errorf("to come back after %s", after)
			}
		}
		w.done(w.as("bob", runPath, hello))
		// The approved call runs. Then the model can no longer be called.
		got := w.approve(r)
		if got.Status != "failed" || got.ErrorReason != "budget" || len(w.EffectsOf("ana")) != 1 ||
			!strings.Contains(got.Summary, "bob@example.com") {
			t.Errorf("%s, with %d e-mails", got.Body, len(w.EffectsOf("ana")))
		}
		w.tick(w.refused(w.as("ana", runPath, hello), "budget"))
		w.done(w.as("ana", runPath, hello))
		w.done(w.as("ana", chatPath, helloPage))
	})
}

func TestLimitTokensPerDay(t *testing.T) {
	onTimedStores(t, func(t *testing.T, open func(...string) *timed) {
		costs := func(total int) fakegemini.ModelFunc {
			return func(fakegemini.Request) fakegemini.Turn {
				return fakegemini.Turn{Text: "Hello.", Usage: &fakegemini.Usage{PromptTokenCount: total - 1,
					CandidatesTokenCount: 1, TotalTokenCount: total}}
			}
		}
		silent := func(fakegemini.Request) fakegemini.Turn {
			return fakegemini.Turn{Text: strings.Repeat("Hello. ", 300), Usage: &fakegemini.Usage{}}
		}
		for _, how := range []struct{ path, body string }{{runPath, hello}, {streamPath, hello},
			{chatPath, helloPage}} {
			w := open("MAX_TOKENS_PER_DAY=1000")
			ask := func() testkit.Answer {
				if how.path != streamPath {
					return w.as("ana", how.path, how.body)
				}
				return w.stream("ana", how.body)
			}
			w.SetModel(costs(400))
			for range 3 { // 400, 800, 1200
				w.done(ask())
			}
			w.refused(ask(), "budget")
			w.done(w.as("bob", runPath, hello))
			w.tick(w.refused(ask(), "budget"))
			w.SetModel(silent)
			for n := 0; ; n++ { // about 2,100 bytes for each answer, and some for the question
				if a := ask(); a.HTTP == http.StatusTooManyRequests && n >= 1 {
					break
				} else if a.HTTP != http.StatusOK || n > 2 {
					t.Fatalf("%s: after %d answers of 2,100 bytes that the service did not count: %d %s", how.path, n,
						a.HTTP,
						a.Body)
				}
			}
		}
	})
}

// stream requests a stream, and returns its last line.
func (w *timed) stream(uid, body string) testkit.Answer {
	w.t.Helper()
	a := w.as(uid, streamPath, body)
	lines := bytes.Split(bytes.TrimSpace(a.Body), []byte("\n"))
	a.Body = lines[len(lines)-1]
	return a
}

// A user's own call of an action with an effect is a run. A call that only reads is not limited here.
func TestCalledActionsWithinAMinute(t *testing.T) {
	w := withActions(t, newEndpoint(t), "MAX_RUNS_PER_MINUTE=2", "MAX_MODEL_CALLS_PER_DAY=1")
	for range 2 {
		if a, _ := w.act("cart.add", `{"id":"mug"}`); a.HTTP != http.StatusOK {
			t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
		}
	}
	if a, _ := w.act("cart.add", `{"id":"mug"}`); a.HTTP != http.StatusTooManyRequests ||
		a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.HTTP, a.Body)
	}
	for range 5 {
		if a, _ := w.act("look", `{"id":"mug"}`); a.HTTP != http.StatusOK {
			t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
		}
	}
}

// An always-allowed recipient gets at most 20 e-mails a day without an approval. After that, approval is required until
// the next day.
func TestLimitAlwaysAllowedPerDay(t *testing.T) {
	onTimedStores(t, func(t *testing.T, open func(...string) *timed) {
		w := open("MAX_RUNS_PER_MINUTE=0")
		w.mail()
		sends := func() testkit.Answer {
			w.t.Helper()
			a := w.as("ana", runPath, hello)
			w.done(a)
			return a
		}
		always := func(a testkit.Answer) {
			w.t.Helper()
			got, err := testkit.Connect(nil, w.Base, w.signIn("ana")).Resolve(t.Context(), a.Approvals[0],
				"approve_and_always_allow_recipient")
			if err != nil || got.HTTP != http.StatusOK {
				t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
			}
			w.deliver()
		}
		always(sends())
		for n := range 20 {
			if a := sends(); a.Status != "completed" {
				t.Fatalf("mail %d after the first: %s", n+1, a.Body)
			}
		}
		a := sends()
		if a.Status != "awaiting_confirmation" || !strings.Contains(string(a.Body), "20 times today") {
			t.Fatalf("the 21st: %s", a.Body)
		}
		always(a) // always allowing it again does not raise the daily limit
		if a := sends(); a.Status != "awaiting_confirmation" {
			t.Fatalf("after another always: %s", a.Body)
		}
		if n := len(w.EffectsOf("ana")); n != 22 {
			t.Errorf("%d e-mails were sent, want 22", n)
		}
		w.tick(24 * time.Hour / 2)
		w.tick(24*time.Hour/2 - time.Minute) // the tokens are valid for a day
		if a := sends(); a.Status != "completed" {
			t.Errorf("the next day: %s", a.Body)
		}
	})
}
