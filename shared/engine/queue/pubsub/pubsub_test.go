package pubsub_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

const run = "run_0123456789abcdef"

func TestPublishedResume(t *testing.T) {
	srv := pstest.NewServer()
	defer srv.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", srv.Addr)
	if err := pubsub.Emulate(t.Context(), "demo", "resume", "http://127.0.0.1:1/"); err != nil {
		t.Fatal(err)
	}
	q := open(t, "resume")
	if err := q.Resume(t.Context(), queue.Message{RunID: run}); err != nil {
		t.Fatal(err)
	}
	all := srv.Messages()
	if len(all) != 1 || string(all[0].Data) != `{"runId":"`+run+`"}` || len(all[0].Attributes) != 0 ||
		all[0].OrderingKey != "" {
		t.Errorf("published %+v", all)
	}
}

func TestResumeWithoutTopic(t *testing.T) {
	srv := pstest.NewServer()
	defer srv.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", srv.Addr)
	err := open(t, "nowhere").Resume(t.Context(), queue.Message{RunID: run})
	if !fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) || strings.Contains(err.Error(), "nowhere") {
		t.Errorf("got %v", err)
	}
}

func TestResumeCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts the connection, and no server answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("PUBSUB_EMULATOR_HOST", l.Addr().String())
	q := open(t, "resume")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := q.Resume(ctx, queue.Message{RunID: run}); !fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) {
		t.Errorf("got %v; want error %v %v", err, fault.Tool, fault.CodeStoreUnavailable)
	}
}

func TestEmulateRealProject(t *testing.T) {
	t.Setenv("PUBSUB_EMULATOR_HOST", "")
	if err := pubsub.Emulate(t.Context(), "demo", "resume", "http://127.0.0.1:1/"); err == nil {
		t.Error("it would have worked on a real project")
	}
}

func TestRelay(t *testing.T) {
	sent := string(queue.Envelope(queue.Message{RunID: run}, "1", 1, time.Unix(0, 0)))
	for name, c := range map[string]struct {
		body   string
		err    error
		status int
		pushed bool
	}{
		"acknowledged": {sent, nil, http.StatusNoContent, true},
		"refused":      {sent, errors.New("leased"), http.StatusServiceUnavailable, true},
		"too large":    {strings.Repeat("x", queue.MaxPush+1), nil, http.StatusBadRequest, false},
	} {
		var pushed bool
		w := httptest.NewRecorder()
		pubsub.Relay(func(_ context.Context, envelope []byte) error {
			if pushed = true; string(envelope) != c.body {
				t.Errorf("%s: passed on %q", name, envelope)
			}
			return c.err
		}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body)))
		if w.Code != c.status || pushed != c.pushed || strings.Contains(w.Body.String(), "leased") {
			t.Errorf("%s: %d %q, pushed: %v", name, w.Code, w.Body, pushed)
		}
	}
}

func open(t *testing.T, topic string) *pubsub.Queue {
	t.Helper()
	q, err := pubsub.Open(t.Context(), "demo", topic)
	return cleanup.Close(t, q, err)
}
