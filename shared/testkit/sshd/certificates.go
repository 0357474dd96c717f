package sshd

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
)

// Authority returns a new key that can sign certificates. The types are those of Options.HostKeys.
func Authority(t T, kind string) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(generate(t, kind))
	check(t, err)
	return signer
}

// Certify gives each of the server's keys a certificate, from the next Restart on. A certificate names 127.0.0.1 and is
// valid for an hour, unless change says otherwise before it is signed.
func (s *Server) Certify(by ssh.Signer, change func(*ssh.Certificate)) {
	s.t.Helper()
	config, err := os.OpenFile(s.path("sshd_config"), os.O_APPEND|os.O_WRONLY, 0)
	check(s.t, err)
	now := time.Now()
	for i, key := range s.HostKeys() {
		cert := &ssh.Certificate{Key: key, CertType: ssh.HostCert, KeyId: s.types[i],
			ValidPrincipals: []string{"127.0.0.1"}, ValidAfter: uint64(now.Add(-time.Hour).Unix()),
			ValidBefore: uint64(now.Add(time.Hour).Unix())}
		if change != nil {
			change(cert)
		}
		check(s.t, cert.SignCert(rand.Reader, by))
		path := s.path("host_" + s.types[i] + "-cert.pub")
		check(s.t, os.WriteFile(path, ssh.MarshalAuthorizedKey(cert), 0o600))
		_, err := fmt.Fprintf(config, "HostCertificate %s\n", strconv.Quote(path))
		check(s.t, err)
	}
	check(s.t, config.Close())
}
