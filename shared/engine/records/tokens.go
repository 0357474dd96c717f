package records

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/agenttoken"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// TokenView is an agent's token in the form that its user sees.
type TokenView struct {
	ID         string    `json:"tokenId"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"` // to the hour
}

// Tokens returns the user's tokens for agents of other programs, oldest first.
func (r *Records) Tokens(ctx context.Context, uid string) ([]TokenView, error) {
	u, err := r.User(ctx, uid)
	if err != nil {
		return nil, err
	}
	views := []TokenView{}
	for _, t := range u.Tokens {
		views = append(views, TokenView{t.ID, t.Name, t.CreatedAt, t.LastUsedAt})
	}
	return views, nil
}

// AddToken creates a token for the agent with this name. It returns the token and the token's ID. If email is set, it
// becomes the user's address, as in [loop.StartRequest]. Errors: those of [agenttoken.Add].
func (r *Records) AddToken(ctx context.Context, uid, name string, email *string) (id, token string, err error) {
	var refused error
	err = r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		var kept run.AgentToken
		token, kept, refused = agenttoken.Add(u, name, cmp.Or(r.Random, rand.Reader), r.now())
		id = kept.ID
		if email != nil {
			u.Reminders.To = *email
		}
		return &audit.Entry{Kind: audit.TokenMade, Ref: id}, refused == nil
	})
	return id, token, cmp.Or(err, refused)
}

// RevokeToken removes a token. After it returns, the token starts nothing. Runs that it started continue, and wait for
// their user as before.
func (r *Records) RevokeToken(ctx context.Context, uid, id string) error {
	found := false
	err := r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		i := slices.IndexFunc(u.Tokens, func(t run.AgentToken) bool { return t.ID == id })
		if found = i >= 0; found {
			u.Tokens = slices.Delete(slices.Clone(u.Tokens), i, i+1)
		}
		return &audit.Entry{Kind: audit.TokenRevoked, Ref: id}, found
	})
	if err == nil && !found {
		return fault.NotFound()
	}
	return err
}

// Bearer returns the user of the token and the token's record, and records the use. It needs one read and seldom a
// write. It returns AuthError unauthenticated for an invalid token, and for the token of a disabled user.
func (r *Records) Bearer(ctx context.Context, token string) (uid string, t run.AgentToken, err error) {
	claim, ok := agenttoken.Parse(token)
	if !ok {
		return "", t, errNoToken()
	}
	doc, u, err := r.user(ctx, claim.UID)
	if err != nil {
		return "", t, err
	}
	found := claim.Find(&u)
	switch {
	case found == nil:
		return "", t, errNoToken()
	case u.Disabled:
		return "", t, u.CheckEnabled()
	}
	if !agenttoken.Use(found, r.now()) {
		return u.UID, *found, nil
	}
	_, err = r.updateUserFrom(ctx, u.UID, doc, func(u *run.User, _ time.Time) (bool, error) {
		if found = claim.Find(u); found == nil {
			return false, errNoToken() // the token was revoked in the meantime
		}
		t = *found
		return agenttoken.Use(found, r.now()), u.CheckEnabled()
	})
	return u.UID, t, err
}

func errNoToken() error {
	return fault.New(fault.Auth, fault.CodeUnauthenticated, "This is not an agent's token, or it was revoked.")
}
