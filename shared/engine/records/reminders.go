package records

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
)

// ReminderView is the setting for e-mails about waiting approvals, in the form that the user sees.
type ReminderView struct {
	Mail    bool   `json:"mail"`
	Address string `json:"address,omitempty"` // empty: no verified address is known
}

func viewReminders(u run.User) ReminderView { return ReminderView{!u.Reminders.Off, u.Reminders.To} }

// Reminders returns the user's setting for e-mails about waiting approvals.
func (r *Records) Reminders(ctx context.Context, uid string) (ReminderView, error) {
	u, err := r.User(ctx, uid)
	return viewReminders(u), err
}

// SetReminders switches e-mails about waiting approvals on or off.
func (r *Records) SetReminders(ctx context.Context, uid string, mail bool) (v ReminderView, err error) {
	_, err = r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, _ time.Time) (bool, error) {
		changed := u.Reminders.Off == mail
		u.Reminders.Off = !mail
		v = viewReminders(*u)
		return changed, u.CheckEnabled()
	})
	return v, err
}

// TakeReminder reserves the user's next reminder for the caller, for the duration. It returns false if the user's
// reminders have changed since the caller read them: another process sends the reminder, or has sent it.
func (r *Records) TakeReminder(ctx context.Context, uid string, as run.Reminders, during time.Duration) (taken bool,
	err error) {
	_, err = r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, now time.Time) (bool, error) {
		if taken = u.Reminders == as; taken {
			u.Reminders.Taken = now.Add(during)
		}
		return taken, nil
	})
	return taken, err
}

// Reminded records that the user has received a reminder about everything requested before the time upto. A late call
// does not undo what another process has recorded in the meantime.
func (r *Records) Reminded(ctx context.Context, uid string, upto time.Time) error {
	_, err := r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, _ time.Time) (bool, error) {
		m := &u.Reminders
		if m.To == "" || !upto.After(m.Upto) { // the user's data was deleted, or a later time is recorded
			return false, nil
		}
		m.Upto, m.Taken = upto, time.Time{}
		return true, nil
	})
	return err
}
