package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// lineOf is a line of known_hosts.
func lineOf(marker, pattern string, key ssh.PublicKey) string {
	return strings.TrimSpace(marker+" "+pattern+" "+string(ssh.MarshalAuthorizedKey(key))) + "\n"
}

// TestHostCertificate adds a host by the lines of a known_hosts file, and logs in. The host changes its keys and is
// still known by its authority. An expired certificate, one for another name, one of another authority, and a revoked
// key are refused, and the refusal gives the reason.
func TestHostCertificate(t *testing.T) {
	srv := sshd.Start(t, sshd.Options{})
	ca, other := sshd.Authority(t, "ed25519"), sshd.Authority(t, "ecdsa")
	w := deploy(t, "TERMINAL=on", "TERMINAL_HOSTS="+srv.Addr)
	name := fmt.Sprintf("[127.0.0.1]:%d", srv.Port)
	add := func(known string) string {
		t.Helper()
		body, err := json.Marshal(map[string]any{"name": "web", "host": "127.0.0.1", "port": srv.Port,
			"username": srv.User, "knownHosts": known,
			"auth": map[string]string{"kind": "privateKey", "privateKey": string(srv.Key)}})
		if err != nil {
			t.Fatal(err)
		}
		a := w.call("POST", "/api/agent/hosts", string(body))
		var h struct {
			HostID          string
			CertAuthorities []struct{ SHA256 string }
		}
		if err := json.Unmarshal(a.Body, &h); err != nil || a.HTTP != 200 || len(h.CertAuthorities) != 1 ||
			h.CertAuthorities[0].SHA256 != ssh.FingerprintSHA256(ca.PublicKey()) {
			t.Fatalf("adding the host answered %d %s, %v", a.HTTP, a.Body, err)
		}
		return h.HostID
	}
	serve := func(by ssh.Signer, change func(*ssh.Certificate)) {
		t.Helper()
		srv.Kill()
		srv.NewHostKeys()
		srv.Certify(by, change)
		srv.Restart()
	}
	check := func(hostID string, status int, says string) {
		t.Helper()
		a := w.call("POST", "/api/agent/hosts/"+hostID+"/check", "")
		if a.HTTP != status || !strings.Contains(string(a.Body), says) {
			t.Errorf("the check answered %d %s, want %d %q", a.HTTP, a.Body, status, says)
		}
	}
	host := add("# all of ours\nelsewhere.example ssh-dss AAAA\n" + lineOf("@cert-authority", name, ca.PublicKey()))
	serve(ca, nil)
	check(host, 200, "")
	serve(ca, nil) // other keys
	check(add(lineOf("@cert-authority", "*", ca.PublicKey())), 200, "")
	revoked := add(lineOf("@cert-authority", name, ca.PublicKey()) + lineOf("@revoked", "*", srv.HostKeys()[0]) +
		lineOf("@revoked", "*", srv.HostKeys()[1]))
	check(revoked, 409, "revoked")
	for says, change := range map[string]func(*ssh.Certificate){
		"expired":       func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Add(-time.Minute).Unix()) },
		"not valid yet": func(c *ssh.Certificate) { c.ValidAfter = uint64(time.Now().Add(time.Minute).Unix()) },
		"does not name": func(c *ssh.Certificate) { c.ValidPrincipals = []string{"127.0.0.2"} },
	} {
		serve(ca, change)
		check(add(lineOf("@cert-authority", name, ca.PublicKey())), 409, says)
	}
	serve(other, nil)
	check(add(lineOf("@cert-authority", name, ca.PublicKey())), 409, ssh.FingerprintSHA256(ca.PublicKey()))
}
