package api

import (
	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/records"
)

// emailOf returns the address of a user, "" where nobody vouches for the one that their token has, and nil where it has
// none.
func emailOf(id auth.Identity) *string {
	if id.Email == "" {
		return nil
	}
	normal, err := address.Normalize(id.Email)
	if err != nil || !id.EmailVerified {
		return new("")
	}
	return &normal
}

// remindersAnswer is how a user is mailed of what waits.
type remindersAnswer struct {
	ok
	records.ReminderView
}

// getReminders tells a page whether it may offer its user that they are mailed no more, or again: where it names an
// address.
func getReminders(r *request) (any, error) {
	if !r.api.Loop.Reminding.On() {
		return remindersAnswer{ok: ok{true}}, nil
	}
	v, err := r.api.Records.Reminders(r.Context(), r.uid)
	return remindersAnswer{ok{true}, v}, err
}

func patchReminders(r *request) (any, error) {
	var in struct {
		Mail *bool `json:"mail"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if in.Mail == nil {
		return nil, fault.Invalid("mail", "true or false is needed")
	}
	if !r.api.Loop.Reminding.On() {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "Nobody is mailed of what waits here.")
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := r.api.Records.SetReminders(ctx, r.uid, *in.Mail)
	return remindersAnswer{ok{true}, v}, err
}
