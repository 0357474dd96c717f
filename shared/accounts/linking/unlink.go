package linking

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Unlinked is the result of Unlink.
type Unlinked struct {
	Existed bool // whether an account was linked
	// Revoked reports whether the grant at the provider is revoked, by this call or before. If not, the user can
	// revoke it on the provider's page (Provider.Settings).
	Revoked bool
}

// Unlink tries to revoke the access at the provider, and deletes the link whether or not that worked. Its only error is
// ToolExecutionError store_unavailable, and then the link still exists.
func (a *Accounts) Unlink(ctx context.Context, uid string) (Unlinked, error) {
	l, err := a.cfg.load(ctx, a.store, uid)
	if err != nil || l.version.IsZero() {
		return Unlinked{}, err
	}
	revoked := a.revoke(ctx, l)
	a.tokens.drop(l.tokenKey())
	if _, err := a.cfg.Forget(ctx, a.store, uid, a.cfg.Now()); err != nil {
		return Unlinked{}, err
	}
	return Unlinked{Existed: true, Revoked: revoked}, nil
}

// Forget deletes the user's link without asking the provider, for programs without an OAuth client. Its only error is
// ToolExecutionError store_unavailable, and then the link still exists.
func (p Provider) Forget(ctx context.Context, st store.Store, uid string, now time.Time) (existed bool, err error) {
	for range 3 {
		docs, err := st.Get(ctx, p.path(uid))
		if err != nil {
			return false, storeDown(err)
		}
		if !docs[0].Exists() {
			return existed, nil
		}
		existed = true
		var l struct{ ID string } // only the ID is read, in case the rest is damaged
		_ = document.Decode(docs[0], &l)
		entry, err := audit.Append(ctx, st, audit.Entry{UID: uid, At: now, Kind: audit.Unlinked, Ref: l.ID})
		if err == nil {
			_, err = st.Commit(ctx, append(entry, store.Delete(p.path(uid), docs[0].Version))...)
		}
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return false, storeDown(err)
		}
	}
	return false, storeDown(store.ErrConflict)
}

// revoke reports whether the access is revoked.
func (a *Accounts) revoke(ctx context.Context, l link) bool {
	ctx, cancel := a.calls(ctx)
	defer cancel()
	if a.cfg.Keeps {
		return a.revokeKept(ctx, l)
	}
	refresh, err := a.refreshIn(ctx, l)
	if err != nil {
		return false
	}
	done, err := a.cfg.Revoke(ctx, a.cfg.HTTPClient, refresh)
	return done && err == nil
}

// revokeKept revokes with the access token, and renews the token first if the provider no longer accepts it.
func (a *Accounts) revokeKept(ctx context.Context, l link) bool {
	rejected := ""
	for range 2 {
		if l.Broken {
			return false
		}
		value, err := a.access(ctx, l, rejected, false)
		if err != nil {
			return false
		}
		done, err := a.cfg.Revoke(ctx, a.cfg.HTTPClient, value)
		if !errors.Is(err, ErrRefused) {
			return done && err == nil
		}
		rejected = value
	}
	return false
}
