package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/notify/event"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// reminded is a kind of effect whose user gets an e-mail while it waits.
var reminded = kind{name: "no handle, and its user is mailed", tool: "note", mode: "draft", mailed: true}

// reminding sets the times of the e-mails. They are short enough for a trial.
var reminding = run.Reminding{After: 300 * time.Millisecond, Every: 900 * time.Millisecond,
	Settled: 200 * time.Millisecond, Taken: time.Second}

// reminderScenarios is the scenario with two approvals in one e-mail, and then a third approval in the next e-mail.
var reminderScenarios = []scenario{{name: "remind", ttl: longTTL, fits: func(k kind) bool { return k.mailed },
	effects: never, steps: []step{start(0), startBeside(1), remind(2), startBeside(2), remind(3)}}}

// startBeside requests the n-th run while the earlier ones wait and the user has an e-mail about them.
func startBeside(n int) step {
	s := start(n)
	s.ready = func(t *trial) bool {
		if len(t.waiting()) != n || n > 1 && !t.mailed() {
			return false
		}
		t.upto = t.user().Reminders.Upto
		return true
	}
	return s
}

const reminderStep = "reminder of "

// remind waits until the e-mail about n waiting approvals is due, and makes the worker send it.
func remind(n int) step {
	name := fmt.Sprintf("%s%d", reminderStep, n)
	return step{name, func(t *trial) bool { return len(t.waiting()) == n }, func(t *trial, to *process) {
		t.env.worker = to
		u, due := t.user(), time.Time{}
		for _, a := range t.waiting() {
			if at := reminding.At(&u, a.RequestedAt); at.After(due) {
				due = at
			}
		}
		proof.Must(wait.For(t.ctx, time.Until(due)))
		_, err := t.env.sweeper.Sweep(t.ctx)
		proof.Must(err)
		proof.Must(t.env.deliver(t.ctx, to))
	}}
}

// user returns the stored user of the trial.
func (t *trial) user() (u run.User) {
	_, err := document.Get(t.ctx, t.env.store, document.UserPath(t.uid), &u)
	proof.Must(err)
	return u
}

// waiting returns the user's pending approvals.
func (t *trial) waiting() (all []run.Approval) {
	for n := range t.started() {
		for _, shown := range t.view(n).Approvals {
			var a run.Approval
			_, err := document.Get(t.ctx, t.env.store, document.ApprovalPath(shown.ApprovalID), &a)
			proof.Must(err)
			all = append(all, a)
		}
	}
	return all
}

// mailed reports whether the store records an e-mail to the user about everything that waits. It is true for kinds
// without e-mails.
func (t *trial) mailed() bool {
	if !t.kind.mailed {
		return true
	}
	u := t.user()
	return !slices.ContainsFunc(t.waiting(), func(a run.Approval) bool {
		return !reminding.At(&u, a.RequestedAt).IsZero()
	})
}

// checkReminders compares the user's e-mails with the pending approvals. Every approval must be in an e-mail. E-mails
// with the same content must have the same ID, and come once, or twice if the worker could not record the first one.
func (t *trial) checkReminders() {
	mails, waiting := t.env.mailbox.to(testkit.Address(t.uid)), t.waiting()
	ids, twice := map[string]string{}, 0 // IDs by content
	for _, m := range mails {
		id, told := m.Header.Get("Message-Id"), t.listedIn(m, waiting)
		runs := runsOf(told)
		switch other, known := ids[runs]; {
		case known && other != id:
			t.problem("the e-mails %s and %s have the same content", other, id)
		case known:
			twice++
		case slices.Contains(slices.Collect(maps.Values(ids)), id):
			t.problem("the e-mails with the ID %s differ", id)
		default:
			t.checkMail(m, told, len(ids) > 0)
			ids[runs] = id
		}
	}
	if most := t.mayRepeat(); twice > most {
		t.overdue("%d of %d e-mails are duplicates; %d may be", twice, len(mails), most)
	}
	for _, a := range waiting {
		if !slices.ContainsFunc(mails, func(m receivedMail) bool { return t.leads(m, a) }) {
			t.problem("no mail mentions run %s", a.RunID)
		}
	}
}

// checkMail checks that an e-mail does not come too soon after the request or after the previous e-mail, and that it
// contains no content of the request.
func (t *trial) checkMail(m receivedMail, told []run.Approval, after bool) {
	made, err := m.Header.Date() // has a precision of one second
	switch {
	case err != nil:
		t.problem("an e-mail has no date: %v", err)
	case len(told) == 0:
		t.problem("an e-mail mentions no pending approval:\n%s", m.Raw)
	case m.at.Before(slices.MinFunc(told, byAsked).RequestedAt.Add(reminding.After)):
		t.problem("an e-mail came too soon after the request")
	case after && made.Before(t.upto.Add(reminding.Every).Truncate(time.Second)):
		t.problem("an e-mail was made at %s, and the previous one at %s", made, t.upto)
	case strings.Contains(m.Raw, t.uid+" run"):
		t.problem("an e-mail has content of the request:\n%s", m.Raw)
	}
}

// mayRepeat returns how many e-mails may be duplicates: one if the process died or was paused before it recorded the
// e-mail, and one if the mail server accepted it without a confirmation.
func (t *trial) mayRepeat() (n int) {
	if t.outcome.point != "" && strings.HasPrefix(t.scenario.steps[t.step].name, reminderStep) {
		n++
	}
	if t.fault == fakegoogle.StatusAfter {
		n++
	}
	return n
}

// leads reports whether the e-mail links to the approval.
func (t *trial) leads(m receivedMail, a run.Approval) bool {
	return strings.Contains(m.Text, event.Link(t.env.settings["PUBLIC_URL"], a.ThreadID)+"\n")
}

// listedIn returns the pending approvals that the e-mail links to.
func (t *trial) listedIn(m receivedMail, waiting []run.Approval) []run.Approval {
	return slices.DeleteFunc(slices.Clone(waiting), func(a run.Approval) bool { return !t.leads(m, a) })
}

func runsOf(all []run.Approval) (ids string) {
	for _, a := range all {
		ids += a.RunID + " "
	}
	return ids
}

func byAsked(a, b run.Approval) int { return a.RequestedAt.Compare(b.RequestedAt) }
