package config

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// matches returns a function that reports whether a value matches the pattern. The functions below check the shapes of
// values.

func matches(pattern string) func(string) bool { return lazyregexp.New(pattern).MatchString }

// upTo adds a maximum length to a check. A repetition count in a pattern is compiled to that many copies, which took a
// fifth of a function's cold start.
func upTo(length int, ok func(string) bool) func(string) bool {
	return func(v string) bool { return len(v) <= length && ok(v) }
}

// nameUpTo adds a maximum length to a check, for the part after the last slash.
func nameUpTo(length int, ok func(string) bool) func(string) bool {
	return func(v string) bool { return len(v)-strings.LastIndexByte(v, '/')-1 <= length && ok(v) }
}

// unlessFiller excludes placeholders from a check.
func unlessFiller(ok func(string) bool) func(string) bool {
	return func(v string) bool { return ok(v) && !idFillers.MatchString(v) }
}

var (
	isModel        = upTo(128, matches(`^[A-Za-z0-9][A-Za-z0-9._/@-]*$`))
	isRegion       = matches(`^[a-z][a-z0-9-]{1,38}$`)
	isProject      = unlessFiller(matches(`^([a-z0-9][a-z0-9.-]*:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`))
	isDatabase     = matches(`^(\(default\)|[a-z][a-z0-9-]{2,61}[a-z0-9])$`)
	isTopic        = nameUpTo(255, matches(`^(projects/[^/\s*]+/topics/)?[A-Za-z][A-Za-z0-9._~+%-]{2,}$`))
	isSubscription = nameUpTo(255, matches(`^projects/[^/\s*]+/subscriptions/[A-Za-z][A-Za-z0-9._~+%-]{2,}$`))
	isKMSKey       = matches(
		`^(gcp-kms://)?projects/[^/\s*]+/locations/[^/\s*]+/keyRings/[^/\s*]+/cryptoKeys/[^/\s*]+$`)
	isRelease  = upTo(64, matches(`^[A-Za-z0-9][A-Za-z0-9._+-]*$`))
	isAccount  = unlessFiller(matches(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`))
	isExact    = unlessFiller(upTo(512, matches(`^[^\s*,;"'<>]+$`))) // one audience, not a pattern or a list
	isDomain   = upTo(253, matches(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]*[a-z0-9])?$`))
	isFunction = matches(`^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$`) // a name of infra/functions.json
	isHostPort = matches(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}$`)
	isProgram  = upTo(64, matches(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`))
	isKey      = upTo(512, matches(`^[!-~]+$`)) // fits in an HTTP header
)

// idFillers and secretFillers match the placeholders that sample files and instructions use for an ID or a secret. The
// pattern for IDs is stricter, because a project may really be called "changeme-shop".
var (
	idFillers = lazyregexp.New(
		`(?i)[<>{}]|^\$|^your[-_ ]|^change[-_ ]?me$|^replace[-_ ]?me$|^place[-_ ]?holder$|^(todo|tbd|none|null|undefined)$`)
	secretFillers = lazyregexp.New(
		`(?i)[<>{}]|^\$|^\.{3}|^\*+$|^x{3,}$|your[-_ ]|^my[-_ ]|change[-_ ]?me|replace[-_ ]?(me|with|this)|place[-_ ]?holder|(insert|paste)[-_ ]|goes[-_ ]here|^(todo|tbd|none|null|undefined|secret|password|key|api[-_ ]?key|example)$`)
)

// isReach accepts what package netguard accepts.
func isReach(v string) bool {
	_, err := netguard.Parse(v)
	return err == nil
}

func isPath(v string) bool { return !strings.ContainsRune(v, 0) }

// isText accepts up to 8 KiB of text without control characters.
func isText(v string) bool {
	return len(v) <= 8<<10 && utf8.ValidString(v) && !strings.ContainsFunc(v, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	})
}

// isBucket reports whether v is the name of a bucket (docs.cloud.google.com/storage/docs/buckets#naming).
var isBucket = matches(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)

// isKeyset checks the outer form of a Tink keyset in JSON or base64; shared/accounts/tokenkey reads the keys. It does
// not check for placeholders, because the braces would match.
func isKeyset(v string) bool {
	text := []byte(v)
	if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
		text = decoded
	}
	var set struct {
		Primary uint32            `json:"primaryKeyId"`
		Keys    []json.RawMessage `json:"key"`
	}
	return json.Unmarshal(text, &set) == nil && set.Primary != 0 && len(set.Keys) > 0
}

// parseURL parses an absolute http or https URL without credentials, query or fragment.
func parseURL(v string) (*url.URL, bool) {
	u, err := url.Parse(v)
	if err != nil || len(v) > 2048 || u.Host == "" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
		u.ForceQuery || strings.Contains(v, "#") {
		return nil, false
	}
	if p := u.Port(); p != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, false
		}
	}
	return u, (u.Scheme == "https" || u.Scheme == "http") && !strings.ContainsAny(v, "*<>{}\\")
}

// isBase accepts https to any host, and http to a loopback address unless deployed.
func isBase(deployed bool) func(string) bool {
	return func(v string) bool {
		u, ok := parseURL(v)
		return ok && (u.Scheme == "https" || !deployed && outbound.Loopback(u.Hostname()))
	}
}

// IsOrigin accepts an origin as browsers send it (RFC 6454 §6.2): https, or http on a loopback address; a lower-case
// host; no path, not even a slash; no default port.
func IsOrigin(v string) bool {
	u, ok := parseURL(v)
	if !ok || u.Path != "" || v != u.Scheme+"://"+u.Host || v != strings.ToLower(v) || !ascii(v) {
		return false
	}
	if u.Scheme == "https" {
		return u.Port() != "443"
	}
	return outbound.Loopback(u.Hostname()) && u.Port() != "80"
}

func ascii(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r > unicode.MaxASCII })
}

// decodeKeys decodes comma-separated secrets in base64. It returns nil if one is invalid.
func decodeKeys(v string) (keys [][]byte) {
	for part := range strings.SplitSeq(v, ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(part))
		if err != nil || len(key) < 32 || len(key) > 64 || len(keys) == 4 {
			return nil
		}
		keys = append(keys, key)
	}
	return keys
}

func isChatKey(v string) bool { return decodeKeys(v) != nil }

// splitKeys splits comma-separated keys. It returns nil if one is invalid.
func splitKeys(v string) (keys [][]byte) {
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		if len(part) < 32 || !isKey(part) || secretFillers.MatchString(part) || len(keys) == 4 {
			return nil
		}
		keys = append(keys, []byte(part))
	}
	return keys
}

func isActionKey(v string) bool { return splitKeys(v) != nil }

// isEngine accepts a socket, or a tcp address, which client certificates must protect.
func isEngine(v string) bool {
	if path, ok := strings.CutPrefix(v, "unix://"); ok {
		return strings.HasPrefix(path, "/") && isPath(path) && len(v) <= 255
	}
	at, ok := strings.CutPrefix(v, "tcp://")
	return ok && isHostPort(at)
}

// isCerts accepts PEM of at most 64 KiB with at least two certificates and one private key. Whether they belong
// together is checked by the engine's client.
func isCerts(v string) bool {
	certs, keys := 0, 0
	for rest := []byte(v); len(v) <= 64<<10; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			certs++
		} else if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			keys++
		}
	}
	return certs >= 2 && keys == 1
}

var isImage = upTo(255, matches(`^[a-z0-9][a-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$`))

// isPackageHost accepts a host with TLS, or the address of an installer's registry.
var isPackageHost = upTo(255, matches(`^([A-Za-z0-9.-]+(:[0-9]{1,5})?|`+
	`(go|npm|pip)=https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?)$`))

// isNetwork refuses the words that do not name one of the engine's networks: the machine's own network, and another
// container's.
func isNetwork(v string) bool {
	return isNetworkName(v) && !slices.Contains([]string{"host", "default", "private"}, v)
}

var isNetworkName = matches(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
