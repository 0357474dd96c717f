// Package enrol creates passkeys: it has the options for the browser, and checks the browser's answer. It uses
// go-webauthn, and only the function that enrols links it.
package enrol

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"

	"github.com/countersign-run/countersign/shared/agent/passkey"
)

// Timeout is how long a browser may wait for its user.
const Timeout = 2 * time.Minute

// parameters are the kinds of keys that [passkey.Credential.Check] verifies, in the order of preference.
var parameters = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// User is a user who adds a passkey. The authenticator shows the name.
type User struct{ UID, Name string }

// Options returns a PublicKeyCredentialCreationOptionsJSON. The authenticator must verify its user, and must not have
// one of the passkeys already.
func Options(site passkey.Site, u User, challenge []byte, had []passkey.Credential) any {
	handle := sha256.Sum256([]byte("countersign user\x00" + u.UID)) // the handle must not identify the user
	o := protocol.PublicKeyCredentialCreationOptions{
		RelyingParty: protocol.RelyingPartyEntity{CredentialEntity: protocol.CredentialEntity{Name: "Countersign"},
			ID: site.ID},
		User: protocol.UserEntity{CredentialEntity: protocol.CredentialEntity{Name: u.Name}, DisplayName: u.Name,
			ID: protocol.URLEncodedBase64(handle[:])},
		Challenge: challenge, Parameters: parameters, Timeout: int(Timeout.Milliseconds()),
		AuthenticatorSelection: protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementPreferred,
			UserVerification: protocol.VerificationRequired},
		Attestation: protocol.PreferNoAttestation,
	}
	for _, c := range had {
		id, err := base64.RawURLEncoding.DecodeString(c.ID)
		if err != nil {
			continue // it is not in the set of any authenticator
		}
		o.CredentialExcludeList = append(o.CredentialExcludeList,
			protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: id})
	}
	return o
}

// maxTransports bounds what a browser says about how an authenticator is reached.
const maxTransports = 8

// Check checks a RegistrationResponseJSON. It returns the passkey without a name and without the enrolment's signature.
func Check(answer, challenge []byte, site passkey.Site, now time.Time) (passkey.Credential, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return passkey.Credential{}, fmt.Errorf("enrol: %w", err)
	}
	if _, err := parsed.Verify(passkey.Encode(challenge), site.ID, []string{site.Origin}, nil, nil,
		protocol.TopOriginExplicitVerificationMode, false, true, true, nil, parameters, protocol.AttestationPolicy{},
		protocol.SignaturePolicy{}); err != nil {
		return passkey.Credential{}, fmt.Errorf("enrol: %w", err)
	}
	data := parsed.Response.AttestationObject.AuthData
	public, err := publicKey(data.AttData.CredentialPublicKey)
	if err != nil {
		return passkey.Credential{}, err
	}
	c := passkey.Credential{ID: passkey.Encode(parsed.RawID), Site: site.ID, PublicKey: public, Enrolled: data.Counter,
		Synced: data.Flags.HasBackupEligible(), CreatedAt: now}
	for _, t := range parsed.Response.Transports {
		if name := string(t); len(c.Transports) < maxTransports && slices.Contains(transports, name) {
			c.Transports = append(c.Transports, name)
		}
	}
	return c, nil
}

var transports = []string{"ble", "hybrid", "internal", "nfc", "smart-card", "usb"}

// publicKey returns the DER of a COSE key.
func publicKey(cose []byte) ([]byte, error) {
	parsed, err := webauthncose.ParsePublicKey(cose)
	if err != nil {
		return nil, fmt.Errorf("enrol: %w", err)
	}
	switch k := parsed.(type) {
	case webauthncose.EC2PublicKeyData:
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, k.XCoord, k.YCoord))
		if err != nil {
			return nil, fmt.Errorf("enrol: %w", err)
		}
		return x509.MarshalPKIXPublicKey(key)
	case webauthncose.OKPPublicKeyData:
		return x509.MarshalPKIXPublicKey(ed25519.PublicKey(k.XCoord))
	case webauthncose.RSAPublicKeyData:
		exponent := new(big.Int).SetBytes(k.Exponent)
		return x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(exponent.Int64())})
	}
	return nil, fmt.Errorf("enrol: a key of the kind %T", parsed)
}
