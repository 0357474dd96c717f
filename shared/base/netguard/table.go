package netguard

import "net/netip"

// kind is the purpose of a range of addresses. Addresses with a kind are dialled only if they are allowed.
type kind string

const (
	never    kind = "never"    // never allowed: link-local, metadata of a cloud, multicast, no address
	loopback kind = "loopback" // this machine
	private  kind = "private"  // a network of the operator
	special  kind = "special"  // reserved: for translation, documentation, measurements and protocols
)

// table holds the ranges outside the public internet, most of them from IANA's registries of special-purpose addresses.
// The first matching range counts. Addresses that contain an IPv4 address for a translator (NAT64, 6to4) are never
// dialled, because the translator's result is unknown here.
var table = []struct {
	prefix netip.Prefix
	kind   kind
	what   string
}{
	{netip.MustParsePrefix("169.254.0.0/16"), never, "link-local, with the metadata of most clouds"},
	{netip.MustParsePrefix("100.100.100.200/32"), never, "metadata of Alibaba Cloud"},
	{netip.MustParsePrefix("168.63.129.16/32"), never, "the host of a virtual machine of Azure's"},
	{netip.MustParsePrefix("192.0.0.192/32"), never, "metadata of Oracle's cloud"},
	{netip.MustParsePrefix("fd00:ec2::/32"), never, "metadata of AWS"},
	{netip.MustParsePrefix("fd20:ce::254/128"), never, "metadata of Google Cloud"},
	{netip.MustParsePrefix("0.0.0.0/8"), never, "this network (RFC 791)"},
	{netip.MustParsePrefix("224.0.0.0/4"), never, "multicast (RFC 1112)"},
	{netip.MustParsePrefix("255.255.255.255/32"), never, "broadcast (RFC 919)"},
	{netip.MustParsePrefix("::/128"), never, "no address (RFC 4291)"},
	{netip.MustParsePrefix("fe80::/10"), never, "link-local (RFC 4291)"},
	{netip.MustParsePrefix("fec0::/10"), never, "site-local (RFC 3879)"},
	{netip.MustParsePrefix("ff00::/8"), never, "multicast (RFC 4291)"},
	{netip.MustParsePrefix("64:ff9b::/96"), never, "NAT64 (RFC 6052)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), never, "NAT64 (RFC 8215)"},
	{netip.MustParsePrefix("2002::/16"), never, "6to4 (RFC 3056)"},

	{netip.MustParsePrefix("127.0.0.0/8"), loopback, "loopback (RFC 1122)"},
	{netip.MustParsePrefix("::1/128"), loopback, "loopback (RFC 4291)"},

	{netip.MustParsePrefix("10.0.0.0/8"), private, "private (RFC 1918)"},
	{netip.MustParsePrefix("172.16.0.0/12"), private, "private (RFC 1918)"},
	{netip.MustParsePrefix("192.168.0.0/16"), private, "private (RFC 1918)"},
	{netip.MustParsePrefix("100.64.0.0/10"), private, "shared by a carrier (RFC 6598)"},
	{netip.MustParsePrefix("fc00::/7"), private, "unique local (RFC 4193)"},

	{netip.MustParsePrefix("192.0.0.0/24"), special, "protocols of the IETF (RFC 6890)"},
	{netip.MustParsePrefix("192.0.2.0/24"), special, "documentation (RFC 5737)"},
	{netip.MustParsePrefix("192.88.99.0/24"), special, "6to4 relays (RFC 7526)"},
	{netip.MustParsePrefix("198.18.0.0/15"), special, "measurements (RFC 2544)"},
	{netip.MustParsePrefix("198.51.100.0/24"), special, "documentation (RFC 5737)"},
	{netip.MustParsePrefix("203.0.113.0/24"), special, "documentation (RFC 5737)"},
	{netip.MustParsePrefix("240.0.0.0/4"), special, "reserved (RFC 1112)"},
	{netip.MustParsePrefix("::/96"), special, "compatible with IPv4 (RFC 4291)"},
	{netip.MustParsePrefix("100::/64"), special, "discarded (RFC 6666)"},
	{netip.MustParsePrefix("2001::/23"), special, "protocols of the IETF, Teredo (RFC 2928)"},
	{netip.MustParsePrefix("2001:db8::/32"), special, "documentation (RFC 3849)"},
}

// kindOf returns the purpose of an address, or "" for a public address.
func kindOf(ip netip.Addr) kind {
	for _, t := range table {
		if t.prefix.Contains(ip) {
			return t.kind
		}
	}
	if internet.SafeAddr(ip) != nil { // further ranges of code.dny.dev/ssrf
		return special
	}
	return ""
}
