package app_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// TestWhatALinkedAccountCosts counts what scripts/prove/README.md says that a linked account adds to each step: reads
// of the link, each before a commit or a call to Google that depends on it, and no commit.
func TestWhatALinkedAccountCosts(t *testing.T) {
	var counted *faulty.Counter
	open := app.Embedded
	app.Embedded = func(dir string, now func() time.Time) (store.Store, error) {
		st, err := open(dir, now)
		counted = faulty.Count(st)
		return counted, err
	}
	t.Cleanup(func() { app.Embedded = open })
	type trips struct{ reads, commits int }
	steps := func(w *proved) (costs []trips) {
		took := func() {
			c := counted.Take()
			costs = append(costs, trips{c.Get.Trips + c.Query.Trips, c.Commit.Trips})
		}
		w.mail()
		counted.Take()
		r := w.ask()
		took()
		if a, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_once"); err != nil || a.HTTP != 200 {
			t.Fatalf("%v %s", err, a.Body)
		}
		took()
		w.deliver()
		took()
		if len(w.Effects()) == 0 {
			t.Fatal("nothing was sent")
		}
		return costs
	}
	local := deployWith(t, testkit.Options{Unlinked: true}) // whose tool reads no account
	local.App.API.Loop.Tools["gmail_send"] =
		gmail.New(fakegoogle.Accounts{Token: func(uid string) string {
			return local.OAuth.AccessToken(testkit.Address(uid))
		}}, gmail.Options{Endpoint: local.URL + "/google/"})
	without := steps(local)
	linked := newLinked(t)
	for _, want := range []struct {
		instance string
		reads    []int // more than without a link, for a run that waits, approve, and resume through a handle
	}{{"that holds no access token yet", []int{1, 1, 4}}, {"that holds one", []int{1, 1, 3}}} {
		for i, got := range steps(linked.proved) {
			if more := got.reads - without[i].reads; more != want.reads[i] || got.commits != without[i].commits {
				t.Errorf("an instance %s, step %d: %d readings and %d commits more, want %d and 0", want.instance, i+1,
					more, got.commits-without[i].commits, want.reads[i])
			}
		}
	}
}
