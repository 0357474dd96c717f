package gemini_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// failing returns a server that sends the turns in order, and then an answer.
func failing(turns ...fakegemini.Turn) *fakegemini.Server {
	var n atomic.Int32
	return fakegemini.New(func(fakegemini.Request) fakegemini.Turn {
		if i := int(n.Add(1)) - 1; i < len(turns) {
			return turns[i]
		}
		return fakegemini.Turn{Text: "hi"}
	})
}

func status(code int, details string) fakegemini.Turn {
	return fakegemini.Turn{Status: code,
		Body: `{"error":{"code":1,"message":"secret words","status":"INVALID_ARGUMENT","details":[` + details + `]}}`}
}

const (
	retryIn3  = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}`
	retryIn1h = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3600s"}`
	overQuota = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]}`
	badKey    = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`
)

func header(name, value string) http.Header { return http.Header{name: {value}} }

func TestFailures(t *testing.T) {
	const half = 500 * time.Millisecond // the first wait, with the rig's jitter
	list := fakegemini.Turn{Status: 429,
		Body: `[{"error":{"code":429,"message":"secret words","status":"RESOURCE_EXHAUSTED"}}]`}
	for _, c := range []struct {
		name  string
		turns []fakegemini.Turn
		code  fault.Code // empty: the request succeeds
		slept []time.Duration
	}{
		{"503 once", []fakegemini.Turn{status(503, "")}, "", []time.Duration{half}},
		{"500 thrice", slices.Repeat([]fakegemini.Turn{status(500, "")}, 3), "",
			[]time.Duration{half, 2 * half, 4 * half}},
		{"503 for ever", slices.Repeat([]fakegemini.Turn{status(503, "")}, 4), model.CodeOverloaded,
			[]time.Duration{half, 2 * half, 4 * half}},
		{"429 with RetryInfo", []fakegemini.Turn{status(429, retryIn3)}, "", []time.Duration{3*time.Second + half}},
		{"429 with Retry-After", []fakegemini.Turn{{Status: 429, Header: header("Retry-After", "7")}}, "",
			[]time.Duration{7*time.Second + half}},
		{"429 with a date", []fakegemini.Turn{{Status: 429, Header: http.Header{
			"Date": {"Sat, 31 Oct 2026 23:00:00 GMT"}, "Retry-After": {"Sat, 31 Oct 2026 23:00:09 GMT"}}}}, "",
			[]time.Duration{9*time.Second + half}},
		{"429 as a list", slices.Repeat([]fakegemini.Turn{list}, 4), model.CodeOverloaded,
			[]time.Duration{half, 2 * half, 4 * half}},
		{"a long wait", []fakegemini.Turn{status(429, retryIn1h)}, model.CodeOverloaded, nil},
		{"a long Retry-After", []fakegemini.Turn{{Status: 429, Header: header("Retry-After", "99999999999")}},
			model.CodeOverloaded, nil},
		{"the quota, for long", []fakegemini.Turn{status(429, overQuota+","+retryIn1h)}, model.CodeQuota, nil},
		{"hung up", []fakegemini.Turn{{Hangup: true}}, "", []time.Duration{half}},
		{"400", []fakegemini.Turn{status(400, "")}, model.CodeRefused, nil},
		{"400 for the key", []fakegemini.Turn{status(400, badKey)}, model.CodeRefused, nil},
		{"401", []fakegemini.Turn{status(401, "")}, model.CodeRefused, nil},
		{"403", []fakegemini.Turn{status(403, "")}, model.CodeRefused, nil},
		{"404", []fakegemini.Turn{status(404, "")}, model.CodeRefused, nil},
		{"a page for an error", []fakegemini.Turn{{Status: 400, Body: "<html>secret words"}}, model.CodeRefused, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
				s := failing(c.turns...)
				r := newRig(t, s, func(cfg *gemini.Config) {
					cfg.Now = func() time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) }
				})
				reply, _, err := ask(r, context.Background(), model.Request{Contents: hello})
				if c.code == "" && (err != nil || reply.Text != "hi") {
					t.Fatalf("reply %+v, error %v", reply, err)
				}
				if c.code != "" && !fault.Is(err, fault.Model, c.code) {
					t.Fatalf("error %v, want %s", err, c.code)
				}
				if !slices.Equal(r.slept, c.slept) || len(s.Requests()) != len(c.slept)+1 {
					t.Fatalf("slept %v, want %v; %d requests", r.slept, c.slept, len(s.Requests()))
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if strings.Contains(e.Error(), "secret") {
						t.Fatalf("the error repeats the body: %v", e)
					}
				}
			})
		})
	}
}

func TestRetryBeyondDeadline(t *testing.T) {
	start := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), start.Add(3*time.Second))
	defer cancel()
	r := newRig(t, failing(status(429, retryIn3)), func(c *gemini.Config) { c.Now = func() time.Time { return start } })
	_, err := r.Generate(ctx, model.Request{Contents: hello}, nil)
	if !fault.Is(err, fault.Model, model.CodeOverloaded) || fault.As(err).RetryAfter < 3*time.Second || r.slept != nil {
		t.Fatalf("error %v after %v, slept %v", err, fault.As(err).RetryAfter, r.slept)
	}
}

func TestContextEnds(t *testing.T) {
	modes(t, func(t *testing.T, ask func(*rig, context.Context, model.Request) (*model.Reply, string, error)) {
		s := answering(fakegemini.Turn{Text: "late", Delay: 5 * time.Second})
		r := newRig(t, s, func(c *gemini.Config) { c.HTTPClient = &http.Client{Transport: inBubble{s}} })
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := ask(r, ctx, model.Request{Contents: hello})
			if !fault.Is(err, fault.Model, model.CodeDeadline) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("error %v", err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, _, err = ask(r, ctx, model.Request{Contents: hello})
			if !fault.Is(err, fault.Model, model.CodeCancelled) || !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v", err)
			}
		})
	})
}

func TestRetryOfSlowAttempt(t *testing.T) {
	s := failing(fakegemini.Turn{Text: "late", Delay: time.Hour})
	r := newRig(t, s, func(c *gemini.Config) { c.HTTPClient = &http.Client{Transport: inBubble{s}} })
	synctest.Test(t, func(t *testing.T) {
		reply, err := r.Generate(t.Context(), model.Request{Contents: hello}, nil)
		if err != nil || reply.Text != "hi" || len(s.Requests()) != 2 {
			t.Fatalf("reply %+v, error %v", reply, err)
		}
	})
}

// inBubble runs a server without a network, so that it uses the time of a synctest bubble.
type inBubble struct{ http.Handler }

func (s inBubble) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), r.Context().Err()
}

// TestRetryAfterText checks that a request is not retried after a part of its answer was shown. A second answer after
// half of a first one would make no sense.
func TestRetryAfterText(t *testing.T) {
	chunk := `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"half "}]}}]}` + "\n\n"
	for _, c := range []struct {
		name string
		turn fakegemini.Turn
		code fault.Code
	}{
		{"hung up", fakegemini.Turn{Text: "half of an answer", Hangup: true}, model.CodeOverloaded},
		{"an error without data:",
			fakegemini.Turn{Body: chunk + `{"error":{"code":503,"message":"secret","status":"UNAVAILABLE"}}`},
			model.CodeOverloaded},
		{"an error with data:", fakegemini.Turn{Body: chunk +
			`data: {"error":{"code":499,"message":"secret","status":"CANCELLED"}}` + "\n\n"}, model.CodeOverloaded},
		{"the end without a reason", fakegemini.Turn{Body: chunk}, model.CodeCut},
		{"a page", fakegemini.Turn{Body: chunk + "<html>secret"}, model.CodeOverloaded},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := failing(c.turn)
			var shown string
			_, err := newRig(t, s, nil).Generate(context.Background(), model.Request{Contents: hello},
				func(text string) { shown += text })
			if !fault.Is(err, fault.Model, c.code) || !strings.HasPrefix(shown, "half ") || len(s.Requests()) != 1 ||
				strings.Contains(err.Error(), "secret") {
				t.Fatalf("error %v, shown %q, %d requests", err, shown, len(s.Requests()))
			}
		})
	}
	t.Run("nothing was shown", func(t *testing.T) {
		s := failing(fakegemini.Turn{Body: `{"error":{"code":503,"message":"secret","status":"UNAVAILABLE"}}`})
		var shown string
		if _, err := newRig(t, s, nil).Generate(context.Background(), model.Request{Contents: hello},
			func(text string) { shown += text }); err != nil || shown != "hi" {
			t.Fatalf("error %v, shown %q", err, shown)
		}
	})
}

func TestUnreachable(t *testing.T) {
	r := newRig(t, answering(fakegemini.Turn{}), func(c *gemini.Config) { c.BaseURL = "http://127.0.0.1:1" })
	if _, err := r.Generate(context.Background(), model.Request{Contents: hello}, nil); !fault.Is(err, fault.Model,
		model.CodeOverloaded) || len(r.slept) != 3 {
		t.Fatalf("error %v, slept %v", err, r.slept)
	}
}

// TestRedirect checks that neither the key nor the conversation follows a redirect.
func TestRedirect(t *testing.T) {
	var paths []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.Path)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, err := newRig(t, h, nil).Generate(context.Background(), model.Request{Contents: hello}, nil)
	if !fault.Is(err, fault.Model, model.CodeRefused) || len(paths) != 1 {
		t.Fatalf("error %v, asked %v", err, paths)
	}
}

func TestPanicInDelta(t *testing.T) {
	defer func() {
		if recover() != "mine" {
			t.Fatal("the caller's panic was lost")
		}
	}()
	newRig(t, answering(fakegemini.Turn{Text: "hi"}), nil).Generate(context.Background(),
		model.Request{Contents: hello}, func(string) { panic("mine") })
}
