package hosts_test

import (
	"net/netip"
	"path"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal/hosts"
)

// FuzzHost checks that accepted addresses can be dialled and shown: each is its own normal form, and no program can
// read it as anything but a name or an address.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"web.example.com.", "WEB", "10.0.0.7", "::ffff:10.0.0.7", "2001:DB8::1",
		"fe80::1%eth0",
		"-oProxyCommand=x", "ana@web", "web:22", "[::1]", "127.1", "0x7f.1", "xn--bcher-kva.de", "a..b", "", ".",
		"１.２"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		got, err := hosts.NormalHost(address)
		if err != nil {
			if fault.As(err).Field != "host" {
				t.Errorf("%q: %v", address, err)
			}
			return
		}
		if again, err := hosts.NormalHost(got); err != nil || again != got {
			t.Errorf("%q becomes %q, and that %q, %v", address, got, again, err)
		}
		if _, err := netip.ParseAddr(got); err == nil {
			return
		}
		if strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || strings.HasPrefix(got, "-") ||
			strings.Contains(got, "..") || len(got) > 253 {
			t.Errorf("%q becomes %q", address, got)
		}
		last := got[strings.LastIndexByte(got, '.')+1:]
		if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") &&
			strings.Trim(last[2:], "0123456789abcdef") == "" {
			t.Errorf("%q becomes %q, which a resolver may take for an address", address, got)
		}
	})
}

// FuzzReadPaths checks that accepted folders are absolute paths in their shortest form.
func FuzzReadPaths(f *testing.F) {
	for _, seed := range []string{"/var/log", "/", "/proc/1", "/dev", "/a/../etc", "a", "", "/a/", "//a", "/a\u200bb",
		"/a\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if hosts.CheckReadPaths([]string{p}) != nil {
			return
		}
		if path.Clean(p) != p || !path.IsAbs(p) || p == "/" || strings.ContainsAny(p, "\x00\n\u200b") {
			t.Errorf("%q is accepted", p)
		}
		for _, never := range []string{"/dev", "/proc", "/sys"} {
			if p == never || strings.HasPrefix(p, never+"/") {
				t.Errorf("%q is accepted", p)
			}
		}
	})
}

// FuzzKey parses texts as private keys: nothing panics or is slow, and no error repeats the text or the passphrase.
func FuzzKey(f *testing.F) {
	f.Add("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
		"phrase")
	f.Add("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA "+
		"PRIVATE KEY-----\n", "x")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, text, phrase string) {
		if len(text) > 8<<10 || len(phrase) > 1024 {
			return
		}
		_, err := hosts.ParseKey(text, &phrase)
		if err != nil && (fault.As(err).Err != nil || len(phrase) > 12 && strings.Contains(err.Error(), phrase)) {
			t.Errorf("%v", err)
		}
	})
}
