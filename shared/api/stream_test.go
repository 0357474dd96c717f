package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPingsFillSilence checks the pings: none before the first line, one in every 15 seconds of silence after it, and
// none after they are stopped.
func TestPingsFillSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		out := &stream{w: rec, format: ndjson}
		stop := out.pings()
		defer stop()
		time.Sleep(time.Minute)
		if got := said(out, rec); got != "" {
			t.Fatalf("before the first line: %q", got)
		}
		out.write(deltaLine{"delta", "x"})
		for quiet := range 4 {
			time.Sleep(pingEvery + time.Second)
			if got := strings.Count(said(out, rec), `{"type":"ping"}`+"\n"); got < quiet+1 {
				t.Fatalf("%d pings after %d times 16 seconds", got, quiet+1)
			}
		}
		stop()
		before := said(out, rec)
		time.Sleep(time.Hour)
		if got := said(out, rec); got != before {
			t.Fatalf("behind the end: %q", got[len(before):])
		}
	})
}

// said returns what has been written so far.
func said(n *stream, rec *httptest.ResponseRecorder) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return rec.Body.String()
}

// TestPingsDoNotInterrupt checks that a stream with other lines gets no pings.
func TestPingsDoNotInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		out := &stream{w: rec, format: ndjson}
		defer out.pings()()
		for range 100 {
			out.write(deltaLine{"delta", "x"})
			time.Sleep(3 * time.Second)
		}
		if strings.Contains(said(out, rec), "ping") {
			t.Fatal("a ping between deltas")
		}
	})
}

// broken is a client that disconnects after some writes.
type broken struct {
	http.ResponseWriter
	left, tried int
}

func (b *broken) Write(p []byte) (int, error) {
	if b.tried++; b.tried > b.left {
		return 0, errors.New("the client is gone")
	}
	return b.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (b *broken) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// TestAClientThatIsGone checks that nothing is written after a line that was lost.
func TestAClientThatIsGone(t *testing.T) {
	client := &broken{ResponseWriter: httptest.NewRecorder(), left: 2}
	out := &stream{w: client, format: ndjson}
	for range 9 {
		out.send(out.ping)
	}
	if client.tried != 3 {
		t.Errorf("it was written to %d times; the third failed", client.tried)
	}
}
