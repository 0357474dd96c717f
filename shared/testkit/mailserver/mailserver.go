// Package mailserver is a local SMTP server that stores the e-mails that it receives.
package mailserver

import (
	"crypto/tls"
	"io"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// A Mail is an e-mail that the server accepted.
type Mail struct {
	From, To string // of the envelope
	TLS      bool
	User     string // the user who logged in
	Raw      string
	Header   mail.Header
	Text     string // decoded
}

// Server accepts e-mails from the user with the password, or from anyone if User is empty.
type Server struct {
	User, Password string
	// Taking is called for each e-mail before the server accepts it; an error rejects the e-mail. nil: all are
	// accepted.
	Taking func(Mail) error

	server *smtp.Server
	ln     net.Listener
	done   chan struct{}

	mu    sync.Mutex
	mails []Mail
}

// Start makes the server listen on a loopback address. With a TLS configuration it offers STARTTLS, or begins with TLS
// if wrapped is set. Without one it has no TLS.
func (s *Server) Start(secure *tls.Config, wrapped bool) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, conn: c}, nil
	}))
	s.server.Domain, s.server.AllowInsecureAuth, s.server.MaxMessageBytes = "mail.test", true, 1<<20
	s.server.ErrorLog = silent{}
	s.ln = ln
	if wrapped {
		ln = tls.NewListener(ln, secure)
	} else {
		s.server.TLSConfig = secure
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		_ = s.server.Serve(ln) // it ends with Close
	}()
	return nil
}

// Address returns the address of the server.
func (s *Server) Address() string { return s.ln.Addr().String() }

// Close stops the server and closes its connections.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// Mails returns the accepted e-mails.
func (s *Server) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mails[:len(s.mails):len(s.mails)]
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// session is one connection.
type session struct {
	server *Server
	conn   *smtp.Conn
	mail   Mail
	user   string
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != s.server.User || password != s.server.Password {
			return smtp.ErrAuthFailed
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.User != "" && s.user == "" {
		return smtp.ErrAuthRequired
	}
	_, secure := s.conn.TLSConnectionState()
	s.mail = Mail{From: from, TLS: secure, User: s.user}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.mail.To != "" {
		return &smtp.SMTPError{Code: 452, Message: "one at a time"}
	}
	s.mail.To = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Raw = string(raw)
	m, err := mail.ReadMessage(strings.NewReader(s.mail.Raw))
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: "this is not a mail"}
	}
	if s.mail.Header = m.Header; m.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
		m.Body = quotedprintable.NewReader(m.Body)
	}
	text, err := io.ReadAll(m.Body)
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: "its text cannot be read"}
	}
	s.mail.Text = strings.ReplaceAll(string(text), "\r\n", "\n")
	if s.server.Taking != nil {
		if err := s.server.Taking(s.mail); err != nil {
			return err
		}
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, s.mail)
	return nil
}

func (s *session) Reset()        { s.mail = Mail{} }
func (s *session) Logout() error { return nil }
