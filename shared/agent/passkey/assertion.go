package passkey

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Assertion is the answer of an authenticator to the challenge of a decision, as stored.
type Assertion struct {
	ID         string `json:"id"` // of the credential
	AuthData   []byte `json:"authData"`
	ClientData []byte `json:"clientData"`
	Sig        []byte `json:"sig"`
	// Batch has the hashes of all statements of the decision, if it has several.
	Batch [][]byte `json:"batch,omitempty"`
}

// Limits of an answer, in bytes. Real answers have less than a third.
const (
	maxAnswer = 16 << 10
	maxPart   = 4 << 10
)

// Parse decodes an AuthenticationResponseJSON. Errors: ValidationErrors that name the field below passkey.
func Parse(data []byte) (*Assertion, error) {
	if len(data) > maxAnswer {
		return nil, fault.Invalid("passkey", "%d bytes; the limit is %d", len(data), maxAnswer)
	}
	var in struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Response struct {
			AuthData   string `json:"authenticatorData"`
			ClientData string `json:"clientDataJSON"`
			Sig        string `json:"signature"`
		} `json:"response"`
	}
	if err := strictjson.DecodeKnown(data, &in); err != nil {
		return nil, fault.Within("passkey", err)
	}
	a := &Assertion{ID: in.ID}
	id, err := base64.RawURLEncoding.DecodeString(in.ID)
	switch {
	case in.Type != "public-key":
		return nil, fault.Invalid("passkey/type", "must be public-key")
	case err != nil || len(id) == 0 || Encode(id) != in.ID:
		return nil, fault.Invalid("passkey/id", "must be base64url without padding")
	}
	for _, part := range []struct {
		name, text string
		to         *[]byte
	}{{"authenticatorData", in.Response.AuthData, &a.AuthData},
		{"clientDataJSON", in.Response.ClientData, &a.ClientData},
		{"signature", in.Response.Sig, &a.Sig}} {
		*part.to, err = base64.RawURLEncoding.DecodeString(part.text)
		if err != nil || len(*part.to) == 0 || len(*part.to) > maxPart {
			return nil, fault.Invalid("passkey/response/"+part.name, "must be 1 to %d bytes in base64url", maxPart)
		}
	}
	return a, nil
}

// The flags of an authenticator's data.
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
)

// leastAuthData is the size of an authenticator's data without extensions: the hash of the site's ID, the flags, and
// the counter.
const leastAuthData = sha256.Size + 1 + 4

// Count returns the authenticator's counter.
func (a *Assertion) Count() uint32 {
	if len(a.AuthData) < leastAuthData {
		return 0
	}
	return binary.BigEndian.Uint32(a.AuthData[sha256.Size+1:])
}

// clientData is the part of a browser's data that is checked.
type clientData struct {
	Type        string `json:"type"`
	Challenge   string `json:"challenge"`
	Origin      string `json:"origin"`
	CrossOrigin bool   `json:"crossOrigin"`
}

// ErrWrong means that an assertion does not confirm the decision. Errors of the checks wrap it.
var ErrWrong = errors.New("passkey: the assertion does not confirm this decision")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrWrong}, args...)...)
}

// Check checks an assertion of the credential: the challenge, the console's origin and ID, that the authenticator
// verified its user, the signature, and that the counter is above before. before is the credential's counter when the
// decision arrived.
func (c *Credential) Check(a *Assertion, challenge []byte, before uint32, site Site) error {
	var client clientData
	if err := strictjson.DecodeKnown(a.ClientData, &client); err != nil {
		return wrong("the browser's data cannot be read")
	}
	siteHash := sha256.Sum256([]byte(site.ID))
	flags := byte(0)
	if len(a.AuthData) >= leastAuthData {
		flags = a.AuthData[sha256.Size]
	}
	clientHash := sha256.Sum256(a.ClientData)
	switch n := a.Count(); {
	case a.ID != c.ID:
		return wrong("another passkey")
	case client.Type != "webauthn.get":
		return wrong("not an assertion")
	case subtle.ConstantTimeCompare([]byte(client.Challenge), []byte(Encode(challenge))) != 1:
		return wrong("it is for another card or decision")
	case client.Origin != site.Origin || client.CrossOrigin:
		return wrong("it was made on another page")
	case flags == 0 || !bytes.HasPrefix(a.AuthData, siteHash[:]) || c.Site != site.ID:
		return wrong("it is for another site")
	case flags&flagPresent == 0 || flags&flagVerified == 0:
		return wrong("the authenticator did not verify its user")
	case before < c.Enrolled || n <= before && (n > 0 || before > 0):
		return wrong("its counter is %d after %d, as of a copy of the passkey", n, before)
	case !verify(c.PublicKey, slices.Concat(a.AuthData, clientHash[:]), a.Sig):
		return wrong("its signature is wrong")
	}
	return nil
}

// ErrMissing means that no passkey confirmed a decision that needs one.
var ErrMissing = errors.New("passkey: no passkey confirmed the decision")

// CheckStored checks the assertion that is stored with a permission: the statement must be one of the decision that
// the passkey confirmed, and the credential must be one of the user's set that the enrolment signed. auth is from the
// verified signature of the decision. Errors: ErrMissing, also for a passkey that was removed; ErrWrong.
func (s *Strong) CheckStored(set *Set, statement decision.Statement, a *Assertion, auth decision.Auth,
	ring *decision.Ring) error {
	if a == nil {
		return ErrMissing
	}
	c := set.Find(a.ID)
	if c == nil {
		return ErrMissing
	}
	h, err := ring.CardHash(cardDomain, statement)
	if err != nil {
		return wrong("%v", err)
	}
	hashes := a.Batch
	if len(hashes) == 0 {
		hashes = [][]byte{h}
	}
	whole := !slices.ContainsFunc(hashes, func(one []byte) bool { return len(one) != len(h) })
	listed := slices.ContainsFunc(hashes, func(one []byte) bool { return bytes.Equal(one, h) })
	switch {
	case len(hashes) > maxBatch || !whole || !listed:
		return wrong("it is for another decision")
	case auth.Passkey != a.ID:
		return wrong("the signed decision names another passkey")
	}
	if err := s.checkEnrolled(c, statement.UID); err != nil {
		return err
	}
	return c.Check(a, challengeOf(hashes), auth.Counter, s.Site)
}
