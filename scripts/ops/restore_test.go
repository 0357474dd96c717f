package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

const mayRead = "https://www.googleapis.com/auth/gmail.readonly"

// TestRestore rehearses the loss of a store. The backup is taken while runs are in each of their states, and while an
// effect takes place. The deployment continues; then its store is lost, and the backup is put back under the operator's
// command. No effect takes place twice, and none is forgotten: each is recorded, or a user is asked about it.
func TestRestore(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		w := newDeployment(t)
		dir := w.env["DATA_DIR"]
		copied := map[string][]byte{}
		rehearse(w, func() {
			for _, name := range []string{"countersign.db", "countersign.db-wal"} {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Error(err)
				}
				copied[name] = data
			}
		}, func() []string {
			for _, name := range []string{"countersign.db", "countersign.db-wal", "countersign.db-shm"} {
				if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			for name, data := range copied {
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return nil // the store knows by itself that it is a copy
		})
	})
	t.Run("firestore", func(t *testing.T) {
		host, project := emulators.Firestore(t), "demo-"+strings.ToLower(rand.Text()[:12])
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		w := newDeployment(t, "STORE=firestore", "QUEUE=embedded", "GOOGLE_CLOUD_PROJECT="+project)
		var at time.Time
		rehearse(w, func() {
			at = time.Now()
			if err := emulators.CopyFirestore(t.Context(), host, project, "(default)", "restored"); err != nil {
				t.Error(err)
			}
		}, func() []string {
			w.prints(nil, "waiting") // the lost database still answers, and is not the one to restore
			if _, _, err := w.ops("restore", "-since", at.Format(time.RFC3339Nano)); err == nil ||
				!strings.Contains(err.Error(), "not a copy of that time") {
				t.Errorf("the live database is quarantined: %v", err)
			}
			w.env["FIRESTORE_DATABASE"] = "restored"
			return []string{"-since", at.Format(time.RFC3339Nano)}
		})
	})
}

// rehearse runs the rehearsal. restore puts the backup back, and returns the flags of ops restore.
func rehearse(w *deployment, backup func(), restore func() []string) {
	t := w.t
	w.SetScopes("ana", append(slices.Clone(testkit.Scopes), mayRead)...)
	tomorrow := time.Now().Add(24 * time.Hour).Truncate(time.Hour)
	mail := func(uid, what string) testkit.Answer {
		return w.asks(uid, "gmail_send", testkit.Mail("bob@example.com", what, what))
	}
	event := func(what string) testkit.Answer {
		return w.asks("ana", "calendar_event_create", testkit.Event(what, tomorrow))
	}
	w.decides("ana", mail("ana", "done before"), "approve_once")
	w.delivers()
	seen, unseen := mail("ana", "approved, its mailbox is readable"), mail("bob", "approved, its mailbox is not")
	card, later, held := event("its card is open"), event("its card stays open"), event("held, then undone")
	begun := event("begun in the backup")
	w.decides("ana", seen, "approve_once")
	w.decides("bob", unseen, "approve_once")
	ana, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	if a, err := ana.Hold(t.Context(), held.Approvals[0], "approve_once", 60); err != nil || a.HTTP != 200 {
		t.Fatalf("%v %s", err, a.Body)
	}

	var once sync.Once
	w.SetFault(func(op string) fakegoogle.Fault {
		if op == "calendar.events.insert" {
			once.Do(backup) // its intent is stored, and its outcome is not
		}
		return fakegoogle.Fault{}
	})
	w.decides("ana", begun, "approve_once")
	if err := w.Push(w.Base)(t.Context(), queue.Envelope(queue.Message{RunID: begun.RunID}, "1", 1,
		time.Now())); err != nil {
		t.Fatal(err)
	}
	w.SetFault(nil)
	w.decides("ana", card, "approve_once")
	w.decides("ana", held, "undo")
	w.delivers()
	w.decides("ana", mail("ana", "begun after the backup"), "approve_once")
	w.delivers()
	const effects = 6 // 2 mails of runs that the backup has not or knows as done, seen, unseen, card, begun
	if n := len(w.Effects()); n != effects {
		t.Fatalf("%d effects before the loss, want %d", n, effects)
	}

	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	flags := append([]string{"restore"}, restore()...)
	if out, errs, err := w.ops(flags...); err != errFailed || !strings.Contains(out, "quarantined since") ||
		!strings.Contains(out, "6 open runs were marked") {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	w.starts()
	if w.env["STORE"] == "embedded" {
		if a, err := w.Sweep(t.Context()); err != nil || a.HTTP != 200 {
			t.Fatalf("%v %s", err, a.Body)
		}
	} else { // a sweep is 129 queries, which take the emulator seconds
		for _, r := range []testkit.Answer{seen, unseen, card, later, held, begun} {
			w.prints([]string{"resume published"}, "redrive", r.RunID)
		}
	}
	w.delivers()
	w.prints([]string{"   2 calls were done after the backup", "   1 calls are reviews",
		"   2 calls wait for a decision", "   0 calls had begun", "   0 runs have calls that were not looked up"},
		flags...)
	w.prints([]string{"run " + unseen.RunID + " of bob: 0 done, 1 reviews"}, "restore")
	if n := len(w.Effects()); n != effects {
		t.Errorf("after the restore %d effects, want %d", n, effects)
	}
	for _, r := range []testkit.Answer{seen, card, begun} {
		if got := w.reads("ana", r.RunID); got.Status != "completed" || got.Actions[0].ExecutionStatus != "succeeded" {
			t.Errorf("a call that was done is recorded as %s", got.Body)
		}
	}
	review := w.reads("bob", unseen.RunID)
	if !strings.Contains(string(review.Body), "restored from a backup. We may not read your mailbox") {
		t.Errorf("the review says %s", review.Body)
	}
	w.decides("bob", review, "confirm_done")
	for what, r := range map[string]testkit.Answer{"approve_once": later, "reject": held} {
		got := w.reads("ana", r.RunID)
		if !strings.Contains(string(got.Body), "restored from a backup") {
			t.Errorf("the card says %s", got.Body)
		}
		w.decides("ana", got, what)
	}
	w.delivers()
	if n := len(w.Effects()); n != effects+1 {
		t.Errorf("after the last approval %d effects, want %d", n, effects+1)
	}
	w.prints([]string{"problems: 0"}, "verify")
}

// asks makes the user's run request a call, which waits for approval.
func (w *deployment) asks(uid, tool string, args any) testkit.Answer {
	w.t.Helper()
	w.SetModel(testkit.Wants(tool, args))
	r, err := w.Ask(w.t.Context(), uid, "please do it")
	if err != nil || len(r.Approvals) != 1 {
		w.t.Fatalf("%v: %s", err, r.Body)
	}
	return r
}

// decides decides about the only waiting call of the run.
func (w *deployment) decides(uid string, r testkit.Answer, decision string) {
	w.t.Helper()
	if len(r.Approvals) != 1 {
		w.t.Fatalf("%d calls wait: %s", len(r.Approvals), r.Body)
	}
	a, err := w.Resolve(w.t.Context(), uid, r.Approvals[0], decision)
	if err != nil || a.HTTP != 200 {
		w.t.Fatalf("%s: %v %s", decision, err, a.Body)
	}
}

func (w *deployment) reads(uid, runID string) testkit.Answer {
	w.t.Helper()
	r, err := w.Run(w.t.Context(), uid, runID)
	if err != nil || r.HTTP != 200 {
		w.t.Fatalf("%v %s", err, r.Body)
	}
	return r
}

func (w *deployment) delivers() {
	w.t.Helper()
	if _, err := w.Deliver(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}
