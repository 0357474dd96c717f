package api

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Credentials keeps the users' passkeys (shared/accounts/passkeys). A passkey is a value that encodes as the answer.
type Credentials interface {
	List(ctx context.Context, uid string) (passkeys any, err error)
	Begin(ctx context.Context, uid, shown string) (options any, err error)
	Add(ctx context.Context, uid string, in NewPasskey) (passkey any, err error)
	Rename(ctx context.Context, uid, id, name string) (passkey any, err error)
	Remove(ctx context.Context, uid, id string) error
	// Proof says what the person must give to add a passkey: token or code.
	Proof(auth decision.Auth) string
	// Link is the address of the console's page of passkeys.
	Link() string
}

// NewPasskey is a passkey that a user adds.
type NewPasskey struct {
	Name       string          `json:"name"`
	Credential json.RawMessage `json:"credential"` // RegistrationResponseJSON
	Code       string          `json:"code"`       // an operator's one-time code

	Auth decision.Auth `json:"-"`
}

// maxCredential is the maximum length of a credential's ID, in characters of base64url.
const maxCredential = 1400

// passkeys returns what keeps the passkeys. The error is AuthError not_found if no decision needs one.
func (r *request) passkeys() (Credentials, error) {
	if r.api.Passkeys == nil {
		return nil, fault.NotFound()
	}
	return r.api.Passkeys, nil
}

// passkeysAnswer lists the user's passkeys. Without Enabled, no decision needs one.
type passkeysAnswer struct {
	ok
	Enabled  bool   `json:"enabled"`
	Passkeys any    `json:"passkeys,omitempty"`
	Proof    string `json:"proof,omitempty"`
	Link     string `json:"link,omitempty"`
}

func getPasskeys(r *request) (any, error) {
	keys := r.api.Passkeys
	if keys == nil {
		return passkeysAnswer{ok: ok{true}}, nil
	}
	list, err := keys.List(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	return passkeysAnswer{ok{true}, true, list, keys.Proof(r.auth), keys.Link()}, nil
}

func postPasskeyChallenge(r *request) (any, error) {
	keys, err := r.passkeys()
	if err != nil {
		return nil, err
	}
	shown := r.uid
	if r.email != nil {
		shown = cmp.Or(*r.email, r.uid)
	}
	ctx, cancel := r.working()
	defer cancel()
	options, err := keys.Begin(ctx, r.uid, shown)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Options any    `json:"publicKey"`
		Proof   string `json:"proof"`
	}{ok{true}, options, keys.Proof(r.auth)}, nil
}

func postPasskey(r *request) (any, error) {
	var in NewPasskey
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if len(in.Credential) == 0 || in.Credential[0] != '{' {
		return nil, fault.Invalid("credential", "the browser's answer is required")
	}
	keys, err := r.passkeys()
	if err != nil {
		return nil, err
	}
	in.Auth = r.auth
	ctx, cancel := r.working()
	defer cancel()
	added, err := keys.Add(ctx, r.uid, in)
	if err != nil {
		return nil, err
	}
	return passkeyAnswer{ok{true}, added}, nil
}

type passkeyAnswer struct {
	ok
	Passkey any `json:"passkey"`
}

func patchPasskey(r *request) (any, error) {
	id, err := r.passkeyID()
	if err != nil {
		return nil, err
	}
	var in struct {
		Name *string `json:"name"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, fault.Invalid("name", "a name is required")
	}
	keys, err := r.passkeys()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	renamed, err := keys.Rename(ctx, r.uid, id, *in.Name)
	if err != nil {
		return nil, err
	}
	return passkeyAnswer{ok{true}, renamed}, nil
}

func deletePasskey(r *request) (any, error) {
	id, err := r.passkeyID()
	if err != nil {
		return nil, err
	}
	keys, err := r.passkeys()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return ok{true}, keys.Remove(ctx, r.uid, id)
}

// passkeyID returns the ID of the passkey in the path.
func (r *request) passkeyID() (string, error) {
	id := r.PathValue("passkeyId")
	other := func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_')
	}
	if id == "" || len(id) > maxCredential || strings.ContainsFunc(id, other) {
		return "", fault.Invalid("passkeyId", "invalid ID")
	}
	return id, nil
}
