package offboard_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// killedAt runs a deletion in a process that is killed at its n-th commit, and reports whether it was killed.
func killedAt(t *testing.T, w *deployment, n int, after bool) (died bool) {
	return faulty.Dies(func() {
		w.delete(t, w.users(faulty.Wrap(w.seen, faulty.Commits(faulty.Nth(n, faulty.Kill(after))))))
	})
}

// delete deletes ana. It must succeed at once, because no effect is in progress.
func (w *deployment) delete(t *testing.T, u offboard.Users) {
	t.Helper()
	got, err := u.Delete(t.Context(), "ana")
	if err != nil || !got.Gone {
		t.Fatalf("%v: %+v", err, got)
	}
}

// enqueue leaves a message about the user's first run undelivered.
func (w *deployment) enqueue(t *testing.T, uid string) {
	t.Helper()
	if err := w.App.Queue.Resume(t.Context(), queue.Message{RunID: w.runs(t, uid)[0]}); err != nil {
		t.Fatal(err)
	}
}

// TestKilledAtEveryCommit kills a deletion before and after each of its commits, on both stores. After it is repeated,
// everything is deleted, the audit verifies, and another user has lost nothing.
func TestKilledAtEveryCommit(t *testing.T) {
	realpart.Long(t, "it kills a deletion about 80 times")
	onBothStores(t, func(t *testing.T, settings ...string) {
		for _, after := range []bool{false, true} {
			n := 1
			for died := true; died; n++ {
				t.Run(fmt.Sprintf("after=%v/%d", after, n), func(t *testing.T) {
					w := newDeployment(t, settings)
					w.populate(t, "ana", canary)
					w.populate(t, "eve", "else")
					w.enqueue(t, "ana") // the first one was delivered with eve's
					before := w.exported(t, "eve")
					died = killedAt(t, w, n, after)
					w.delete(t, w.users(w.seen))
					w.checkGone(t)
					w.delete(t, w.users(w.seen)) // once more, with nothing left
					if now := w.exported(t, "eve"); now != before {
						t.Errorf("eve had\n%s\nand has\n%s", before, now)
					}
				})
				if t.Failed() {
					return
				}
			}
			// the lock, a run cancelled, the link, a message, three runs and their threads, hosts, the lock again
			if n < 10 {
				t.Fatalf("only %d commits: the kills did not happen", n)
			}
		}
	})
}

// TestDeletedUserRefused sends requests with a deleted user's token.
func TestDeletedUserRefused(t *testing.T) {
	w := newDeployment(t, nil)
	w.populate(t, "ana", canary)
	w.delete(t, w.users(w.seen))
	if got, err := w.Ask(t.Context(), "ana", "again"); err != nil || got.HTTP != 401 {
		t.Fatalf("%v: %d %s; want got.HTTP 401", err, got.HTTP, got.Body)
	}
	w.checkGone(t)
	if changed, err := w.App.API.Records.SetDisabled(t.Context(), "ana", false); err != nil || !changed {
		t.Fatalf("%v: the lock was not taken off", err)
	}
	if got, err := w.Ask(t.Context(), "ana", "again"); err != nil || got.HTTP != 200 || len(w.runs(t, "ana")) != 1 {
		t.Fatalf("%v: %d %s; want got.HTTP 200, len(w.runs(t, \"ana\")) 1", err, got.HTTP, got.Body)
	}
}

// TestExportComplete exports twice. Both exports have the same bytes, contain everything that the user wrote, and
// nothing of another user's.
func TestExportComplete(t *testing.T) {
	onBothStores(t, func(t *testing.T, settings ...string) {
		w := newDeployment(t, settings)
		w.populate(t, "ana", canary)
		w.populate(t, "eve", "else")
		first, second := w.exported(t, "ana"), w.exported(t, "ana")
		if first != second {
			t.Fatalf("two exports differ:\n%s\n%s", first, second)
		}
		for kind, want := range map[string]int{"user": 1, "thread": 4, "run": 4, "approval": 4, "host": 1,
			"terminal": 1} {
			if n := strings.Count(first, `{"kind":"`+kind+`"`); n != want {
				t.Errorf("%d lines of kind %s, want %d", n, kind, want)
			}
		}
		for _, want := range []string{`"kind":"message"`, `"kind":"event"`, `"kind":"audit"`, "mail " + canary,
			"say " + canary, "about " + canary, "report " + canary, "Report " + canary} {
			if !strings.Contains(first, want) {
				t.Errorf("the export lacks %s", want)
			}
		}
		if strings.Contains(first, `"secret"`) {
			t.Error("the export has the secret of a host")
		}
		if strings.Contains(first, `"eve"`) || strings.Contains(first, "mail else") {
			t.Error("the export has something of another user's")
		}
	})
}
