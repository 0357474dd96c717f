package remote_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
)

// TestCertificates connects to hosts with certificates of many kinds. A refused host gets no user name, and the
// error repeats nothing of the certificate.
func TestCertificates(t *testing.T) {
	ca, other, rsa := signer(t, "ed25519"), signer(t, "ecdsa"), signer(t, "rsa")
	own := signer(t, "ed25519")
	authorities := func(keys ...ssh.PublicKey) func(*terminal.Host) {
		return func(h *terminal.Host) { h.HostKeys, h.CertAuthorities = nil, pin(keys...) }
	}
	trusts := authorities(ca.PublicKey())
	both := func(h *terminal.Host) { trusts(h); h.HostKeys = pin(own.PublicKey()) }
	revokes := func(key ssh.PublicKey) func(*terminal.Host) {
		return func(h *terminal.Host) { both(h); h.RevokedKeys = pin(key) }
	}
	names := func(names ...string) func(*ssh.Certificate) {
		return func(c *ssh.Certificate) { c.ValidPrincipals = names }
	}
	expired := func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()) }
	forever := func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }
	users := func(c *ssh.Certificate) { c.CertType = ssh.UserCert }
	for name, c := range map[string]struct {
		by     ssh.Signer
		change func(*ssh.Certificate)
		host   func(*terminal.Host)
		says   string // "": the host is accepted
	}{
		"valid":                        {ca, nil, trusts, ""},
		"forever":                      {ca, forever, trusts, ""},
		"one of its names":             {ca, names("WEB.example.com", "127.0.0.1"), trusts, ""},
		"an RSA authority":             {rsa, nil, authorities(ca.PublicKey(), rsa.PublicKey()), ""},
		"another name":                 {ca, names("STRANGER.example.com"), trusts, "does not name 127.0.0.1"},
		"no name":                      {ca, names(), trusts, "does not name 127.0.0.1"},
		"a name with a wildcard":       {ca, names("127.0.0.*"), trusts, "does not name 127.0.0.1"},
		"expired":                      {ca, expired, trusts, "expired"},
		"another authority":            {other, nil, trusts, ssh.FingerprintSHA256(ca.PublicKey())},
		"a user's":                     {ca, users, trusts, "for a user"},
		"a pinned key":                 {ca, nil, both, ""},
		"a pinned key, expired":        {ca, expired, both, ""},
		"a pinned key, by another":     {other, nil, both, ""},
		"a pinned key that is revoked": {ca, nil, revokes(own.PublicKey()), "revoked"},
		"an authority that is revoked": {ca, nil, revokes(ca.PublicKey()), "revoked"},
		"an option": {ca, func(c *ssh.Certificate) {
			c.CriticalOptions = map[string]string{"STRANGER": "x"}
		}, trusts, "an option"},
		"the key as its own authority": {own, nil, trusts, ssh.FingerprintSHA256(own.PublicKey())},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, certified(t, own, c.by, c.change))
			h := s.start().host()
			c.host(h)
			got, release, err := newPool(t, remote.Times{}).Get(t.Context(), h, secret(newKey(t)))
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				defer release()
				run(t, got, "true")
				return
			}
			if !fault.Is(err, fault.Policy, remote.CodeKeyChanged) || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "STRANGER") {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if users, _ := s.seen(); len(users) > 0 {
				t.Errorf("it got %v", users)
			}
		})
	}
}

// TestCertificateWithWeakSignature refuses a certificate that an RSA authority signed with SHA-1.
func TestCertificateWithWeakSignature(t *testing.T) {
	ca := signer(t, "rsa")
	sha1, err := ssh.NewSignerWithAlgorithms(ca.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	h := newServer(t, certified(t, signer(t, "ed25519"), sha1, nil)).start().host()
	h.HostKeys, h.CertAuthorities = nil, pin(ca.PublicKey())
	_, _, err = newPool(t, remote.Times{}).Get(t.Context(), h, secret(newKey(t)))
	if !fault.Is(err, fault.Policy, remote.CodeKeyChanged) || !strings.Contains(err.Error(), "signature") {
		t.Errorf("got %v", err)
	}
}

// TestCertificateMissing connects to a host without a certificate. Only its authority is known.
func TestCertificateMissing(t *testing.T) {
	own, ca := signer(t, "ed25519"), signer(t, "ed25519")
	h := newServer(t, own).start().host()
	h.HostKeys, h.CertAuthorities = nil, pin(ca.PublicKey())
	_, _, err := newPool(t, remote.Times{}).Get(t.Context(), h, secret(newKey(t)))
	if !fault.Is(err, fault.Policy, remote.CodeKeyChanged) ||
		!strings.Contains(err.Error(), ssh.FingerprintSHA256(own.PublicKey())) ||
		!strings.Contains(err.Error(), "certificate of "+ssh.FingerprintSHA256(ca.PublicKey())) {
		t.Errorf("got %v", err)
	}
	h.HostKeys = pin(own.PublicKey())
	run(t, get(t, newPool(t, remote.Times{}), h, secret(newKey(t))), "true")
}

// certified returns a host's key with a certificate, which change may alter before it is signed.
func certified(t *testing.T, key, by ssh.Signer, change func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	c := &ssh.Certificate{Key: key.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"},
		ValidBefore: uint64(time.Now().Add(time.Hour).Unix())}
	if change != nil {
		change(c)
	}
	err := c.SignCert(rand.Reader, by)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewCertSigner(c, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
