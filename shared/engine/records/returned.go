package records

import (
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
)

// Returned compares a user's documents with the entries of the user's own audit chain. It returns a sentence for each
// permission that the chain says was taken away and that a document gives again, as after a change in the database or
// an older copy of the document. No sentence contains an address.
func Returned(ctx context.Context, st store.Store, uid string, entries []audit.Entry) (found []string, err error) {
	s := revokedIn(entries)
	u := run.User{UID: uid}
	if _, err := document.Get(ctx, st, document.UserPath(uid), &u); err != nil {
		return nil, err
	}
	if s.disabled && !u.Disabled {
		found = append(found, "the user was disabled, and the document of the user does not say so")
	}
	for _, t := range u.Tokens {
		if s.tokens[t.ID] {
			found = append(found, "the token "+t.ID+" was revoked, and the document of the user has it")
		}
	}
	for _, e := range u.Allow {
		hash := audit.InputHash(u.Nonce, e.ID)
		if len(u.Nonce) == 0 { // the document is older than the removal, which would have stored a nonce
			hash = ""
		}
		if s.allowed[withdrawn{hash, e.Approval}] {
			found = append(found, "an always-allow entry of the approval "+e.Approval+
				" was removed, and the document of the user has it")
		}
	}
	hosts, err := s.hostsIn(ctx, st, uid)
	if err != nil {
		return nil, err
	}
	passkeys, err := s.passkeysIn(ctx, st, uid)
	if err != nil {
		return nil, err
	}
	accounts, err := s.accountsIn(ctx, st, uid)
	return slices.Concat(found, hosts, passkeys, accounts), err
}

func (s revoked) passkeysIn(ctx context.Context, st store.Store, uid string) (found []string, err error) {
	var set passkey.Set
	if _, err := document.Get(ctx, st, document.PasskeysPath(uid), &set); err != nil {
		return nil, err
	}
	for _, c := range set.Passkeys {
		if s.passkeys[c.ID] {
			found = append(found, "the passkey "+c.ID+" was removed, and the document of the user's passkeys has it")
		}
	}
	return found, nil
}

// revoked is what a user's own chain says about permissions.
type revoked struct {
	disabled bool

	tokens, accounts, passkeys map[string]bool

	allowed map[withdrawn]bool
	hosts   map[string]string // what runs on a host without approval, by ID; gone: the host was removed
}

// withdrawn identifies an entry of the always-allow list that was removed. Without a hash, it stands for every entry of
// the approval.
type withdrawn struct{ hash, approval string }

// gone is the rule of a removed host.
const gone = "removed"

func revokedIn(entries []audit.Entry) revoked {
	s := revoked{tokens: map[string]bool{}, accounts: map[string]bool{}, passkeys: map[string]bool{},
		allowed: map[withdrawn]bool{}, hosts: map[string]string{}}
	for _, e := range entries {
		switch e.Kind {
		case audit.Disabled, audit.Enabled:
			s.disabled = e.Kind == audit.Disabled
		case audit.TokenRevoked:
			s.tokens[e.Ref] = true
		case audit.Withdrew:
			if e.ApprovalID != "" { // earlier releases did not record it
				s.allowed[withdrawn{e.InputHash, e.ApprovalID}] = true
				s.allowed[withdrawn{"", e.ApprovalID}] = true
			}
		case audit.PasskeyAdded, audit.PasskeyRemoved:
			s.passkeys[e.Ref] = e.Kind == audit.PasskeyRemoved
		case audit.Unlinked:
			s.accounts[e.Ref] = true
		case audit.HostAdded, audit.HostChanged:
			s.hosts[e.Ref] = e.Decision
		case audit.HostRemoved:
			s.hosts[e.Ref] = gone
		}
	}
	return s
}

func (s revoked) hostsIn(ctx context.Context, st store.Store, uid string) (found []string, err error) {
	for id, rule := range s.hosts {
		var h terminal.Host
		d, err := document.Get(ctx, st, document.HostPath(uid, id), &h)
		switch {
		case err != nil:
			return nil, err
		case rule == gone && d.Exists():
			found = append(found, "the host "+id+" was removed, and its document exists")
		case d.Exists() && h.Unasked() != terminal.AutoRunNone && string(h.Unasked()) != rule:
			found = append(found, "on the host "+id+", "+rule+" was allowed without approval, and its document says "+
				string(h.Unasked()))
		}
	}
	return found, nil
}

func (s revoked) accountsIn(ctx context.Context, st store.Store, uid string) (found []string, err error) {
	for _, provider := range []string{"google", "github"} {
		var l struct {
			ID string `json:"id"`
		}
		if _, err := document.Get(ctx, st, document.ConnectionPath(provider, uid), &l); err != nil {
			return nil, err
		}
		if l.ID != "" && s.accounts[l.ID] {
			found = append(found, "the "+provider+" account was unlinked, and its document exists")
		}
	}
	return found, nil
}
