package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// TestRestore rehearses the loss of a store. The backup is taken while 50 runs are in their different states, and while
// effects take place. The deployment continues. Then its store is lost, and the operator's command puts the backup
// back. No effect takes place twice, and none is forgotten: each is recorded, or a user is asked about it.
func TestRestore(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		w := newDeployment(t, uncapped...)
		var copied map[string][]byte
		rehearse(w, func() { copied = w.copies() }, func() []string {
			w.putsBack(copied)
			return nil // the store detects by itself that it is a copy
		})
	})
	t.Run("firestore", func(t *testing.T) {
		host, project := emulators.Firestore(t), "demo-"+strings.ToLower(rand.Text()[:12])
		t.Setenv("FIRESTORE_EMULATOR_HOST", host)
		w := newDeployment(t, append(uncapped, "STORE=firestore", "QUEUE=embedded",
			"GOOGLE_CLOUD_PROJECT="+project)...)
		var at time.Time
		rehearse(w, func() {
			at = time.Now()
			if err := emulators.CopyFirestore(t.Context(), host, project, "(default)", "restored"); err != nil {
				t.Error(err)
			}
		}, func() []string {
			w.prints(nil, "waiting") // the lost database still responds, and must not be restored
			if _, _, err := w.ops("restore", "-since", at.Format(time.RFC3339Nano)); err == nil ||
				!strings.Contains(err.Error(), "not a copy of that time") {
				t.Errorf("the live database is quarantined: %v", err)
			}
			w.env["FIRESTORE_DATABASE"] = "restored"
			return []string{"-since", at.Format(time.RFC3339Nano)}
		})
	})
}

// copies returns the files of the embedded store.
func (w *deployment) copies() map[string][]byte {
	copied := map[string][]byte{}
	for _, name := range []string{"countersign.db", "countersign.db-wal"} {
		data, err := os.ReadFile(filepath.Join(w.env["DATA_DIR"], name))
		if err != nil {
			w.t.Error(err)
		}
		copied[name] = data
	}
	return copied
}

// putsBack replaces the files of the stopped deployment's store.
func (w *deployment) putsBack(copied map[string][]byte) {
	w.t.Helper()
	for _, name := range []string{"countersign.db", "countersign.db-wal", "countersign.db-shm"} {
		file := filepath.Join(w.env["DATA_DIR"], name)
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		if data, ok := copied[name]; ok {
			if err := os.WriteFile(file, data, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// TestRestoreDisabledUsers puts back a copy from before users were disabled, enabled again and deleted. With the audit
// of the lost store, the operator's command disables exactly those who are disabled there.
func TestRestoreDisabledUsers(t *testing.T) {
	w := newDeployment(t)
	for _, uid := range []string{"ana", "bob", "cy", "di"} {
		w.asks(uid, "gmail_send", testkit.Mail("bob@example.com", "x", "x"))
	}
	at, copied := time.Now(), w.copies()
	for _, command := range [][]string{{"revoke", "ana"}, {"revoke", "bob"}, {"enable", "bob"}, {"delete-user", "cy"}} {
		w.prints(nil, append(command, "-yes")...)
	}
	dir := filepath.Join(t.TempDir(), "audit")
	w.prints(nil, "audit", "export", "-out", dir)
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	w.putsBack(copied)
	out, errs, err := w.ops("restore", "-since", at.Format(time.RFC3339Nano), "-audit", dir)
	for _, want := range []string{"user ana is disabled again; run revoke",
		"user cy is disabled again; run delete-user", "4 open runs were marked", "   2 users are not disabled"} {
		if err != errFailed || !strings.Contains(out, want) || strings.Contains(out, "user bob") {
			t.Fatalf("%v: %s%s; want %q, no bob, and runs that were not looked up", err, out, errs, want)
		}
	}
	w.starts()
	for uid, want := range map[string]bool{"ana": true, "bob": false, "cy": true, "di": false} {
		_, err := w.Call(t.Context(), uid, "GET", "/api/agent/threads", "")
		if disabled := err != nil && strings.Contains(err.Error(), "has been disabled"); disabled != want {
			t.Errorf("%s is disabled: %t (%v), want %t", uid, disabled, err, want)
		}
	}
}

// The numbers of runs in the rehearsal, by their state when the backup is taken. The sum is 50.
const (
	manyDone   = 6  // ended
	manySeen   = 8  // approved; the mailbox of their user is readable
	manyUnseen = 6  // approved; the mailbox is not readable
	manyCards  = 8  // wait for a decision, which is made after the backup
	manyLater  = 11 // wait for a decision, which is made after the restore
	manyHeld   = 6  // are approved with an undo window, and undone after the backup
	manyBegun  = 5  // have an intent and no outcome
)

// uncapped are settings under which one user can have so many runs.
var uncapped = append(slices.Clone(testkit.Unlimited), "MAX_OPEN_APPROVALS=50", "MAX_APPROVALS_PER_DAY=0")

// rehearsal holds the runs of each state.
type rehearsal struct {
	*deployment
	seen, unseen, cards, later, held, begun []testkit.Answer
	effects                                 int // before the loss
	hours                                   int // number of events so far
}

// rehearse runs the rehearsal. restore puts the backup back, and returns the flags of ops restore.
func rehearse(w *deployment, backup func(), restore func() []string) {
	r := &rehearsal{deployment: w}
	r.begins()
	r.backsUp(backup)
	r.goesOn()
	if err := w.Stop(); err != nil {
		w.t.Fatal(err)
	}
	r.restores(append([]string{"restore"}, restore()...))
	r.ends()
	w.prints([]string{"problems: 0"}, "verify")
}

// mails starts n runs that each request an e-mail.
func (w *rehearsal) mails(n int, uid, what string) (all []testkit.Answer) {
	for i := range n {
		text := fmt.Sprintf("%s %d", what, i)
		all = append(all, w.asks(uid, "gmail_send", testkit.Mail("bob@example.com", text, text)))
	}
	return all
}

// events starts n runs that each request an event. No two events of the rehearsal are at the same time, because a card
// whose time is taken meanwhile asks again.
func (w *rehearsal) events(n int, what string) (all []testkit.Answer) {
	for i := range n {
		w.hours++
		start := time.Now().Truncate(time.Hour).Add(time.Duration(24+w.hours) * time.Hour)
		all = append(all, w.asks("ana", "calendar_event_create", testkit.Event(fmt.Sprintf("%s %d", what, i), start)))
	}
	return all
}

// decide makes the same decision about each of the runs.
func (w *rehearsal) decide(uid, decision string, runs []testkit.Answer) {
	w.t.Helper()
	for _, r := range runs {
		w.decides(uid, r, decision)
	}
}

// begins brings the runs into their states before the backup.
func (w *rehearsal) begins() {
	w.SetScopes("ana", append(slices.Clone(testkit.Scopes), mayRead)...)
	w.decide("ana", "approve_once", w.mails(manyDone, "ana", "done before"))
	w.delivers()
	w.seen = w.mails(manySeen, "ana", "approved, its mailbox is readable")
	w.unseen = w.mails(manyUnseen, "bob", "approved, its mailbox is not")
	w.cards, w.later = w.events(manyCards, "its card is open"), w.events(manyLater, "its card stays open")
	w.held, w.begun = w.events(manyHeld, "held, then undone"), w.events(manyBegun, "begun in the backup")
	w.decide("ana", "approve_once", w.seen)
	w.decide("bob", "approve_once", w.unseen)
	w.decide("ana", "approve_once", w.begun)
	ana, err := w.As(w.t.Context(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range w.held {
		if a, err := ana.Hold(w.t.Context(), r.Approvals[0], "approve_once", 60); err != nil || a.HTTP != 200 {
			w.t.Fatalf("%v %s", err, a.Body)
		}
	}
}

// backsUp takes the backup while the effects of the runs in begun take place. Their intents are stored, but not their
// outcomes.
func (w *rehearsal) backsUp(backup func()) {
	var mu sync.Mutex
	waiting, taken := 0, make(chan struct{})
	w.SetFault(func(op string) fakegoogle.Fault {
		if op != "calendar.events.insert" {
			return fakegoogle.Fault{}
		}
		mu.Lock()
		if waiting++; waiting == manyBegun {
			backup()
			close(taken)
		}
		mu.Unlock()
		<-taken
		return fakegoogle.Fault{}
	})
	var all sync.WaitGroup
	for i, r := range w.begun {
		all.Go(func() {
			message := queue.Envelope(queue.Message{RunID: r.RunID}, strconv.Itoa(i), 1, time.Now())
			if err := w.Push(w.Base)(w.t.Context(), message); err != nil {
				w.t.Error(err)
			}
		})
	}
	all.Wait()
	w.SetFault(nil)
}

// goesOn continues the deployment after the backup.
func (w *rehearsal) goesOn() {
	w.decide("ana", "undo", w.held) // first, because its time is short
	w.decide("ana", "approve_once", w.cards)
	w.delivers()
	w.decide("ana", "approve_once", w.mails(1, "ana", "begun after the backup"))
	w.delivers()
	w.effects = manyDone + 1 + manySeen + manyUnseen + manyCards + manyBegun
	if n := len(w.Effects()); n != w.effects {
		w.t.Fatalf("%d effects before the loss, want %d", n, w.effects)
	}
}

// restores runs the operator's command, and makes the server look up the calls.
func (w *rehearsal) restores(flags []string) {
	t := w.t
	open := slices.Concat(w.seen, w.unseen, w.cards, w.later, w.held, w.begun)
	if out, errs, err := w.ops(flags...); err != errFailed || !strings.Contains(out, "quarantined since") ||
		!strings.Contains(out, fmt.Sprintf("%d open runs were marked", len(open))) {
		t.Fatalf("%v: %s%s; want %d open runs marked", err, out, errs, len(open))
	}
	w.starts()
	if w.env["STORE"] == "embedded" {
		if a, err := w.Sweep(t.Context()); err != nil || a.HTTP != 200 {
			t.Fatalf("%v %s", err, a.Body)
		}
	} else { // a sweep is 129 queries, which take the emulator seconds
		for _, r := range open {
			w.prints([]string{"resume published"}, "redrive", r.RunID)
		}
	}
	w.delivers()
	w.prints([]string{fmt.Sprintf("%4d calls were done after the backup", manySeen+manyCards),
		fmt.Sprintf("%4d calls are reviews", manyUnseen),
		fmt.Sprintf("%4d calls wait for a decision", manyLater+manyHeld),
		"   0 calls had begun", "   0 runs have calls that were not looked up"}, flags...)
	var reviews []string
	for _, r := range w.unseen {
		reviews = append(reviews, "run "+r.RunID+" of bob: 0 done, 1 reviews")
	}
	w.prints(reviews, "restore")
	if n := len(w.Effects()); n != w.effects {
		t.Errorf("after the restore %d effects, want %d", n, w.effects)
	}
	for _, r := range slices.Concat(w.seen, w.cards, w.begun) {
		if got := w.reads("ana", r.RunID); got.Status != "completed" || got.Actions[0].ExecutionStatus != "succeeded" {
			t.Errorf("a call that was done is recorded as %s", got.Body)
		}
	}
}

// ends makes the users answer the reviews after the restore.
func (w *rehearsal) ends() {
	t := w.t
	for _, r := range w.unseen {
		review := w.reads("bob", r.RunID)
		if !strings.Contains(string(review.Body), "restored from a backup. We may not read your mailbox") {
			t.Errorf("the review says %s", review.Body)
		}
		w.decides("bob", review, "confirm_done")
	}
	for what, runs := range map[string][]testkit.Answer{"approve_once": w.later, "reject": w.held} {
		for _, r := range runs {
			got := w.reads("ana", r.RunID)
			if !strings.Contains(string(got.Body), "restored from a backup") {
				t.Errorf("the card says %s", got.Body)
			}
			w.decides("ana", got, what)
		}
	}
	w.delivers()
	if n := len(w.Effects()); n != w.effects+manyLater {
		t.Errorf("after the last approval %d effects, want %d", n, w.effects+manyLater)
	}
}

// asks makes a run of the user request a call that waits for approval.
func (w *deployment) asks(uid, tool string, args any) testkit.Answer {
	w.t.Helper()
	w.SetModel(testkit.Wants(tool, args))
	r, err := w.Ask(w.t.Context(), uid, "please do it")
	if err != nil || len(r.Approvals) != 1 {
		w.t.Fatalf("%v: %s", err, r.Body)
	}
	return r
}

// decides makes a decision about the only waiting call of the run.
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
