package linking

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// pending is a document of oauth_states: a consent that was started. Each user has maxPending documents for them, which
// bounds what a user can store; the newest consent replaces the oldest. The state names the document and contains a
// secret. Only a digest of the secret is stored, so only the user has the state itself.
//
// The collection is therefore bounded by maxPending documents for each user who started a consent within consentTTL and
// the sweep's interval of a minute. There is deliberately no limit across users: every consent would have to update a
// shared counter, and a few accounts could use up the limit and keep everyone else from linking an account.
type pending struct {
	Provider  string    `json:"provider,omitempty"` // none is Google, whose documents are older
	UID       string    `json:"uid"`
	State     []byte    `json:"state,omitempty"` // digest; the previous release named the document by it
	Verifier  []byte    `json:"verifier"`        // the PKCE verifier, encrypted
	Browser   []byte    `json:"browser"`         // digest
	Scopes    []string  `json:"scopes"`
	ReturnTo  string    `json:"returnTo"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// maxPending is the maximum number of a user's unfinished consents at one provider.
const maxPending = 5

// sweepPage is the maximum number of ended consents that one commit deletes.
const sweepPage = 200

var placeInState = lazyregexp.New(`^([0-9a-f]{32}-[0-9])\.[A-Za-z0-9_-]{43}$`)

// pendingAt returns the provider's name in documents of pending consents.
func (a *Accounts) pendingAt() string {
	if a.cfg.ID == "google" {
		return ""
	}
	return a.cfg.ID
}

// pendingPlaces returns the paths of the user's pending consents at the provider.
func (a *Accounts) pendingPlaces(uid string) []string {
	owner := uid
	if at := a.pendingAt(); at != "" {
		owner = at + "\x00" + uid // no UID contains that character, so two users never share a path
	}
	paths := make([]string, maxPending)
	for i := range paths {
		paths[i] = fmt.Sprintf("%s/%s-%d", document.Consents, hex.EncodeToString(digest(owner)[:16]), i)
	}
	return paths
}

func pendingPath(state string) string {
	if m := placeInState.FindStringSubmatch(state); m != nil {
		return document.Consents + "/" + m[1]
	}
	return document.Consents + "/" + hex.EncodeToString(digest(state)) // the path in the previous release
}

// keep stores the consent and returns its state.
func (a *Accounts) keep(ctx context.Context, p pending, verifier string) (state string, err error) {
	for range 3 {
		docs, err := a.store.Get(ctx, a.pendingPlaces(p.UID)...)
		if err != nil {
			return "", storeDown(err)
		}
		if state, err = a.keepIn(ctx, oldest(docs), p, verifier); !errors.Is(err, store.ErrConflict) {
			return state, err
		}
	}
	return "", storeDown(store.ErrConflict)
}

// keepIn stores the consent in a document and replaces the content that was read there.
func (a *Accounts) keepIn(ctx context.Context, place store.Doc, p pending, verifier string) (state string, err error) {
	key, err := secret(a.cfg.Rand)
	if err != nil {
		return "", err
	}
	state = strings.TrimPrefix(place.Path, document.Consents+"/") + "." + key
	p.State = digest(state)
	p.Verifier, err = a.cipher.EncryptWithContext(ctx, []byte(verifier), a.cfg.verifierOf(p.UID, state))
	if err != nil {
		return "", a.cfg.unreadable(err)
	}
	// Firestore's TTL policy uses expireAt and deletes within a day; the sweep uses due and deletes within a minute, in
	// every store.
	ends := p.ExpiresAt.UTC().Truncate(time.Microsecond)
	fields := document.ConsentFields(ends)
	w, err := document.Known(place, fields, p)
	if err != nil {
		return "", err
	}
	_, err = a.store.Commit(ctx, w)
	if err != nil && !errors.Is(err, store.ErrConflict) {
		err = storeDown(err)
	}
	return state, err
}

// oldest returns the document for a new consent: one that does not exist, or the one whose consent ends first.
func oldest(places []store.Doc) (found store.Doc) {
	var ends time.Time
	for i, d := range places {
		if !d.Exists() {
			return d
		}
		if at := document.ConsentEnds(d); i == 0 || at.Before(ends) {
			found, ends = d, at
		}
	}
	return found
}

// takeConsent returns the consent that the state belongs to and deletes it, so that it is never returned again.
func (a *Accounts) takeConsent(ctx context.Context, ans Answer) (pending, error) {
	if ans.Browser == "" {
		return pending{}, fault.Invalid("state", "an account must be linked in the browser in which you began, "+
			"with cookies allowed; please begin again there")
	}
	unknown := fault.Invalid("state", "this link was used, has expired or was started in another browser; "+
		"please begin again to link the account")
	path := pendingPath(ans.State)
	docs, err := a.store.Get(ctx, path)
	if err != nil {
		return pending{}, storeDown(err)
	}
	var p pending
	if !docs[0].Exists() || document.Decode(docs[0], &p) != nil || p.Provider != a.pendingAt() {
		return pending{}, unknown
	}
	if p.State != nil && subtle.ConstantTimeCompare(p.State, digest(ans.State)) != 1 {
		return pending{}, unknown // the caller knows the document's name but not the secret; the consent stays
	}
	_, err = a.store.Commit(ctx, store.Delete(path, docs[0].Version))
	if errors.Is(err, store.ErrConflict) {
		return pending{}, unknown
	}
	if err != nil {
		return pending{}, storeDown(err)
	}
	if subtle.ConstantTimeCompare(p.Browser, digest(ans.Browser)) != 1 || a.cfg.Now().After(p.ExpiresAt) {
		return pending{}, unknown
	}
	return p, nil
}

// Sweep deletes the consents that have ended without a callback, a page at a time, until ctx ends. It needs no OAuth
// client. Its error is the store's.
func Sweep(ctx context.Context, st store.Store, now time.Time) (deleted int, err error) {
	ended := document.EndedConsents(now, sweepPage)
	for {
		docs, err := st.Query(ctx, ended)
		if err != nil || len(docs) == 0 {
			return deleted, err
		}
		writes := make([]store.Write, len(docs))
		for i, d := range docs {
			writes[i] = store.Delete(d.Path, d.Version)
		}
		_, err = st.Commit(ctx, writes...)
		if errors.Is(err, store.ErrConflict) {
			return deleted, nil // a consent was replaced or used; the next sweep deletes the others
		}
		if err != nil {
			return deleted, err
		}
		if deleted += len(docs); len(docs) < sweepPage {
			return deleted, nil
		}
	}
}
