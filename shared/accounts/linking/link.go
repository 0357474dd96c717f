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

// link is a document of connections: one user's consent.
type link struct {
	ID string `json:"id"` // of this consent; access tokens in memory belong to it
	// Account is the first consent's ID for as long as this account stays linked; older documents have ID alone.
	Account string `json:"account,omitempty"`
	Identity
	UID      string    `json:"uid"`
	Scopes   []string  `json:"scopes"`  // as granted, which may be fewer than requested
	Refresh  []byte    `json:"refresh"` // the refresh token, encrypted for UID; null where the provider gave none
	Broken   bool      `json:"broken,omitempty"`
	LinkedAt time.Time `json:"linkedAt"`

	// Of a provider whose access tokens are kept (kept.go).
	Access      []byte    `json:"access,omitempty"`     // the access token, encrypted for UID
	AccessUntil time.Time `json:"accessUntil,omitzero"` // its end; zero: it has none
	Renewing    time.Time `json:"renewing,omitzero"`    // until then one process alone may use the refresh token

	provider Provider
	version  time.Time
}

// Identity says which of the provider's accounts is linked.
type Identity struct {
	Subject string `json:"subject,omitempty"` // the provider's id of the account, which stays
	Email   string `json:"email,omitempty"`   // the name that its user knows, or
	Login   string `json:"login,omitempty"`   // where accounts have names
}

// load returns the user's link; if there is none, the version is zero.
func (p Provider) load(ctx context.Context, st store.Store, uid string) (link, error) {
	docs, err := st.Get(ctx, p.path(uid))
	if err != nil {
		return link{}, storeDown(err)
	}
	return p.linkIn(docs[0], uid)
}

// known is load for a caller that may have read the document with others ([Provider.Reads]).
func (p Provider) known(ctx context.Context, st store.Store, uid string) (link, error) {
	d, err := document.Read(ctx, st, p.path(uid))
	if err != nil {
		return link{}, storeDown(err)
	}
	return p.linkIn(d, uid)
}

func (p Provider) linkIn(d store.Doc, uid string) (link, error) {
	l := link{provider: p, version: d.Version}
	if !d.Exists() {
		return l, nil
	}
	if err := document.Decode(d, &l); err != nil || l.UID != uid {
		return link{}, storeDown(errors.New("linking: a connection's document is damaged"))
	}
	return l, nil
}

// path returns the path of the user's link.
func (p Provider) path(uid string) string { return document.ConnectionPath(p.ID, uid) }

// Reads returns the path of the document that says which account the user has linked. Place and Client find it in their
// context where their caller has read it ([document.With]).
func (p Provider) Reads(uid string) []string { return []string{p.path(uid)} }

// Reads is [Provider.Reads].
func (a *Accounts) Reads(uid string) []string { return a.cfg.Reads(uid) }

// save replaces the link that was read, in one commit with the other writes, and returns its new version. It returns
// store.ErrConflict if the link has changed.
func (a *Accounts) save(ctx context.Context, l link, also ...store.Write) (version time.Time, err error) {
	data, err := json.Marshal(l)
	if err != nil {
		return time.Time{}, err
	}
	w := store.Update(a.cfg.path(l.UID), l.version, nil, data)
	if l.version.IsZero() {
		w = store.Create(a.cfg.path(l.UID), nil, data)
	}
	versions, err := a.store.Commit(ctx, append(also, w)...)
	if err != nil {
		return time.Time{}, err
	}
	return versions[len(versions)-1], nil
}

// usable returns the user's link if it exists, is not broken and has the scopes.
func (p Provider) usable(ctx context.Context, st store.Store, uid string, scopes []string) (link, error) {
	l, err := p.known(ctx, st, uid)
	if err != nil {
		return link{}, err
	}
	return l, l.usable(scopes)
}

// usable returns nil if there is a link, which is not broken and has the scopes.
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
		"%s does not accept the linked account any more. Please link it again.", p.Name)
}

// Place returns the account that the user has linked, which an approval shows and hashes, if the link is not broken and
// has all the scopes, as far as is known without asking the provider. Its errors are AuthError reauth_required and
// AuthError scope_missing, whose causes name the scopes, and ToolExecutionError store_unavailable.
func (a *Accounts) Place(ctx context.Context, uid string, scopes []string) (tool.Place, error) {
	return a.cfg.Place(ctx, a.store, uid, scopes)
}

// Place is [Accounts.Place] for programs without an OAuth client.
func (p Provider) Place(ctx context.Context, st store.Store, uid string, scopes []string) (tool.Place, error) {
	l, err := p.usable(ctx, st, uid, scopes)
	if err != nil {
		return tool.Place{}, err
	}
	return l.place(), nil
}

// place identifies the account: it is the same after a new consent for the account, and another one after the account
// was unlinked or another one was linked.
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
	Source   string    `json:"source,omitempty"` // the setting that provides the account, if no user linked it
}

// List returns the user's linked accounts: none or one.
func (a *Accounts) List(ctx context.Context, uid string) ([]Connection, error) {
	return a.cfg.Linked(ctx, a.store, uid)
}

// Linked is [Accounts.List] for operators, who have the store and no OAuth client.
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
