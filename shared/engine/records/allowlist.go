package records

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// AllowView is an "always allow" entry as its user sees it.
type AllowView struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool"`
	Recipient string    `json:"recipient"`         // empty: it is a command
	Account   string    `json:"account,omitempty"` // from which Recipient is always reached
	Command   string    `json:"command,omitempty"` // and the host that it may run on
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`

	ApprovalID string `json:"approvalId,omitempty"` // that allowed it
}

// Allowlist returns what the user always allows.
func (r *Records) Allowlist(ctx context.Context, uid string) ([]AllowView, error) {
	_, u, err := r.user(ctx, uid)
	if err != nil {
		return nil, err
	}
	views := []AllowView{}
	for _, e := range u.Allow {
		views = append(views, AllowView{e.ID, e.Tool, e.Recipient, e.Place.Name, e.Shown, e.CreatedAt, e.ExpiresAt,
			e.Approval})
	}
	return views, nil
}

// Disallow removes an entry from the allowlist. Once it has returned, nothing is carried out on that entry's authority
// any more. With an approval it withdraws what that approval allowed: an entry that counted before counts again, and
// the error is AuthError not_found where another approval has allowed the entry since.
func (r *Records) Disallow(ctx context.Context, uid, id, approvalID string) error {
	found := false
	err := r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		e, ok := u.Withdraw(id, approvalID, r.Now())
		if found = ok; !found {
			return nil, false
		}
		return &audit.Entry{Kind: audit.Withdrew, Tool: e.Tool, InputHash: audit.InputHash(r.nonce(u), id)}, true
	})
	if err == nil && !found {
		return fault.NotFound()
	}
	return err
}

// nonce returns the user's own nonce, made when it is first needed: the id of an always-allow follows from its address.
func (r *Records) nonce(u *run.User) []byte {
	if len(u.Nonce) == 0 {
		u.Nonce = run.NewNonce(cmp.Or(r.Random, rand.Reader))
	}
	return u.Nonce
}
