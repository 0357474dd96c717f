package api

import (
	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/records"
)

// emailOf returns the user's verified address, "" if the token has an address that the issuer has not verified, and nil
// if the token has none.
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

// remindersAnswer states whether the user gets e-mail about waiting approvals, and at which address.
type remindersAnswer struct {
	ok
	records.ReminderView
}

// getReminders returns the user's setting for e-mail about waiting approvals. A page can offer to change the setting
// only if the answer names an address.
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
		return nil, fault.Invalid("mail", "must be true or false")
	}
	if !r.api.Loop.Reminding.On() {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable,
			"E-mails about approvals are not configured on this server.")
	}
	ctx, cancel := r.working()
	defer cancel()
	v, err := r.api.Records.SetReminders(ctx, r.uid, *in.Mail)
	return remindersAnswer{ok{true}, v}, err
}
