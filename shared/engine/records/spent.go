package records

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
)

// Admit counts a request that calls the model without a stored run, such as one of a page's conversation. It counts the
// first call of the model and, if the request starts a message, the start. It returns the user's model usage of today
// before this request, a function that counts further usage, and the user's locale, which it updates from the request.
// Errors: AuthError unauthenticated for a disabled user; PolicyError too_many and budget for the limits, with the time
// to wait.
func (r *Records) Admit(ctx context.Context, uid string, l run.Limits, starts bool,
	sent run.Locale) (run.Admission, error) {
	a := run.Admission{Use: func(context.Context, int, int) error { return nil }}
	doc, err := r.updateUserFrom(ctx, uid, store.Doc{}, func(u *run.User, now time.Time) (bool, error) {
		sent = sent.Or(u.Locale)
		a.Locale = u.Located(sent)
		changed := sent != u.Locale
		u.Locale = sent
		if err := u.CheckEnabled(); err != nil || l.None() {
			return changed, err
		}
		if starts {
			if err := u.Usage.CheckStart(l, now); err != nil {
				return false, err
			}
		}
		if err := u.Usage.CheckModelBudget(l, now, 0, 0); err != nil {
			return false, err
		}
		a.Usage = run.UserUsage{Day: u.Usage.Day, Calls: u.Usage.Calls, Tokens: u.Usage.Tokens}
		if starts {
			u.Usage.CountStart(l, now)
		}
		u.Usage.CountUse(now, 1, 0)
		return true, nil
	})
	if err != nil || l.None() {
		return a, err
	}
	a.Use = func(ctx context.Context, calls, tokens int) error {
		_, err := r.updateUserFrom(ctx, uid, doc, func(u *run.User, now time.Time) (bool, error) {
			u.Usage.CountUse(now, calls, tokens)
			return calls != 0 || tokens != 0, nil
		})
		return err
	}
	return a, nil
}
