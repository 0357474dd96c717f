package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPingsInSilence checks the pings: none before the first line, one in every 15 seconds of silence, and none after
// they are stopped.
func TestPingsInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		out := &jsonStream{w: rec, format: ndjson}
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

// said returns everything written so far.
func said(n *jsonStream, rec *httptest.ResponseRecorder) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return rec.Body.String()
}

// TestPingsOfBusyStream checks that a stream that keeps sending lines gets no pings.
func TestPingsOfBusyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := httptest.NewRecorder()
		out := &jsonStream{w: rec, format: ndjson}
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

// TestStreamClientGone checks that nothing is written after a failed write.
func TestStreamClientGone(t *testing.T) {
	client := &broken{ResponseWriter: httptest.NewRecorder(), left: 2}
	out := &jsonStream{w: client, format: ndjson}
	for range 9 {
		out.send(out.ping)
	}
	if client.tried != 3 {
		t.Errorf("it was written to %d times; the third failed", client.tried)
	}
}

// TestStreamsPastDeadline approves a card in each client's protocol while no process advances the run. The stream
// ends with an error when the request's time is up.
func TestStreamsPastDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		handle func(*request) (any, error)
		body   string // the body for an approval ID and the hash of its arguments
	}{
		"the AI SDK": {postUI, `{"id":"c","messages":[{"id":"a","role":"assistant","parts":[{"type":"dynamic-tool",
			"toolName":"mail","toolCallId":"c","input":{},"state":"approval-responded",
			"approval":{"id":"%s~%s","approved":true}}]}]}`},
		"AG-UI": {postAGUI, `{"threadId":"c","runId":"r","messages":[],"tools":[],"context":[],"state":{},
			"resume":[{"interruptId":%q,"status":"resolved","payload":{"decision":"approve_once","argsHash":%q}}]}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newIdle(t)
			w.Budget = 3 * time.Second
			w.awaits("one")
			cards, _, err := w.Records.Pending(t.Context(), "ana", "", 1)
			if err != nil || len(cards) != 1 {
				t.Fatal(cards, err)
			}
			r, rec := w.request(t.Context(), "POST", "", "Content-Type", "application/json")
			r.Body = io.NopCloser(strings.NewReader(fmt.Sprintf(c.body, cards[0].ApprovalID, cards[0].ArgsHash)))
			began := time.Now()
			_, err = c.handle(r)
			if took := time.Since(began); took > w.Budget || err != nil ||
				!strings.Contains(rec.Body.String(), "and continues") {
				t.Errorf("%s: after %v: %v, %s", name, took, err, rec.Body)
			}
		})
	}
}
