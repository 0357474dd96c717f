package hosts

import (
	"crypto/hmac"
	"crypto/sha1" // #nosec G505 -- known_hosts hides names with it; nothing relies on its strength
	"encoding/base64"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// identify sets the keys that identify a new host: those that its user has confirmed, and those of known_hosts lines.
func identify(h *terminal.Host, in terminal.NewHost) error {
	if len(in.HostKeys) > maxHostKeys {
		return fault.Invalid("hostKeys", "%d keys; the limit is %d", len(in.HostKeys), maxHostKeys)
	}
	if err := checkHostKeys(in.HostKeys); err != nil {
		return err
	}
	h.HostKeys = in.HostKeys
	if in.KnownHosts == nil {
		if len(in.HostKeys) == 0 {
			return fault.Invalid("hostKeys", "1 to %d keys of the host are required, as POST /api/agent/hosts/scan "+
				"answers them and its user has compared them, or lines of a known_hosts file in knownHosts",
				maxHostKeys)
		}
		return nil
	}
	known, err := parseKnownHosts(*in.KnownHosts, h.Address, h.Port)
	if err != nil {
		return err
	}
	h.RevokedKeys = known[revoked]
	valid := func(lists ...[]terminal.HostKey) (keys []terminal.HostKey) {
		for _, k := range slices.Concat(lists...) {
			if !slices.Contains(known[revoked], k) && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
		return keys
	}
	h.HostKeys, h.CertAuthorities = valid(in.HostKeys, known[plain]), valid(known[authority])
	switch {
	case len(h.HostKeys)+len(h.CertAuthorities) == 0:
		return fault.Invalid("knownHosts", "no line has a key of %s that is supported and not revoked: ssh-ed25519, "+
			"ecdsa-sha2-nistp256, -384, -521, or ssh-rsa of %d bits or more", nameOf(h.Address, h.Port), minRSA)
	case len(h.HostKeys) > maxHostKeys || len(h.CertAuthorities) > maxHostKeys || len(h.RevokedKeys) > maxRevoked:
		return fault.Invalid("knownHosts", "for this host there are %d keys, %d authorities and %d revoked keys; "+
			"the limits are %d, %d and %d", len(h.HostKeys), len(h.CertAuthorities), len(h.RevokedKeys),
			maxHostKeys, maxHostKeys, maxRevoked)
	}
	return nil
}

// The markers of lines in a known_hosts file.
const (
	plain     = ""
	authority = "cert-authority"
	revoked   = "revoked"
)

// parseKnownHosts returns the keys of the lines that match the host, by the lines' markers. As in OpenSSH, a line
// without a port applies to other ports of its host unless a line with the port matches; a revoked key is revoked in
// either case. It skips lines for other hosts, and keys of types that never identify a host.
func parseKnownHosts(text, address string, port int) (map[string][]terminal.HostKey, error) {
	if len(text) > maxKnownHosts {
		return nil, fault.Invalid("knownHosts", "%d bytes; the limit is %d. Lines for other hosts are not needed",
			len(text), maxKnownHosts)
	}
	exact, anyPort := map[string][]terminal.HostKey{}, map[string][]terminal.HostKey{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		found := exact
		if !matches(line, nameOf(address, port)) {
			if found = anyPort; !matches(line, address) {
				continue
			}
		}
		marker, _, key, _, _, err := ssh.ParseKnownHosts([]byte(line))
		if err != nil {
			if unsupported(line) {
				continue
			}
			return nil, fault.Invalid("knownHosts", "line %d is not a line of known_hosts: [marker] names type key", n)
		}
		if marker != plain && marker != authority && marker != revoked {
			return nil, fault.Invalid("knownHosts", "line %d: the marker is not @cert-authority or @revoked", n)
		}
		if hostKeyTypes[key.Type()] && bits(key) >= minRSA {
			found[marker] = append(found[marker], described(key))
		}
	}
	revokes := slices.Concat(exact[revoked], anyPort[revoked])
	if len(exact[plain])+len(exact[authority]) == 0 {
		exact = anyPort
	}
	exact[revoked] = revokes
	return exact, nil
}

// unsupported reports whether a line has a key of a type that this program does not parse, such as ssh-dss.
func unsupported(line string) bool {
	words := strings.Fields(line)
	return len(words) > 2 && !slices.ContainsFunc(words, func(w string) bool { return hostKeyTypes[w] })
}

func described(key ssh.PublicKey) terminal.HostKey {
	return terminal.HostKey{Type: key.Type(), SHA256: ssh.FingerprintSHA256(key),
		Key: base64.StdEncoding.EncodeToString(key.Marshal())}
}

// nameOf returns the name of a host in known_hosts.
func nameOf(address string, port int) string {
	if port == defaultPort {
		return address
	}
	return "[" + address + "]:" + strconv.Itoa(port)
}

// matches reports whether a line of known_hosts is for the name.
func matches(line, name string) bool {
	words := strings.Fields(line)
	if len(words) > 0 && strings.HasPrefix(words[0], "@") {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "#") {
		return false
	}
	if strings.HasPrefix(words[0], "|") {
		return hides(words[0], name)
	}
	found := false
	for pattern := range strings.SplitSeq(strings.ToLower(words[0]), ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !fits(pattern, name) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

// fits reports whether the name matches a pattern with the wildcards * and ?.
func fits(pattern, name string) bool {
	if host, port, err := net.SplitHostPort(pattern); err == nil && port == strconv.Itoa(defaultPort) {
		pattern = host // [web]:22 is web
	}
	expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	matched, err := regexp.MatchString("^(?s:"+expression+")$", name)
	return err == nil && matched
}

// hides reports whether a hashed name, |1|salt|hash, is the hash of this name.
func hides(hashed, name string) bool {
	parts := strings.Split(hashed, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return false
	}
	salt, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return false
	}
	hash, err := base64.StdEncoding.DecodeString(parts[3])
	sum := hmac.New(sha1.New, salt)
	_, _ = sum.Write([]byte(name)) // a write to a hash cannot fail
	return err == nil && hmac.Equal(sum.Sum(nil), hash)
}
