package loop_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// TestPageToolApproval has an agent that needs an approval for each call. The call first waits for its user, and after
// the approval for the page.
func TestPageToolApproval(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		s := newScenario(t, open(t))
		s.assistant().Ask = []string{"*"}
		got := s.play(`$ brings look Looks at the page.
$ model call look {"at":"it"}
$ model text I see.
$ ask look
$ pending
$ resolve 1 approve_once
$ deliver`)
		v, _, err := s.loop.Get(t.Context(), s.uid, s.run)
		if err != nil || len(v.Calls) != 1 || v.Status != run.Awaiting || !strings.Contains(got, "#1 approval") {
			t.Fatalf("%v; %+v waits:\n%s", err, v, got)
		}
		s.play(`$ answer 1 {"balance":7}
$ deliver`)
		if v, _, err = s.loop.Get(t.Context(), s.uid, s.run); err != nil || v.Status != run.Completed {
			t.Errorf("%v; the run is %s", err, v.Status)
		}
	})
}
