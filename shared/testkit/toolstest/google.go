package toolstest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tool"
)

// Google is a local Gmail and Calendar whose operations a test has fail. Its one account is the user's of [GoogleUser].
type Google struct {
	*fakegoogle.Server
	URL string

	mu     sync.Mutex // an abandoned call may still be on its way when the next one comes
	faults map[string][]fakegoogle.Fault
	calls  map[string]int
}

// GoogleUser is the user with an account of [Google].
const GoogleUser = "good"

// GoogleTimeout is how long a tool should wait for [Google].
const GoogleTimeout = 300 * time.Millisecond

// OpenGoogle starts a local Google whose account has granted the scopes.
func OpenGoogle(t *testing.T, scopes ...string) *Google {
	t.Helper()
	g := &Google{faults: map[string][]fakegoogle.Fault{}, calls: map[string]int{}}
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

// next counts a call of the operation and returns its fault.
func (g *Google) next(op string) (f fakegoogle.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[op]++
	if q := g.faults[op]; len(q) > 0 {
		f, g.faults[op] = q[0], q[1:]
	}
	return f
}

// Break makes the next calls of the operation fail, in order.
func (g *Google) Break(op string, faults ...fakegoogle.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults[op] = faults
}

// Calls returns how often the operation was called with a valid token.
func (g *Google) Calls(op string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[op]
}

// Status returns the fault of an operation that answers with a status and does nothing.
func Status(code int, reason string) fakegoogle.Fault {
	return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: code, Reason: reason}
}

// Kind returns a fault of the kind.
func Kind(k fakegoogle.Kind) fakegoogle.Fault { return fakegoogle.Fault{Kind: k} }

// Panicking are accounts whose every use panics, for [Settling.Broken].
type Panicking struct{}

// Place panics.
func (Panicking) Reads(string) []string { return nil }

// Place panics.
func (Panicking) Place(context.Context, string, []string) (tool.Place, error) { panic(canary) }

// Client panics.
func (Panicking) Client(context.Context, string, tool.Place) (*http.Client, error) { panic(canary) }
