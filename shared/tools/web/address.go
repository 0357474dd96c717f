package web

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Address parses the address of a page and returns its canonical form: scheme and host in lower-case letters and ASCII,
// without the scheme's default port, a trailing dot of the host, or a fragment. It checks only the form; the fetch
// decides whether the page is allowed. Its errors are ValidationErrors with the field url.
func Address(text string) (*url.URL, error) {
	if len(text) > MaxURL {
		return nil, invalid("more than %d bytes", MaxURL)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unwritten) {
		return nil, invalid("it has a space, a backslash or an invisible character")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, invalid("it cannot be read as an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("an address that begins with http:// or https:// is required")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, invalid("it names no host behind http:// or https://")
	case u.User != nil:
		return nil, invalid("it has a user's name or password before the host, which are never sent")
	}
	host, err := hostOf(u)
	if err != nil {
		return nil, err
	}
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	u.Host = host + port
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	if len(u.String()) > MaxURL {
		return nil, invalid("more than %d bytes", MaxURL)
	}
	return u, nil
}

// unwritten reports whether a character is not allowed in an address, because readers do not see it or programs
// interpret it differently.
func unwritten(r rune) bool { return r == '\\' || unicode.IsSpace(r) || !unicode.IsGraphic(r) }

// hostOf returns the host for the request, an IPv6 address in brackets.
func hostOf(u *url.URL) (string, error) {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if strings.Contains(host, ":") {
		ip, err := netip.ParseAddr(host)
		if err != nil {
			return "", invalid("its host is no address of IPv6")
		}
		return "[" + ip.String() + "]", nil // a zone's percent sign is escaped in the address
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil || strings.Contains("."+ascii+".", "..") || len(ascii) > 253 {
		return "", invalid("its host is no name")
	}
	return ascii, nil
}

// portOf returns the port with its colon, or "" if it is the scheme's default.
func portOf(u *url.URL) (string, error) {
	if u.Port() == "" {
		return "", nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return "", invalid("its port is not a number from 1 to 65535")
	}
	if u.Scheme == "http" && port == 80 || u.Scheme == "https" && port == 443 {
		return "", nil
	}
	return ":" + strconv.FormatUint(port, 10), nil
}

func invalid(format string, args ...any) error {
	return fault.Invalid("url", "the address cannot be used: "+format, args...)
}
