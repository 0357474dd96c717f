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

// reminded is an effect whose user is mailed while it waits.
var reminded = kind{name: "no handle, and its user is mailed", tool: "note", mode: "draft", mailed: true}

// reminding is when its users are mailed: so soon that no trial waits for long.
var reminding = run.Reminding{After: 300 * time.Millisecond, Every: 900 * time.Millisecond,
	Settled: 200 * time.Millisecond, Taken: time.Second}

// remindWalks have two waiting cards, which one mail reports, and then a third card, which the next mail reports.
var remindWalks = []walk{{name: "remind", ttl: longTTL, fits: func(k kind) bool { return k.mailed }, effects: never,
	steps: []step{start(0), startBeside(1), remind(2), startBeside(2), remind(3)}}}

// startBeside requests the n-th run while those before it wait, and their user was mailed of what waits so long.
func startBeside(n int) step {
	s := start(n)
	s.ready = func(t *trial) bool { return len(t.waiting()) == n && (n == 1 || t.mailed()) }
	return s
}

const reminderStep = "reminder of "

// remind has the worker look at so many runs when their user is to be mailed of them.
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

// user returns the trial's user as they are stored.
func (t *trial) user() (u run.User) {
	_, err := document.Get(t.ctx, t.env.store, document.UserPath(t.uid), &u)
	proof.Must(err)
	return u
}

// waiting returns what waits for the user.
func (t *trial) waiting() (all []run.Approval) {
	for n := range t.started() {
		for _, shown := range t.look(n).Approvals {
			var a run.Approval
			_, err := document.Get(t.ctx, t.env.store, document.ApprovalPath(shown.ApprovalID), &a)
			proof.Must(err)
			all = append(all, a)
		}
	}
	return all
}

// mailed reports whether it is on record that the user was mailed of all that waits, where they are mailed at all.
func (t *trial) mailed() bool {
	if !t.kind.mailed {
		return true
	}
	u := t.user()
	return !slices.ContainsFunc(t.waiting(), func(a run.Approval) bool {
		return !reminding.At(&u, a.RequestedAt).IsZero()
	})
}

// judgeMailed compares the mails to the user with the waiting approvals. Each approval was mailed, the same approvals
// with one ID, and once, or twice if the process that mailed could not record it.
func (t *trial) judgeMailed() {
	mails, waiting := t.env.letters.to(testkit.Address(t.uid)), t.waiting()
	ids, last, twice := map[string]string{}, time.Time{}, 0 // IDs by the reported approvals
	for _, m := range mails {
		id, told := m.Header.Get("Message-Id"), t.toldBy(m, waiting)
		runs := runsOf(told)
		switch other, known := ids[runs]; {
		case known && other != id:
			t.problem("the mails %s and %s tell the same", other, id)
		case known:
			twice++
		case slices.Contains(slices.Collect(maps.Values(ids)), id):
			t.problem("the mails with the id %s do not tell the same", id)
		default:
			t.judgeMail(m, told, last)
			ids[runs], last = id, m.at
		}
	}
	if most := t.mayRepeat(); twice > most {
		t.overdue("%d of %d mails are repeated, and %d may be", twice, len(mails), most)
	}
	for _, a := range waiting {
		if !slices.ContainsFunc(mails, func(m letter) bool { return t.leads(m, a) }) {
			t.problem("nobody was mailed of run %s", a.RunID)
		}
	}
}

// judgeMail checks that a mail comes neither too soon after the approvals that it reports nor after the last mail, and
// has no content of the approvals.
func (t *trial) judgeMail(m letter, told []run.Approval, last time.Time) {
	switch {
	case len(told) == 0:
		t.problem("a mail tells of nothing that waits:\n%s", m.Raw)
	case m.at.Before(slices.MinFunc(told, byAsked).RequestedAt.Add(reminding.After)):
		t.problem("a mail comes too soon after it was asked")
	case m.at.Before(last.Add(reminding.Every * 3 / 4)): // which was on its way for a moment
		t.overdue("a mail comes %s after another one", m.at.Sub(last))
	case strings.Contains(m.Raw, t.uid+" run"):
		t.problem("a mail has what is asked:\n%s", m.Raw)
	}
}

// mayRepeat returns how many mails may come again: one whose process died, or was stopped, before it was on record, and
// one that the server took and did not say so.
func (t *trial) mayRepeat() (n int) {
	if t.outcome.point != "" && strings.HasPrefix(t.walk.steps[t.step].name, reminderStep) {
		n++
	}
	if t.torn == fakegoogle.StatusAfter {
		n++
	}
	return n
}

// leads reports whether the mail leads to the approval.
func (t *trial) leads(m letter, a run.Approval) bool {
	return strings.Contains(m.Text, event.Link(t.env.settings["PUBLIC_URL"], a.ThreadID)+"\n")
}

// toldBy returns what the mail leads to of what waits.
func (t *trial) toldBy(m letter, waiting []run.Approval) []run.Approval {
	return slices.DeleteFunc(slices.Clone(waiting), func(a run.Approval) bool { return !t.leads(m, a) })
}

func runsOf(all []run.Approval) (ids string) {
	for _, a := range all {
		ids += a.RunID + " "
	}
	return ids
}

func byAsked(a, b run.Approval) int { return a.RequestedAt.Compare(b.RequestedAt) }
