package records

import (
	"context"
	"reflect"
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// SetPreferences replaces the user's preferences, and returns them in their normal form. UpdatedAt must be the one that
// the user has seen: preferences that were changed since stay as they are.
func (r *Records) SetPreferences(ctx context.Context, uid string, to preference.Set) (preference.Set, error) {
	to, err := to.Normal()
	if err != nil {
		return to, err
	}
	seen := to.UpdatedAt
	var refused error
	err = r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		to.UpdatedAt = u.Preferences.UpdatedAt
		same := reflect.DeepEqual(to, u.Preferences)
		if refused = u.CheckEnabled(); refused == nil && !same && !seen.Equal(u.Preferences.UpdatedAt) {
			refused = fault.New(fault.Policy, fault.CodeStaleView,
				"The preferences have changed since you opened them.")
		}
		if same || refused != nil {
			return nil, false
		}
		if to.UpdatedAt = r.now(); !to.UpdatedAt.After(u.Preferences.UpdatedAt) {
			to.UpdatedAt = u.Preferences.UpdatedAt.Add(time.Microsecond)
		}
		u.Preferences = to
		return &audit.Entry{Kind: audit.PreferencesChanged}, true
	})
	if err == nil {
		err = refused
	}
	return to, err
}
