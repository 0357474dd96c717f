// Package mailer sends e-mails through the operator's SMTP server (RFC 5321), over TLS, or in plain text to this
// machine.
package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// sendTime is the maximum time for sending one e-mail.
const sendTime = 30 * time.Second

// ErrRefused is wrapped in the error for an e-mail that the server will never accept.
var ErrRefused = errors.New("mailer: the server permanently refuses the e-mail")

const codeFailed fault.Code = "mail_failed"

// The steps at which a server's answer may be final.
const (
	stepTo      = "RCPT"
	stepMessage = "the message"
)

// A Mailer sends e-mails from one address.
type Mailer struct {
	From string // an address, in the form of package address
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	TLS  *tls.Config // nil: the machine's default

	host, port string
	wrapped    bool // TLS from the first byte; otherwise STARTTLS
	auth       smtp.Auth
}

// Server sets the server: smtps://USER:PASSWORD@HOST, or smtp:// for a server that starts TLS on request. The error
// does not repeat the address.
func (m *Mailer) Server(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return errors.New("mailer: not the address of an SMTP server")
	}
	m.host, m.port, m.wrapped = u.Hostname(), u.Port(), u.Scheme == "smtps"
	if m.port == "" {
		m.port = map[bool]string{true: "465", false: "587"}[m.wrapped]
	}
	if u.User != nil {
		password, _ := u.User.Password()
		m.auth = smtp.PlainAuth("", u.User.Username(), password, m.host)
	}
	return nil
}

// Send sends a message to one address. After an error, the message may have been sent nevertheless. The error never
// contains the address. It wraps ErrRefused if the server refuses the e-mail for good.
func (m *Mailer) Send(ctx context.Context, to string, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	conn, err := m.Dial(ctx, "tcp", net.JoinHostPort(m.host, m.port))
	if err != nil {
		return failed("the connection", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // ends all reads and writes in progress
	defer conn.Close()
	if m.wrapped {
		conn = tls.Client(conn, m.secure())
	}
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return failed("the greeting", err)
	}
	if err := m.begin(c); err != nil {
		return err
	}
	if err := m.transmit(c, to, message); err != nil {
		return err
	}
	_ = c.Quit() // the server has the e-mail
	return nil
}

// begin introduces this server, encrypts the connection, and signs in.
func (m *Mailer) begin(c *smtp.Client) error {
	_, domain, _ := strings.Cut(m.From, "@")
	if err := c.Hello(domain); err != nil {
		return failed("EHLO", err)
	}
	if !m.wrapped && !outbound.Loopback(m.host) {
		if err := c.StartTLS(m.secure()); err != nil {
			return failed("STARTTLS", err)
		}
	}
	if m.auth == nil {
		return nil
	}
	return failed("AUTH", c.Auth(m.auth))
}

func (m *Mailer) transmit(c *smtp.Client, to string, message []byte) error {
	if err := c.Mail(m.From); err != nil {
		return failed("MAIL", err)
	}
	if err := c.Rcpt(to); err != nil {
		return failed(stepTo, err)
	}
	w, err := c.Data()
	if err != nil {
		return failed("DATA", err)
	}
	if _, err := w.Write(message); err != nil {
		return failed(stepMessage, err)
	}
	return failed(stepMessage, w.Close())
}

func (m *Mailer) secure() *tls.Config {
	c := &tls.Config{}
	if m.TLS != nil {
		c = m.TLS.Clone()
	}
	c.ServerName, c.MinVersion = m.host, tls.VersionTLS12
	return c
}

// failed returns an error that names the step at which an e-mail failed, or nil for a nil err. It quotes only the
// number of a server's answer, because the text may contain the address.
func failed(step string, err error) error {
	var said *textproto.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &said):
		return fault.New(fault.Tool, codeFailed, "The e-mail was not sent: %s failed.", step).Because(err)
	}
	f := fault.New(fault.Tool, codeFailed, "The e-mail was not sent: %s returned %d.", step, said.Code)
	if said.Code >= 500 && (step == stepTo || step == stepMessage) {
		return f.Because(ErrRefused)
	}
	return f
}
