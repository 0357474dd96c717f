// Package fakedns is a DNS server for the names that a test defines.
package fakedns

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver returns a resolver with its own server, which ends with the test. names maps names (with a trailing dot)
// to addresses. Addresses that are separated by a bar are returned in turn, one for each question. An address
// cname:NAME refers to another name. Any other name has no address.
func Resolver(t testing.TB, names map[string][]string) *net.Resolver {
	t.Helper()
	r, end, err := Open(names)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return r
}

// Open is like [Resolver], but needs no test. Call end to stop the server.
func Open(names map[string][]string) (r *net.Resolver, end func(), err error) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	s := &server{names: names, asked: map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serve(udp)
	}()
	r = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", udp.LocalAddr().String())
	}}
	return r, func() { _ = udp.Close(); <-done }, nil
}

type server struct {
	names map[string][]string
	asked map[string]int // number of answers so far, for names with turns
}

// serve answers questions until the connection is closed, and ignores other packets.
func (s *server) serve(udp net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := udp.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buf[:n]) != nil || len(m.Questions) == 0 {
			continue
		}
		s.answer(&m)
		if answer, err := m.Pack(); err == nil {
			_, _ = udp.WriteTo(answer, from) // the client repeats its question
		}
	}
}

func (s *server) answer(m *dnsmessage.Message) {
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	name := q.Name
	records, known := s.names[strings.ToLower(name.String())]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
	}
	for len(records) == 1 && strings.HasPrefix(records[0], "cname:") {
		to := dnsmessage.MustNewName(strings.TrimPrefix(records[0], "cname:"))
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, dnsmessage.TypeCNAME),
			Body: &dnsmessage.CNAMEResource{CNAME: to}})
		name, records = to, s.names[to.String()]
	}
	for _, r := range records {
		turns := strings.Split(r, "|")
		ip := netip.MustParseAddr(turns[s.asked[r]%len(turns)])
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, q.Type),
				Body: &dnsmessage.AResource{A: ip.As4()}})
		case !ip.Is4() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header(name, q.Type),
				Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		default:
			continue
		}
		s.asked[r]++
	}
}

func header(name dnsmessage.Name, kind dnsmessage.Type) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: name, Type: kind, Class: dnsmessage.ClassINET}
}
