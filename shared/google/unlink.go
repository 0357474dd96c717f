package google

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
)

// Unlinked is the result of Unlink.
type Unlinked struct {
	Existed bool // whether there was one
	// Revoked reports whether the grant at Google is revoked, by this call or before. If not, the user can revoke it:
	// https://myaccount.google.com/permissions.
	Revoked bool
}

// Unlink tries to revoke the access at Google, and deletes the link whether or not that worked. Its only error is
// ToolExecutionError store_unavailable, and then the link still exists.
func (a *Accounts) Unlink(ctx context.Context, uid string) (Unlinked, error) {
	l, err := a.load(ctx, uid)
	if err != nil || l.version.IsZero() {
		return Unlinked{}, err
	}
	revoked := a.revoke(ctx, l)
	a.tokens.drop(tokenKey(uid, l.ID))
	if _, err := Forget(ctx, a.store, uid, a.cfg.Now()); err != nil {
		return Unlinked{}, err
	}
	return Unlinked{Existed: true, Revoked: revoked}, nil
}

// Forget deletes the user's link without asking Google, for programs without an OAuth client. Its only error is
// ToolExecutionError store_unavailable, and then the link still exists.
func Forget(ctx context.Context, st store.Store, uid string, now time.Time) (existed bool, err error) {
	for range 3 {
		docs, err := st.Get(ctx, document.ConnectionPath(uid))
		if err != nil {
			return false, storeDown(err)
		}
		if !docs[0].Exists() {
			return existed, nil
		}
		existed = true
		var l struct{ ID string } // read alone, in case the rest is damaged
		_ = document.Decode(docs[0], &l)
		entry, err := audit.Append(ctx, st, audit.Entry{UID: uid, At: now, Kind: audit.Unlinked, Ref: l.ID})
		if err == nil {
			_, err = st.Commit(ctx, append(entry, store.Delete(document.ConnectionPath(uid), docs[0].Version))...)
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

// revoke reports whether the refresh token is revoked (RFC 7009; Google returns 400 invalid_token for one that already
// was).
func (a *Accounts) revoke(ctx context.Context, l link) bool {
	ctx, cancel := a.calls(ctx)
	defer cancel()
	refresh, err := a.open(ctx, l)
	if err != nil || a.cfg.RevokeURL == "" {
		return false
	}
	form := strings.NewReader(url.Values{"token": {refresh}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.cfg.RevokeURL, form)
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := a.cfg.HTTPClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return true
	}
	var answer struct {
		Error string `json:"error"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer)
	return err == nil && resp.StatusCode == http.StatusBadRequest && answer.Error == "invalid_token"
}
