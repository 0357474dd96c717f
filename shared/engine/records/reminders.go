package records

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
)

// ReminderView is how a user is mailed of what waits, as they see it.
type ReminderView struct {
	Mail    bool   `json:"mail"`
	Address string `json:"address,omitempty"` // empty: none is known for which anybody vouches
}

func viewReminders(u run.User) ReminderView { return ReminderView{!u.Reminders.Off, u.Reminders.To} }

// Reminders returns how the user is mailed of what waits.
func (r *Records) Reminders(ctx context.Context, uid string) (ReminderView, error) {
	u, err := r.User(ctx, uid)
	return viewReminders(u), err
}

// SetReminders has the user be mailed of what waits from now on, or not any more.
func (r *Records) SetReminders(ctx context.Context, uid string, mail bool) (v ReminderView, err error) {
	_, err = r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, _ time.Time) (bool, error) {
		changed := u.Reminders.Off == mail
		u.Reminders.Off = !mail
		v = viewReminders(*u)
		return changed, u.CheckEnabled()
	})
	return v, err
}

// TakeReminder has the caller be the one who sends the user's next reminder, for the time, and reports false where the
// user's reminders are not as they were when the caller has read them: another one sends it, or has sent it.
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

// Reminded records that the user was told of all that was asked before the time. A process that is late with this does
// not take back what another one has recorded meanwhile.
func (r *Records) Reminded(ctx context.Context, uid string, upto time.Time) error {
	_, err := r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, _ time.Time) (bool, error) {
		m := &u.Reminders
		if m.To == "" || !upto.After(m.Upto) { // the user's data were deleted meanwhile, or it is late
			return false, nil
		}
		m.Upto, m.Taken = upto, time.Time{}
		return true, nil
	})
	return err
}
