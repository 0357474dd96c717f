package mailer_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"

	"github.com/countersign-run/countersign/shared/notify/mailer"
	"github.com/countersign-run/countersign/shared/testkit/mailserver"
)

const text = "Subject: hello\r\n\r\nhello\r\n.\r\nthe end\r\n"

// certificate returns a certificate for example.com and the pool with its CA.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	srv := httptest.NewUnstartedServer(nil)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return &tls.Config{Certificates: srv.TLS.Certificates}, pool
}

// TestSend tests servers of each kind. No server receives a password over a connection that others can read.
func TestSend(t *testing.T) {
	known, pool := certificate(t)
	const mine = "://me:secret@example.com"
	for name, c := range map[string]struct {
		url            string // for a server with another address
		server         *tls.Config
		wrapped, vouch bool
		fails          string
		answer         error
		refused        bool
	}{
		"STARTTLS":                     {url: "smtp" + mine, server: known, vouch: true},
		"TLS at once":                  {url: "smtps" + mine, server: known, wrapped: true, vouch: true},
		"without a user":               {url: "smtp://example.com", server: known, vouch: true},
		"this machine":                 {url: "smtp://me:secret@localhost"},
		"no STARTTLS":                  {url: "smtp" + mine, fails: "STARTTLS returned 502"},
		"a certificate of nobody's":    {url: "smtp" + mine, server: known, fails: "STARTTLS failed"},
		"a certificate of another one": {url: "smtp://a.test", server: known, vouch: true, fails: "STARTTLS failed"},
		"TLS at once, of nobody's":     {url: "smtps" + mine, server: known, wrapped: true, fails: "greeting failed"},
		"a wrong password": {url: "smtp://me:secret2@example.com", server: known, vouch: true,
			fails: "AUTH returned 535"},
		"later": {url: "smtp://localhost", answer: &smtp.SMTPError{Code: 451, Message: "ana@example.com"},
			fails: "returned 451"},
		"never": {url: "smtp://localhost", answer: &smtp.SMTPError{Code: 550, Message: "ana@example.com"},
			fails: "returned 550", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &mailserver.Server{Password: "secret", Taking: func(mailserver.Mail) error { return c.answer }}
			if strings.Contains(c.url, "@") {
				s.User = "me"
			}
			if err := s.Start(c.server, c.wrapped); err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			m := mailer.Mailer{From: "countersign@example.com", Dial: dial(s.Address())}
			if c.vouch {
				m.TLS = &tls.Config{RootCAs: pool}
			}
			if err := m.Server(c.url); err != nil {
				t.Fatal(err)
			}
			err := m.Send(t.Context(), "ana@example.com", []byte(text))
			if c.fails != "" {
				said := fmt.Sprint(err, errors.Unwrap(err))
				if !strings.Contains(said, c.fails) || errors.Is(err, mailer.ErrRefused) != c.refused ||
					strings.Contains(said, "ana@") || strings.Contains(said, "secret") || len(s.Mails()) != 0 {
					t.Errorf("it fails with %s", said)
				}
				return
			}
			if err != nil || len(s.Mails()) != 1 {
				t.Fatalf("%v; %d e-mails", err, len(s.Mails()))
			}
			got := s.Mails()[0]
			if got.TLS != (c.server != nil) || got.User != s.User || got.To != "ana@example.com" || got.Raw != text {
				t.Errorf("the server has %+v", got)
			}
		})
	}
}

// dial returns a dialler that always connects to the same address.
func dial(to string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, to)
	}
}

// TestSendToSilentServer checks that Send does not wait forever for a server that sends nothing.
func TestSendToSilentServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithCancel(t.Context())
	m := mailer.Mailer{From: "countersign@example.com"}
	m.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, ln.Addr().String())
		cancel()
		return conn, err
	}
	if err := m.Server("smtp://localhost"); err != nil {
		t.Fatal(err)
	}
	if err := m.Send(ctx, "ana@example.com", []byte(text)); err == nil {
		t.Error("it was sent to nobody")
	}
}

// TestSendAddressWithCommand checks that nothing is sent to an address that contains another command.
func TestSendAddressWithCommand(t *testing.T) {
	s := &mailserver.Server{}
	if err := s.Start(nil, false); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m := mailer.Mailer{From: "countersign@example.com", Dial: dial(s.Address())}
	if err := m.Server("smtp://localhost"); err != nil {
		t.Fatal(err)
	}
	err := m.Send(t.Context(), "ana@example.com>\r\nRCPT TO:<eve@example.com", []byte(text))
	if err == nil || len(s.Mails()) > 0 {
		t.Errorf("it was sent: %v", err)
	}
}

// TestServer checks that invalid server addresses are refused, and that the error does not contain them.
func TestServer(t *testing.T) {
	for _, url := range []string{"", "https://example.com", "smtp://", "smtp://me:CANARY@a b.com", "example.com:25"} {
		if err := (&mailer.Mailer{}).Server(url); err == nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
