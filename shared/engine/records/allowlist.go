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

// AllowView is an entry of the allowlist in the form that its user sees.
type AllowView struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool"`
	Recipient string    `json:"recipient"`         // empty for a command
	Account   string    `json:"account,omitempty"` // the account that always reaches Recipient
	Command   string    `json:"command,omitempty"` // with its host
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`

	ApprovalID string `json:"approvalId,omitempty"` // the approval that added the entry
}

// Allowlist returns the entries of the user's allowlist.
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

// Disallow removes an entry from the allowlist. After it returns, nothing runs because of the entry. With an approval
// it undoes what that approval added: an entry that existed before is restored. The error is AuthError not_found if
// another approval has added the entry since.
func (r *Records) Disallow(ctx context.Context, uid, id, approvalID string) error {
	found := false
	err := r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		e, ok := u.Withdraw(id, approvalID, r.Now())
		if found = ok; !found {
			return nil, false
		}
		return &audit.Entry{Kind: audit.Withdrew, Tool: e.Tool, InputHash: audit.InputHash(r.nonce(u), id),
			ApprovalID: e.Approval}, true
	})
	if err == nil && !found {
		return fault.NotFound()
	}
	return err
}

// nonce returns the user's own nonce, and creates it on first use. The IDs of allowlist entries are derived from the
// addresses and the nonce.
func (r *Records) nonce(u *run.User) []byte {
	if len(u.Nonce) == 0 {
		u.Nonce = run.NewNonce(cmp.Or(r.Random, rand.Reader))
	}
	return u.Nonce
}
