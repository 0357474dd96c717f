// Package passkeys keeps the users' passkeys: it enrols, lists, names and removes them. To add one, a person proves
// more than a session that could be stolen: a recent second factor of the issuer, or an operator's one-time code.
package passkeys

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/passkey/enrol"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Limits of an enrolment.
const (
	pendingLife = 10 * time.Minute // of a challenge
	recent      = 10 * time.Minute // since the person signed in with a second factor
	maxName     = 60               // bytes
	maxRaces    = 10
)

// Passkeys keeps the passkeys. Strong.Keys must be able to sign.
type Passkeys struct {
	Store     store.Store
	Strong    *passkey.Strong
	Now       func() time.Time
	Random    io.Reader // nil: crypto/rand
	AuditDays int
}

// View is a passkey as its user sees it.
type View struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
	Transports []string  `json:"transports,omitempty"`
	Synced     bool      `json:"synced,omitempty"`
}

// Proof is what a person must give to add a passkey.
type Proof string

// The values of Proof.
const (
	ByToken Proof = "token" // nothing more: the token shows a recent second factor
	ByCode  Proof = "code"  // an operator's one-time code
)

// ProofFor returns what a person must give who was authenticated like this.
func (p *Passkeys) ProofFor(auth decision.Auth) Proof {
	if age := p.Now().Sub(auth.At); !auth.At.IsZero() && age < recent && secondFactor(auth.Methods) {
		return ByToken
	}
	return ByCode
}

// secondFactor reports whether the methods of RFC 8176 are more than one factor.
func secondFactor(methods string) bool {
	all := strings.Fields(methods)
	has := func(of ...string) bool {
		return slices.ContainsFunc(all, func(m string) bool { return slices.Contains(of, m) })
	}
	return has("mfa") || has("pwd", "pin") &&
		has("otp", "sms", "tel", "hwk", "swk", "sc", "fpt", "face", "iris", "retina")
}

// Link returns the address of the console's page of passkeys.
func (p *Passkeys) Link() string { return p.Strong.Site.Console + "/#/passkeys" }

// List returns the user's passkeys that count, the oldest first.
func (p *Passkeys) List(ctx context.Context, uid string) ([]View, error) {
	_, set, err := p.read(ctx, uid)
	views := []View{}
	for _, c := range p.Strong.Enrolled(&set, uid) {
		views = append(views, view(c))
	}
	return views, err
}

func view(c passkey.Credential) View {
	return View{c.ID, c.Name, c.CreatedAt, c.LastUsedAt, c.Transports, c.Synced}
}

// Begin begins an enrolment, and returns the options for the browser. shown is the user's name in the authenticator.
func (p *Passkeys) Begin(ctx context.Context, uid, shown string) (options any, err error) {
	challenge := make([]byte, 32)
	if _, err := io.ReadFull(p.random(), challenge); err != nil {
		return nil, err
	}
	err = p.update(ctx, uid, func(set *passkey.Set) (*audit.Entry, error) {
		if err := room(set); err != nil {
			return nil, err
		}
		set.Pending = &passkey.Pending{Challenge: challenge, Until: p.now().Add(pendingLife)}
		options = enrol.Options(p.Strong.Site, enrol.User{UID: uid, Name: shown}, challenge, set.Passkeys)
		return nil, nil
	})
	return options, err
}

func room(set *passkey.Set) error {
	if len(set.Passkeys) >= passkey.Most {
		return fault.New(fault.Policy, fault.CodeTooMany,
			"You have %d passkeys, which is the limit. Remove one that you no longer use.", passkey.Most)
	}
	return nil
}

// New is a passkey that a user adds.
type New struct {
	Name   string
	Answer []byte // RegistrationResponseJSON
	Code   string // the operator's code; empty: none
	Auth   decision.Auth
}

// codeRefused is the error code of a one-time code that does not count.
const codeRefused fault.Code = "code_refused"

// Add adds a passkey. Errors: PolicyError second_factor, code_refused, passkey_refused, too_many; ValidationError for
// the name.
func (p *Passkeys) Add(ctx context.Context, uid string, in New) (v View, err error) {
	name, err := nameOf(in.Name)
	if err != nil {
		return v, err
	}
	proof := p.ProofFor(in.Auth)
	if proof == ByCode && in.Code == "" {
		return v, fault.New(fault.Policy, fault.CodeSecondFactor, "To add a passkey, sign in again with a second "+
			"factor, or ask an operator for a one-time code.")
	}
	var refused error
	err = p.update(ctx, uid, func(set *passkey.Set) (*audit.Entry, error) {
		refused = nil
		if proof == ByCode && !p.Strong.Accepts(set.Code, uid, in.Code, p.Now()) {
			refused = fault.New(fault.Policy, codeRefused,
				"This code does not count: it is wrong, was used, or is over.")
			if set.Code != nil && set.Code.Tries < passkey.MaxTries {
				set.Code.Tries++
			}
			return nil, nil
		}
		c, err := p.check(set, in.Answer)
		if err != nil {
			return nil, err
		}
		c.Name = name
		proofs, err := p.Strong.Keys.Sign(ctx, decision.Signature{At: p.now(), Auth: in.Auth}, c.Statement(uid))
		if err != nil {
			return nil, fault.Unavailable("The passkey could not be signed, so it was not added. Please try again.",
				err)
		}
		c.Proof = proofs[0]
		set.Passkeys = append(set.Passkeys, c)
		if set.Pending = nil; proof == ByCode {
			set.Code = nil
		}
		v = view(c)
		return &audit.Entry{Kind: audit.PasskeyAdded, Ref: c.ID}, nil
	})
	return v, errors.Join(err, refused)
}

// check checks the browser's answer against the enrolment in progress.
func (p *Passkeys) check(set *passkey.Set, answer []byte) (c passkey.Credential, err error) {
	if err := room(set); err != nil {
		return c, err
	}
	refused := fault.New(fault.Policy, fault.CodePasskeyRefused, "The passkey was not accepted. Please begin again.")
	if set.Pending == nil || !p.Now().Before(set.Pending.Until) {
		return c, refused
	}
	c, err = enrol.Check(answer, set.Pending.Challenge, p.Strong.Site, p.now())
	switch {
	case err != nil:
		return c, refused.Because(err)
	case set.Find(c.ID) != nil:
		return c, refused
	}
	return c, nil
}

// Rename changes the name of a passkey.
func (p *Passkeys) Rename(ctx context.Context, uid, id, name string) (v View, err error) {
	if name, err = nameOf(name); err != nil {
		return v, err
	}
	err = p.update(ctx, uid, func(set *passkey.Set) (*audit.Entry, error) {
		c := set.Find(id)
		if c == nil {
			return nil, fault.NotFound()
		}
		c.Name = name
		v = view(*c)
		return nil, nil
	})
	return v, err
}

// Remove removes a passkey. After it returns, no decision that the passkey confirmed counts for a call that has not
// started.
func (p *Passkeys) Remove(ctx context.Context, uid, id string) error {
	return p.update(ctx, uid, func(set *passkey.Set) (*audit.Entry, error) {
		i := slices.IndexFunc(set.Passkeys, func(c passkey.Credential) bool { return c.ID == id })
		if i < 0 {
			return nil, fault.NotFound()
		}
		set.Passkeys = slices.Delete(set.Passkeys, i, i+1)
		return &audit.Entry{Kind: audit.PasskeyRemoved, Ref: id}, nil
	})
}

// NewCode stores a one-time code for the user, in place of an earlier one, and returns its text.
func (p *Passkeys) NewCode(ctx context.Context, uid string) (text string, err error) {
	code, text, err := passkey.NewCode(p.random())
	if err != nil {
		return "", err
	}
	until := p.now().Add(passkey.CodeLife)
	proofs, err := p.Strong.Keys.Sign(ctx, decision.Signature{At: p.now()}, code.Statement(uid, until))
	if err != nil {
		return "", err
	}
	code.Proof = proofs[0]
	return text, p.update(ctx, uid, func(set *passkey.Set) (*audit.Entry, error) {
		set.Code = &code
		return nil, nil
	})
}

// nameOf returns the name of a passkey.
func nameOf(name string) (string, error) {
	name = strings.TrimSpace(name)
	shown, hidden := visible.Line(name)
	switch {
	case name == "":
		return "Passkey", nil
	case len(name) > maxName:
		return "", fault.Invalid("name", "%d bytes; the limit is %d", len(name), maxName)
	case hidden || shown != name:
		return "", fault.Invalid("name", "the name must be one line of visible characters")
	}
	return name, nil
}

func (p *Passkeys) read(ctx context.Context, uid string) (d store.Doc, set passkey.Set, err error) {
	d, err = document.Get(ctx, p.Store, document.PasskeysPath(uid), &set)
	if err != nil {
		err = fault.Unavailable("Your passkeys could not be read. Please try again.", err)
	}
	return d, set, err
}

// update changes the user's passkeys together with an entry in the user's own audit chain, if change returns one.
func (p *Passkeys) update(ctx context.Context, uid string, change func(*passkey.Set) (*audit.Entry, error)) error {
	for try := 0; ; try++ {
		d, set, err := p.read(ctx, uid)
		if err != nil {
			return err
		}
		entry, err := change(&set)
		if err != nil {
			return err
		}
		d.Path = document.PasskeysPath(uid)
		w, err := document.Put(d, d.Fields, set)
		if err != nil {
			return err
		}
		writes := []store.Write{w}
		if entry != nil {
			entry.UID, entry.At, entry.KeepDays = uid, p.now(), p.AuditDays
			chain, err := audit.Append(ctx, p.Store, *entry)
			if err != nil {
				return err
			}
			writes = append(writes, chain...)
		}
		_, err = p.Store.Commit(ctx, writes...)
		if err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return fault.Unavailable("Your passkeys could not be stored. Please try again.", err)
		}
	}
}

// now returns the time with the store's precision.
func (p *Passkeys) now() time.Time { return p.Now().UTC().Truncate(time.Microsecond) }

func (p *Passkeys) random() io.Reader {
	if p.Random == nil {
		return rand.Reader
	}
	return p.Random
}
