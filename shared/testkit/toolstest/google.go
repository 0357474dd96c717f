package toolstest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// Google is a local Gmail and Calendar whose operations can be made to fail. Its only account belongs to [GoogleUser].
type Google struct {
	*fakegoogle.Server
	URL string
	faults
}

// GoogleUser is the user with an account of [Google].
const GoogleUser = "good"

// OpenGoogle starts a local Google whose account has granted the scopes.
func OpenGoogle(t *testing.T, scopes ...string) *Google {
	t.Helper()
	g := &Google{}
	var err error
	g.Server, err = fakegoogle.New(fakegoogle.Options{
		User:  func(b string) (string, []string, bool) { return "me@example.com", scopes, b == GoogleUser },
		Fault: g.next,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	g.URL = srv.URL
	return g
}

// Result normalizes the arguments, executes a tool that reads for [GoogleUser], and decodes the result.
func Result[Out any](ctx context.Context, t *testing.T, tl *tool.Tool, args json.RawMessage) (out Out, err error) {
	t.Helper()
	normal, err := tl.Normalize(args)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tl.Execute(ctx, tool.Call{UID: GoogleUser, Args: normal})
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	return out, err
}

// Status returns a fault that answers with a status and does nothing else.
func Status(code int, reason string) fakegoogle.Fault {
	return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: code, Reason: reason}
}

// Kind returns a fault of the kind.
func Kind(k fakegoogle.Kind) fakegoogle.Fault { return fakegoogle.Fault{Kind: k} }

// Panicking are accounts whose methods all panic, for [Settling.Broken].
type Panicking struct{}

// Reads returns nil.
func (Panicking) Reads(string) []string { return nil }

// Place panics.
func (Panicking) Place(context.Context, string, []string) (tool.Place, error) { panic(canary) }

// Client panics.
func (Panicking) Client(context.Context, string, tool.Place) (*http.Client, error) { panic(canary) }

// PutEvent adds an event to the calendar of me@example.com. start and end are dates, or times in Berlin. more holds
// further fields of the event.
func PutEvent(t *testing.T, s *fakegoogle.Server, title, start, end string, more map[string]any) {
	t.Helper()
	at := func(s string) map[string]any {
		if len(s) == len(time.DateOnly) {
			return map[string]any{"date": s}
		}
		return map[string]any{"dateTime": s, "timeZone": "Europe/Berlin"}
	}
	ev := map[string]any{"summary": title, "start": at(start), "end": at(end)}
	maps.Copy(ev, more)
	if err := s.AddEvent("me@example.com", ev); err != nil {
		t.Fatal(err)
	}
}
