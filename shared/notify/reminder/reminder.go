// Package reminder mails people what has waited for their decision for a while: one short mail of all that waits, at
// most once an hour, without a word of what it is about. It leads to the cards, and nothing can be decided by it.
package reminder

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/mailer"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Kept stores the state of reminders (package records).
type Kept interface {
	TakeReminder(ctx context.Context, uid string, as run.Reminders, during time.Duration) (taken bool, err error)
	Reminded(ctx context.Context, uid string, upto time.Time) error
}

// Mailer sends mails (package mailer).
type Mailer interface {
	Send(ctx context.Context, to string, message []byte) error
}

// Reminders mail people.
type Reminders struct {
	Store   store.Store
	Kept    Kept
	Mailer  Mailer
	From    string // the address of who writes
	Console string // where people decide, without a slash at its end
}

// The bounds of a reminder.
const (
	mostRead = 100 // approvals; the newest are read
	mostTold = 20  // approvals with a line of their own
)

// Remind mails the user what has waited for long enough, unless somebody else does. Who dies between the mail and its
// record has it sent again: people had rather read it twice than never. It has the same Message-ID then.
func (r *Reminders) Remind(ctx context.Context, uid string, when run.Reminding) error {
	var u run.User
	known, err := document.Get(ctx, r.Store, document.UserPath(uid), &u)
	if err != nil || u.Reminders.To == "" || u.Reminders.Taken.After(known.ReadTime) {
		return err
	}
	waiting, now, err := r.waiting(ctx, &u, when)
	if err != nil || len(waiting) == 0 {
		return err
	}
	taken, err := r.Kept.TakeReminder(ctx, uid, u.Reminders, when.Taken)
	if err != nil || !taken {
		return err
	}
	text, err := r.write(&u, waiting, now)
	if err != nil {
		return err
	}
	failed := r.Mailer.Send(ctx, u.Reminders.To, text)
	if failed != nil && !errors.Is(failed, mailer.ErrRefused) {
		return failed
	}
	return errors.Join(failed, r.Kept.Reminded(ctx, uid, now))
}

// waiting returns what a mail tells that is made now, the newest first; nothing where none is due.
func (r *Reminders) waiting(ctx context.Context, u *run.User, when run.Reminding) (waiting []run.Approval,
	now time.Time, err error) {
	docs, err := r.Store.Query(ctx, document.ApprovalsOf(u.UID, string(run.ApprovalOpen), mostRead))
	due := false
	for _, d := range docs {
		var a run.Approval
		if err := document.Decode(d, &a); err != nil {
			return nil, now, err
		}
		now = d.ReadTime
		if a.UID != u.UID || !a.ExpiresAt.After(now) || !when.Of(u, a.RequestedAt, now) {
			continue
		}
		waiting = append(waiting, a)
		due = due || !when.At(u, a.RequestedAt).After(now)
	}
	if !due {
		return nil, now, err
	}
	return waiting, now, err
}
