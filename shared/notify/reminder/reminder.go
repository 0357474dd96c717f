// Package reminder sends users an e-mail about approvals that have waited for a while: one short mail about all waiting
// approvals, at most once an hour, without their content. The e-mail links to the approvals. Nothing can be approved
// with it.
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

// Kept records reminders (package records).
type Kept interface {
	TakeReminder(ctx context.Context, uid string, as run.Reminders, during time.Duration) (taken bool, err error)
	Reminded(ctx context.Context, uid string, upto time.Time) error
}

// Mailer sends e-mails (package mailer).
type Mailer interface {
	Send(ctx context.Context, to string, message []byte) error
}

// Reminders sends reminders by e-mail.
type Reminders struct {
	Store   store.Store
	Kept    Kept
	Mailer  Mailer
	From    string // address of the sender
	Console string // address of the console, without a trailing slash
}

// Limits of a reminder.
const (
	mostRead   = 100 // approvals that are read, the newest first
	mostListed = 20  // approvals that get their own lines in the e-mail
)

// Remind sends the user an e-mail about approvals that have waited long enough, unless another process is sending it.
// If a process ends between the e-mail and its record, the e-mail is sent again with the same Message-ID: a repeated
// reminder is better than none.
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

// waiting returns the approvals for an e-mail that is sent now, the newest first. It returns none if no reminder is
// due.
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
