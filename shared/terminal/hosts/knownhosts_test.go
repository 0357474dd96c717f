package hosts_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// Keys of public hosts, as known_hosts files have them.
const (
	keyA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl" // github.com
	keyB = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf" // gitlab.com
	keyC = "ecdsa-sha2-nistp256 " +
		"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBHa03AZF3CvJ1C4Po15swSaMYI4kPszyBH/uOKHQYvu+" +
		"EpehSfMZMaX5D7pUpc5cAXvMEEFzlZJQH4pOioIlqyE="
	dsa = "ssh-dss AAAAB3NzaC1kc3MAAACBAP1/U4EddRIpUt9KnC7s5Of2EbdSPO9EAMMeP4C2USZpRV1AIlH7" +
		"WT2NWPq/xfW6MPbLm1Vs14E7gB00b/JmYLd"
)

const web = "web.example.com "

// TestKnownHosts parses real known_hosts files for the host web.example.com at port 22 or 2222. The keys, the
// authorities and the revoked keys are those of the matching lines.
func TestKnownHosts(t *testing.T) {
	hashed := knownhosts.HashHostname
	hidden := hashed("web.example.com")
	for name, c := range map[string]struct {
		file string
		port int
		want string // the keys by their letters: keys/authorities/revoked, or the error's text
	}{
		"a plain line":             {web + keyA, 22, "A//"},
		"names and addresses":      {"other,web.example.com,10.0.0.7 " + keyA + " ana@laptop two words", 22, "A//"},
		"capital letters":          {"Web.Example.COM " + keyA, 22, "A//"},
		"two keys, CRLF, comments": {"# mine\r\n\r\n" + web + keyA + "\r\n" + web + "\t" + keyC, 22, "AC//"},
		"hashed":                   {hidden + " " + keyA + "\n" + hashed("other") + " " + keyB, 22, "A//"},
		"hashed with a port":       {hashed("[web.example.com]:2222") + " " + keyA, 2222, "A//"},
		"a port":                   {"[web.example.com]:2222 " + keyA + "\n" + web + keyB, 2222, "A//"},
		"another port":             {"[web.example.com]:2222 " + keyA + "\n" + web + keyB, 22, "B//"},
		"only without a port":      {web + keyB, 2222, "B//"},
		"port 22 in brackets":      {"[web.example.com]:22 " + keyB, 22, "B//"},
		"an authority":             {"@cert-authority *.com " + keyA + "\n@cert-authority *.org " + keyB, 22, "/A/"},
		"an authority, a port":     {"@cert-authority *.example.com " + keyA, 2222, "/A/"},
		"an authority of all":      {"@cert-authority * " + keyC + " IGWN_CIT_SSH_CERT_AUTHORITY", 2222, "/C/"},
		"hashed authority":         {"@cert-authority " + hidden + " " + keyA, 22, "/A/"},
		"all but one":              {"@cert-authority *.com,!web.* " + keyA + "\nw?b.example.com " + keyB, 22, "B//"},
		"beside a key":             {web + keyB + "\n@cert-authority *.example.com " + keyA, 22, "B/A/"},
		"a comma behind the key":   {web + keyA + "," + "\n" + web + keyB + "\n@revoked * " + keyA, 22, "line 1"},
		"a revoked key":            {web + keyA + "\n" + web + keyB + "\n@revoked * " + keyA, 22, "B//A"},
		"a revoked authority":      {web + keyB + "\n@cert-authority * " + keyA + "\n@revoked * " + keyA, 22, "B//A"},
		"revoked without a port":   {"[web.example.com]:2222 " + keyB + "\n@revoked " + web + keyA, 2222, "B//A"},
		"all is revoked":           {web + keyA + "\n@revoked * " + keyA, 22, "no line has a key"},
		"old types beside":         {web + dsa + "\n" + web + keyA, 22, "A//"},
		"only an old type":         {web + dsa, 22, "no line has a key"},
		"rubbish for others":       {"a ssh-ed25519 rubbish\n|1|x|y ssh-rsa AAAA\nhost\n" + web + keyA, 22, "A//"},
		"rubbish for it":           {"other " + keyA + "\nweb.example.com ssh-ed25519 rubbish", 22, "line 2"},
		"an unknown marker":        {"@pinned web.example.com " + keyA, 22, "line 1: the marker"},
		"another type":             {"web.example.com ssh-rsa " + strings.Fields(keyA)[1], 22, "line 1"},
		"a stranger's dot":         {"webXexample.com " + keyA, 22, "no line has a key"},
		"no line":                  {"", 22, "no line has a key"},
		"too long":                 {strings.Repeat("#", 256<<10+1), 22, "the limit is 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			in := request(t)
			in.HostKeys, in.Port, in.KnownHosts = nil, &c.port, &c.file
			h, err := w.Add(t.Context(), "ana", in)
			if err != nil {
				if f := fault.As(err); f.Field != "knownHosts" || !strings.Contains(f.Message, c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				return
			}
			got := letters(h.HostKeys) + "/" + letters(h.CertAuthorities) + "/" + letters(h.RevokedKeys)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func letters(keys []terminal.HostKey) (all string) {
	for _, k := range keys {
		i := slices.IndexFunc([]string{keyA, keyB, keyC}, func(line string) bool { return line == k.Type+" "+k.Key })
		all += string("?ABC"[i+1])
	}
	return all
}

// FuzzKnownHosts checks that the accepted keys are those that golang.org/x/crypto accepts for the same line.
func FuzzKnownHosts(f *testing.F) {
	for _, names := range []string{"web.example.com", "*", "*.example.com,!web.*", "[web.example.com]:22", "w?b*",
		"|1|a|b", "!", ",", "[", "(", `\`} {
		f.Add(names)
	}
	f.Fuzz(func(t *testing.T, names string) {
		if names == "" || strings.ContainsFunc(names, func(r rune) bool { return r <= ' ' || r > '~' }) ||
			strings.ContainsAny(names[:1], "@#") {
			return
		}
		w := newEnv(t)
		in := request(t)
		in.HostKeys, in.KnownHosts = nil, new(names+" "+keyA)
		h, err := w.Add(t.Context(), "ana", in)
		if err != nil {
			if fault.As(err).Field != "knownHosts" {
				t.Errorf("%q: %v", names, err)
			}
			return
		}
		if wire, err := base64.StdEncoding.DecodeString(h.HostKeys[0].Key); err != nil || letters(h.HostKeys) != "A" {
			t.Errorf("%q: %q, %v", names, wire, err)
		}
		_, hosts, _, _, _, err := ssh.ParseKnownHosts([]byte(names + " " + keyA))
		if err != nil || len(hosts) == 0 {
			t.Errorf("%q is accepted: %v, %v", names, hosts, err)
		}
	})
}
