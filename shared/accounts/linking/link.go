package linking

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// link is the content of a document in connections: one user's consent.
type link struct {
	ID string `json:"id"` // of this consent; identifies its access tokens in memory
	// Account is the ID of the first consent for this account, and stays as long as the account is linked. Older
	// documents have only ID.
	Account string `json:"account,omitempty"`
	Identity
	// Client is the ID of the OAuth client that the user consented to. Links of earlier releases have none.
	Client  string   `json:"client,omitempty"`
	UID     string   `json:"uid"`
	Scopes  []string `json:"scopes"`  // as granted, which may be fewer than requested
	Refresh []byte   `json:"refresh"` // the refresh token, encrypted for UID; null if the provider gave none
	Broken  bool     `json:"broken,omitempty"`
	// Bound means that the tokens are encrypted for this account, not only for UID. Links of earlier releases are not
	// bound until their users link the account again.
	Bound    bool      `json:"bound,omitempty"`
	LinkedAt time.Time `json:"linkedAt"`

	// The following fields are for a provider whose access tokens are stored (kept.go).
	Access      []byte    `json:"access,omitempty"`     // the access token, encrypted for UID
	AccessUntil time.Time `json:"accessUntil,omitzero"` // when it expires; zero: never
	Renewing    time.Time `json:"renewing,omitzero"`    // until this time, only one process may use the refresh token

	provider Provider
	version  time.Time
	stored   json.RawMessage // the content of that version, unless it is of another consent
}

// Identity identifies the linked account at the provider.
type Identity struct {
	Subject string `json:"subject,omitempty"` // the provider's permanent ID of the account
	Email   string `json:"email,omitempty"`   // the account's e-mail address, at providers that name accounts by it
	Login   string `json:"login,omitempty"`   // the account's name, at providers that have names
}

// load reads the user's link. The version is zero if there is no link.
func (p Provider) load(ctx context.Context, st store.Store, uid string) (link, error) {
	docs, err := st.Get(ctx, p.path(uid))
	if err != nil {
		return link{}, storeDown(err)
	}
	return p.linkIn(docs[0], uid)
}

// known is like load for a caller whose context may contain the document already ([Provider.Reads]).
func (p Provider) known(ctx context.Context, st store.Store, uid string) (link, error) {
	d, err := document.Read(ctx, st, p.path(uid))
	if err != nil {
		return link{}, storeDown(err)
	}
	return p.linkIn(d, uid)
}

func (p Provider) linkIn(d store.Doc, uid string) (link, error) {
	l := link{provider: p, version: d.Version, stored: d.Data}
	if !d.Exists() {
		return l, nil
	}
	if err := document.Decode(d, &l); err != nil || l.UID != uid {
		return link{}, storeDown(errors.New("linking: the document of a linked account is damaged"))
	}
	return l, nil
}

// path returns the path of the user's link.
func (p Provider) path(uid string) string { return document.ConnectionPath(p.ID, uid) }

// Reads returns the path of the document that contains the user's linked account. If the caller has read it and put it
// into the context ([document.With]), Place and Client do not read it again.
func (p Provider) Reads(uid string) []string { return []string{p.path(uid)} }

// Reads calls [Provider.Reads] for the accounts' provider.
func (a *Accounts) Reads(uid string) []string { return a.cfg.Reads(uid) }

// save replaces the link that was read, in one commit with the other writes, and returns its new version. It returns
// store.ErrConflict if the link has changed.
func (a *Accounts) save(ctx context.Context, l link, also ...store.Write) (version time.Time, err error) {
	w, err := document.Put(store.Doc{Path: a.cfg.path(l.UID), Version: l.version, Data: l.stored}, nil, l)
	if err != nil {
		return time.Time{}, err
	}
	versions, err := a.store.Commit(ctx, append(also, w)...)
	if err != nil {
		return time.Time{}, err
	}
	return versions[len(versions)-1], nil
}

// usable returns the user's link, or an error if it does not exist, is broken or lacks a scope.
func (p Provider) usable(ctx context.Context, st store.Store, uid string, scopes []string) (link, error) {
	l, err := p.known(ctx, st, uid)
	if err != nil {
		return link{}, err
	}
	return l, l.usable(scopes)
}

// usable returns an error if the link does not exist, is broken or lacks a scope.
func (l link) usable(scopes []string) error {
	if l.version.IsZero() {
		return fault.New(fault.Auth, fault.CodeReauth, "No %s account is linked. Please link one first. Open Linked "+
			"accounts in the console.", l.provider.Name)
	}
	if l.Broken {
		return l.provider.reauth()
	}
	return l.covers(scopes)
}

func (l link) covers(scopes []string) error {
	var missing []string
	for _, s := range scopes {
		if !slices.Contains(l.Scopes, s) {
			missing = append(missing, s)
		}
	}
	if missing == nil {
		return nil
	}
	return fault.New(fault.Auth, fault.CodeScope,
		"The linked %s account lacks access that this needs. Link it again, and grant all the access it asks for.",
		l.provider.Name).Because(errors.New("not granted: " + strings.Join(missing, " ")))
}

func (p Provider) reauth() *fault.Error {
	return fault.New(fault.Auth, fault.CodeReauth,
		"%s no longer accepts the linked account. Please link it again.", p.Name)
}

// Place returns the user's linked account. An approval shows and hashes it. Place checks that the link is not broken
// and has all the scopes, without asking the provider. Its errors are AuthError reauth_required, AuthError
// scope_missing, whose cause names the scopes, and ToolExecutionError store_unavailable.
func (a *Accounts) Place(ctx context.Context, uid string, scopes []string) (tool.Place, error) {
	return a.cfg.Place(ctx, a.store, uid, scopes)
}

// Place is like [Accounts.Place] for programs without an OAuth client.
func (p Provider) Place(ctx context.Context, st store.Store, uid string, scopes []string) (tool.Place, error) {
	l, err := p.usable(ctx, st, uid, scopes)
	if err != nil {
		return tool.Place{}, err
	}
	return l.place(), nil
}

// place identifies the account. The identity stays the same after a new consent for the same account. It changes when
// the account is unlinked and linked again, or when another account is linked.
func (l link) place() tool.Place {
	name := cmp.Or(l.Email, l.Login, "your linked "+l.provider.Name+" account")
	return tool.Place{Label: l.provider.Label, Name: name, ID: cmp.Or(l.Account, l.ID)}
}

// renews reports whether the link is a new consent for the account of the previous one.
func (l link) renews(before link) bool {
	if before.version.IsZero() {
		return false
	}
	if before.Subject != "" && l.Subject != "" {
		return before.Subject == l.Subject
	}
	return before.Email != "" && before.Email == l.Email || before.Login != "" && before.Login == l.Login
}

// Connection describes a linked account to its user.
type Connection struct {
	Provider string    `json:"provider"` // [Provider.ID]
	Status   string    `json:"status"`   // "linked", or "broken" when it must be linked again; Source may have others
	Email    string    `json:"email,omitempty"`
	Login    string    `json:"login,omitempty"`
	Scopes   []string  `json:"scopes"`
	LinkedAt time.Time `json:"linkedAt,omitzero"`
	Source   string    `json:"source,omitempty"` // the setting that provides the account, if it was not linked by the user
}

// List returns the user's linked accounts: none or one.
func (a *Accounts) List(ctx context.Context, uid string) ([]Connection, error) {
	return a.cfg.Linked(ctx, a.store, uid)
}

// Linked is like [Accounts.List] for operators, who have access to the store but no OAuth client.
func (p Provider) Linked(ctx context.Context, st store.Store, uid string) ([]Connection, error) {
	l, err := p.load(ctx, st, uid)
	if err != nil || l.version.IsZero() {
		return []Connection{}, err
	}
	status := "linked"
	if l.Broken {
		status = "broken"
	}
	return []Connection{{Provider: p.ID, Status: status, Email: l.Email, Login: l.Login,
		Scopes: append([]string{}, l.Scopes...), LinkedAt: l.LinkedAt}}, nil
}
