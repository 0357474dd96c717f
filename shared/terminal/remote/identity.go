package remote

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// identity holds the values that identify a host. Only the host's user sets them.
type identity struct {
	address     string // the name that a certificate must contain
	keys        []ssh.PublicKey
	authorities []ssh.PublicKey
	revoked     []ssh.PublicKey
}

func identityOf(h *terminal.Host) (is identity, err error) {
	is.address = h.Address
	for _, l := range []struct {
		from []terminal.HostKey
		to   *[]ssh.PublicKey
	}{{h.HostKeys, &is.keys}, {h.CertAuthorities, &is.authorities}, {h.RevokedKeys, &is.revoked}} {
		if *l.to, err = parseKeys(l.from); err != nil {
			return is, err
		}
	}
	if len(is.keys)+len(is.authorities) == 0 {
		return is, fault.Invalid("hostKeys", "at least one host key is required")
	}
	return is, nil
}

// algorithms returns only the algorithms of keys that can be accepted, certificates first. A host with keys of
// several types could otherwise choose one that is not pinned, and would appear to have changed (golang/go#29286).
func (is *identity) algorithms() (all []string) {
	if len(is.authorities) > 0 {
		all = append(all, ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01,
			ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01)
	}
	for _, k := range is.keys {
		for _, a := range hostKeyAlgorithms(k.Type()) {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// check returns nil if the key, or the key with its certificate, identifies the host. A pinned key is accepted whatever
// its certificate says, as in OpenSSH, unless the key or the certificate's authority is revoked.
func (is *identity) check(key ssh.PublicKey, now time.Time) error {
	cert, certified := key.(*ssh.Certificate)
	if certified {
		key = cert.Key
	}
	switch {
	case contains(is.revoked, key) || certified && contains(is.revoked, cert.SignatureKey):
		return refusedKey("The key of this host, or the authority of its certificate, is revoked.")
	case contains(is.keys, key):
		return nil
	case !certified || !contains(is.authorities, cert.SignatureKey):
		return is.changed(key)
	}
	if reason := invalid(cert, is.address, now); reason != "" {
		return refusedKey("The certificate of this host is by the authority that was confirmed, and " + reason + ".")
	}
	return nil
}

// invalid returns why a certificate of an accepted authority does not identify the host, or "". Unlike OpenSSH, it
// accepts no certificate without names, which is valid for any host, and no name with wildcards.
func invalid(cert *ssh.Certificate, address string, now time.Time) string {
	at := uint64(max(0, now.Unix()))
	checker := ssh.CertChecker{Clock: func() time.Time { return now }}
	named := slices.IndexFunc(cert.ValidPrincipals, func(name string) bool { return strings.EqualFold(name, address) })
	switch {
	case cert.CertType != ssh.HostCert:
		return "it is for a user, not for a host"
	case named < 0:
		return "it does not name " + address
	case at < cert.ValidAfter:
		return "it is not valid yet"
	case cert.ValidBefore != ssh.CertTimeInfinity && at >= cert.ValidBefore:
		return "it has expired"
	case len(hostKeyAlgorithms(cert.Key.Type())) == 0 || weak(cert.Key):
		return "its key is too weak"
	case !slices.Contains(hostKeyAlgorithms(cert.SignatureKey.Type()), cert.Signature.Format):
		return "its signature is too weak"
	case checker.CheckCert(cert.ValidPrincipals[named], cert) != nil:
		return "it has an option that is not known, or a wrong signature"
	}
	return ""
}

func contains(keys []ssh.PublicKey, key ssh.PublicKey) bool {
	return slices.ContainsFunc(keys, func(k ssh.PublicKey) bool { return bytes.Equal(k.Marshal(), key.Marshal()) })
}

// changed returns the error for a host whose key is not one that its user confirmed.
func (is *identity) changed(now ssh.PublicKey) error {
	var confirmed []string
	for _, k := range is.keys {
		confirmed = append(confirmed, ssh.FingerprintSHA256(k))
	}
	for _, k := range is.authorities {
		confirmed = append(confirmed, "a key with a certificate of "+ssh.FingerprintSHA256(k))
	}
	return refusedKey("The key of this host is " + ssh.FingerprintSHA256(now) + "; " + strings.Join(confirmed, " or ") +
		" was confirmed.")
}

// refusedKey returns the error for a host that does not prove the identity that its user confirmed.
func refusedKey(why string) error {
	return fault.New(fault.Policy, CodeKeyChanged, "%s Nothing was sent to it. It may be another machine. If you know "+
		"why, delete the host and add it again.", why)
}
