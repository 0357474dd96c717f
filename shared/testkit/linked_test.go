package testkit_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/testkit"
)

func open(t *testing.T, o testkit.Options) *testkit.Deployment {
	t.Helper()
	o.Dir = t.TempDir()
	w := testkit.Open(t, o)
	return w
}

// links counts the consents in Ana's audit.
func links(t *testing.T, w *testkit.Deployment) int {
	t.Helper()
	a, err := w.Call(t.Context(), "ana", "GET", "/api/agent/audit?runId="+audit.UserChain("ana"), "")
	if err != nil || a.HTTP != 200 {
		t.Fatalf("%v: %d %s; want a.HTTP 200", err, a.HTTP, a.Body)
	}
	return strings.Count(string(a.Body), `"kind":"linked"`)
}

// TestLinkOfClients checks that several clients of a user link the account only once. Each new consent would end the
// access tokens of the one before, in the middle of a run.
func TestLinkOfClients(t *testing.T) {
	w := open(t, testkit.Options{})
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			if _, err := w.SignIn(t.Context(), "ana"); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if n := links(t, w); n != 1 {
		t.Errorf("ana has linked %d accounts", n)
	}
	another := &testkit.Deployment{Cloud: w.Cloud, Base: w.Base} // Ana has not signed in here
	if _, err := another.SignIn(t.Context(), "ana"); err != nil || links(t, w) != 1 {
		t.Errorf("%v: an account was linked in the place of the one that was", err)
	}
}

// TestLinkOfUnlinkedUser checks that no later request of a user who has unlinked an account links it again.
func TestLinkOfUnlinkedUser(t *testing.T) {
	w := open(t, testkit.Options{})
	if a, err := w.Call(t.Context(), "ana", "DELETE", "/api/agent/connections/google", ""); err != nil ||
		a.HTTP != 200 {
		t.Fatalf("%v: %d %s; want a.HTTP 200", err, a.HTTP, a.Body)
	}
	if a, err := w.Call(t.Context(), "ana", "GET", "/api/agent/connections", ""); err != nil ||
		!strings.Contains(string(a.Body), `"connections":[]`) {
		t.Errorf("%v: %s; want a.Body with %q", err, a.Body, `"connections":[]`)
	}
}

func TestDeploymentUnlinked(t *testing.T) {
	w := open(t, testkit.Options{Unlinked: true})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "s", "b")))
	a, err := w.Ask(t.Context(), "ana", "write to bob")
	if err != nil || len(a.Actions) != 1 || a.Actions[0].ErrorReason != "reauth_required" || links(t, w) != 0 {
		t.Errorf("%v: %s; want len(a.Actions) 1, a.Actions[0].ErrorReason “reauth_required”, links(t, w) 0",
			err, a.Body)
	}
}
