package netguard

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"code.dny.dev/ssrf"

	"github.com/countersign-run/countersign/shared/testkit/fakedns"
)

func openings(t testing.TB, texts ...string) []Opening {
	t.Helper()
	all, err := ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refused are addresses outside the public internet, in the form that a dialler uses.
var refused = []string{"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1",
	"172.31.255.255", "192.168.0.1", "100.64.0.1", "100.127.255.255", "169.254.0.1", "169.254.169.254", "192.0.0.1",
	"192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
	"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "100.100.100.200", "168.63.129.16",
	"[::]", "[::1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]",
	"[::ffff:0:127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b::808:808]", "[64:ff9b:1::1]",
	"[100::1]", "[2001::1]", "[2001:0:4136:e378::]", "[2001:db8::1]", "[2002:a9fe:a9fe::]", "[2002:7f00:1::]",
	"[2002:808:808::]", "[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[fd20:ce::254]", "[fe80::1]", "[fe80::1%25eth0]",
	"[fe80::1%eth0]", "[fec0::1]", "[ff02::1]", "[3fff::1]", "[5f00::1]", "[8000::1]", "[::2]"}

var public = []string{"1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
	"192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255", "126.0.0.1", "128.0.0.1", "169.253.0.1",
	"[2606:4700::1111]", "[2a00:1450::1]", "[2001:200::1]", "[::ffff:93.184.216.34]"}

func network(address string) string {
	if strings.HasPrefix(address, "[") {
		return "tcp6"
	}
	return "tcp4"
}

func TestTable(t *testing.T) {
	g := New(Options{Ports: []int{22}})
	for _, a := range refused {
		if err := g.judge("x", network(a), a+":22"); !errors.Is(err, ErrDenied) || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v; want error “%v”, error “%v”", a, err, ErrDenied, fs.ErrPermission)
		}
	}
	for _, a := range public {
		if err := g.judge("x", network(a), a+":22"); err != nil {
			t.Errorf("%s: %v", a, err)
		}
		for _, port := range []string{":21", ":80", ":443", ":2222", ":0", ":65535"} {
			if err := g.judge("x", network(a), a+port); err == nil {
				t.Errorf("%s%s is reached", a, port)
			}
		}
	}
	for _, c := range [][2]string{{"udp4", "1.1.1.1:22"}, {"ip4", "1.1.1.1:22"}, {"unix", "/run/x"},
		{"tcp", "1.1.1.1:22"},
		{"tcp4", "1.1.1.1"}, {"tcp4", "x:22"}} {
		if err := g.judge("x", c[0], c[1]); err == nil {
			t.Errorf("%v is reached", c)
		}
	}
}

// TestOpen opens ranges, names and ports, and checks that nothing else is allowed.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		open      string
		deployed  bool
		yes, no   string // host=address
		yes2, no2 string
	}{
		{open: "10.0.0.0/8", yes: "x=10.1.2.3:22", no: "x=10.1.2.3:2222", no2: "x=11.0.0.1:2222"},
		{open: "10.0.0.0/8:2222", yes: "x=10.1.2.3:2222", no: "x=10.1.2.3:22"},
		{open: "10.1.2.3", yes: "x=10.1.2.3:22", no: "x=10.1.2.4:22"},
		{open: "[fd00::/8]:22", yes: "x=[fd00::1]:22", no: "x=[fc00::1]:22", no2: "x=[fd00:ec2::254]:22"},
		{open: "fd00::1", yes: "x=[fd00::1]:22", no: "x=[fd00::2]:22"},
		{open: "build.internal", yes: "build.internal=10.0.0.1:22", yes2: "build.internal=10.0.0.9:22",
			no: "build.internal=10.0.0.1:23", no2: "other.internal=10.0.0.1:22"},
		{open: "build.internal", yes: "build.internal=1.1.1.1:22", no: "build.internal=169.254.169.254:22",
			no2: "build.internal.evil.test=10.0.0.1:22"},
		{open: "*.corp.example:2222", yes: "a.corp.example=10.0.0.1:2222", yes2: "a.b.corp.example=1.1.1.1:2222",
			no: "corp.example=10.0.0.1:2222", no2: "evilcorp.example=10.0.0.1:2222"},
		{open: ":2222", yes: "x=1.1.1.1:2222", yes2: "x=1.1.1.1:22", no: "x=10.0.0.1:2222", no2: "x=127.0.0.1:2222"},
		{open: "127.0.0.1:2222", yes: "x=127.0.0.1:2222", no: "x=127.0.0.2:2222", no2: "x=127.0.0.1:22"},
		{open: "127.0.0.1:2222", deployed: true, no: "x=127.0.0.1:2222"},
		{open: "::1", deployed: true, no: "x=[::1]:22"},
		{open: "localhost", yes: "localhost=127.0.0.1:22", yes2: "localhost=[::1]:22", no: "x=127.0.0.1:22"},
		{open: "localhost", deployed: true, no: "localhost=127.0.0.1:22"},
		{open: "169.254.0.0/16", no: "x=169.254.169.254:22"},
		{open: "0.0.0.0/0", yes: "x=10.0.0.1:22", yes2: "x=203.0.113.9:22", no: "x=169.254.169.254:22",
			no2: "x=224.0.0.1:22"},
		{open: "::/0", yes: "x=[fd00::1]:22", no: "x=[fe80::1]:22", no2: "x=[64:ff9b::7f00:1]:22"},
		{open: "0.0.0.0/0", deployed: true, no: "x=127.0.0.1:22", no2: "x=[::ffff:127.0.0.1]:22"},
	} {
		g := New(Options{Ports: []int{22}, Open: openings(t, c.open), Deployed: c.deployed})
		for want, dials := range map[bool][]string{true: {c.yes, c.yes2}, false: {c.no, c.no2}} {
			for _, d := range dials {
				host, address, given := strings.Cut(d, "=")
				if !given {
					continue
				}
				if err := g.judge(host, network(address), address); (err == nil) != want {
					t.Errorf("%s (deployed %t): %s: %v", c.open, c.deployed, d, err)
				}
			}
		}
	}
}

// TestConnect checks that the Connect function receives only addresses that passed the checks.
func TestConnect(t *testing.T) {
	names := fakedns.Resolver(t, map[string][]string{"mixed.test.": {"10.0.0.5", "93.184.216.34"},
		"rebind.test.": {"93.184.216.34|127.0.0.1"}})
	var reached []string
	g := New(Options{Ports: []int{80}, Resolver: names,
		Connect: func(_ context.Context, _, address string) (net.Conn, error) {
			reached = append(reached, address)
			ours, theirs := net.Pipe()
			return ours, theirs.Close()
		}})
	for _, c := range []struct {
		address string
		ok      bool
	}{{"mixed.test:80", true}, {"mixed.test:81", false}, {"rebind.test:80", true}, {"rebind.test:80", false},
		{"127.0.0.1:80", false}, {"[::ffff:127.0.0.1]:80", false}, {"[2606:4700::1111]:80", true}} {
		conn, err := g.DialContext(t.Context(), "tcp", c.address)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", c.address, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	want := []string{"93.184.216.34:80", "93.184.216.34:80", "[2606:4700::1111]:80"}
	if !slices.Equal(reached, want) {
		t.Errorf("%v were reached", reached)
	}
}

func TestPortOpen(t *testing.T) {
	g := New(Options{Ports: []int{22},
		Open: openings(t, "10.0.0.0/8:2222", "*.corp.example:2022", "web.example.com:2023",
			":2024")})
	for address, want := range map[string]bool{"example.com:22": true, "example.com:23": false, "10.1.1.1:2222": true,
		"[::ffff:10.1.1.1]:2222": true, "11.1.1.1:2222": false, "example.com:2222": true, "a.corp.example:2022": true,
		"A.Corp.Example.:2022": true, "corp.example:2022": false, "web.example.com:2023": true,
		"x.example.com:2023": false,
		"example.com:2024":   true} {
		host, text, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.PortOpen(host, port); got != want {
			t.Errorf("%s: %t; want got %v", address, got, want)
		}
	}
	if !New(Options{}).PortOpen("x", 1) {
		t.Error("without ports, one is not open")
	}
}

// TestLiteral checks that loopback is allowed by its own name, and not by a name that resolves to it.
func TestLiteral(t *testing.T) {
	g := New(Options{Private: true, Literal: true})
	for dial, want := range map[string]bool{"localhost=127.0.0.1:8080": true, "127.0.0.1=127.0.0.1:8080": true,
		"::1=[::1]:80": true, "rebind.test=127.0.0.1:8080": false, "x=10.0.0.1:443": true, "x=[fd00::1]:443": true,
		"x=169.254.169.254:80": false, "x=192.0.2.1:443": false, "x=1.1.1.1:443": true} {
		host, address, _ := strings.Cut(dial, "=")
		if err := g.judge(host, network(address), address); (err == nil) != want {
			t.Errorf("%s: %v; want (err == nil) %v", dial, err, want)
		}
	}
}

// TestLoopback checks that names may resolve to loopback addresses.
func TestLoopback(t *testing.T) {
	g := New(Options{Loopback: true})
	for address, want := range map[string]bool{"127.0.0.1:8080": true, "[::1]:80": true, "10.0.0.1:80": false} {
		if err := g.judge("dev.test", network(address), address); (err == nil) != want {
			t.Errorf("%s: %v; want (err == nil) %v", address, err, want)
		}
	}
}

// TestNames resolves names to both allowed and forbidden addresses, also through a CNAME, and to another address at
// each query. Only allowed addresses are dialled.
func TestNames(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connected := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connected <- c.LocalAddr().String()
			_ = c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	names := fakedns.Resolver(t, map[string][]string{
		"mixed.test.":    {"127.0.0.2", "127.0.0.1"},
		"denied.test.":   {"127.0.0.2", "127.0.0.3"},
		"rebind.test.":   {"127.0.0.1|127.0.0.2"},
		"alias.test.":    {"cname:denied.test."},
		"metadata.test.": {"169.254.169.254"},
	})
	g := New(Options{Ports: []int{22}, Open: openings(t, "127.0.0.1:"+port, "metadata.test:"+port), Resolver: names})
	for i, c := range []struct {
		name string
		ok   bool
	}{{"mixed.test", true}, {"denied.test", false}, {"rebind.test", true}, {"rebind.test", false},
		{"alias.test", false}, {"metadata.test", false}} {
		conn, err := g.DialContext(t.Context(), "tcp", c.name+":"+port)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrDenied) {
			t.Errorf("%d, %s: %v", i, c.name, err)
		}
		if err == nil {
			<-connected
			_ = conn.Close()
		}
	}
	if len(connected) > 0 {
		t.Errorf("%s was dialled", <-connected)
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", ":", ":0", ":65536", ":+22", ":022", "10.0.0.0/33", "10.0.0.0/8:", "10.0.0.0/8:x",
		"[10.0.0.0/8]:22", "[fd00::/8", "[fd00::/8]x", "[fd00::/8]:", "fd00::/8:22", "*", "*.corp", "a*.corp.example",
		"*.",
		"web.example.com,10.0.0.1", "Web.example.com", "ana@web.example.com", "-oProxyCommand=x",
		"https://web.example.com",
		"web_1.example.com", "127.1", "0x7f.1", "0177.0.0.1", "1.2.3.4.5", "a..b", ".a", "a.", "fe80::1%eth0",
		"[fe80::1%eth0]:22", "::ffff:10.0.0.0/104", strings.Repeat("a", 64) + ".example", "a b", "a\x00b",
		"ä.example"} {
		if o, err := Parse(bad); err == nil {
			t.Errorf("%q: %+v; want an error", bad, o)
		}
	}
	if _, err := ParseAll([]string{"10.0.0.0/8", "*"}); err == nil {
		t.Error("one that is wrong is passed over")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8:2222", "[fd00::/8]:22", "*.corp.example", "build:22", ":2222", "fd00::1",
		"[::1]:1", "0177.0.0.1", "[fe80::1%25eth0]:22"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			return
		}
		if o.port < 1 || o.port > 65535 || o.net.IsValid() && o.name != "" || strings.ContainsAny(text, "@/\\ ,") &&
			!o.net.IsValid() {
			t.Errorf("%q: %+v", text, o)
		}
		g := New(Options{Ports: []int{22}, Open: []Opening{o}, Deployed: true})
		for _, a := range []string{"127.0.0.1", "169.254.169.254", "[::1]", "[fe80::1]", "[64:ff9b::7f00:1]",
			"224.0.0.1"} {
			if err := g.judge(text, network(a), a+":"+strconv.Itoa(o.port)); err == nil {
				t.Errorf("%q opens %s", text, a)
			}
		}
	})
}

// FuzzTable compares the table with the standard library's classes of addresses.
func FuzzTable(f *testing.F) {
	for _, a := range append(refused, public...) {
		if ip, err := netip.ParseAddr(strings.Trim(a, "[]")); err == nil {
			b := ip.As16()
			f.Add(b[:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ip, ok := netip.AddrFromSlice(b)
		if ip = ip.Unmap(); !ok || kindOf(ip) != "" {
			return
		}
		if ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() ||
			ip.Is6() && !ssrf.IPv6GlobalUnicast.Contains(ip) {
			t.Errorf("%s is taken for public", ip)
		}
	})
}

// TestRefuses checks that addresses that are never dialled are refused by their text alone, and that private networks
// are not.
func TestRefuses(t *testing.T) {
	open, err := ParseAll([]string{"127.0.0.1:2222", "169.254.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	usual := New(Options{Ports: []int{22}, Open: open})
	deployed := New(Options{Ports: []int{22}, Open: open, Deployed: true})
	for host, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "localhost": true,
		"LOCALHOST.": true, "::ffff:127.0.0.1": true, "169.254.169.254": true, "fe80::1": true, "0.0.0.0": true,
		"10.0.0.1": false, "192.168.1.1": false, "fd00::1": false, "8.8.8.8": false, "web.example.com": false} {
		if got := usual.Refuses(host, 22); got != want {
			t.Errorf("%s: %t; want got %v", host, got, want)
		}
	}
	if usual.Refuses("127.0.0.1", 2222) || !deployed.Refuses("127.0.0.1", 2222) {
		t.Error("what an operator opens counts, and never where it is deployed")
	}
}

// TestPermits checks addresses behind another machine. A name must be opened, because it is resolved there.
func TestPermits(t *testing.T) {
	open, err := ParseAll([]string{"10.0.0.0/8", "*.corp.example", "db.example:2222", "127.0.0.0/8", "fe80::/10"})
	if err != nil {
		t.Fatal(err)
	}
	g := New(Options{Ports: []int{22}, Open: open, Deployed: true})
	for _, c := range []struct {
		host string
		port int
		want bool
	}{{"203.0.113.7", 22, false}, {"8.8.8.8", 22, true}, {"8.8.8.8", 2222, false}, {"10.1.2.3", 22, true},
		{"10.1.2.3", 23, false}, {"192.168.0.1", 22, false}, {"169.254.169.254", 22, false}, {"127.0.0.1", 22, false},
		{"fe80::1", 22, false}, {"web.corp.example", 22, true}, {"WEB.corp.example.", 22, true},
		{"web.example.com", 22, false}, {"db.example", 2222, true}, {"db.example", 22, false}} {
		if got := g.Permits(c.host, c.port); got != c.want {
			t.Errorf("%s:%d is permitted: %t", c.host, c.port, got)
		}
	}
}
