package crash

import (
	"bytes"
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/notify/mailer"
	"github.com/countersign-run/countersign/shared/notify/reminder"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/mailserver"
)

// mailbox is the users' mailbox. It outlives the workers.
type mailbox struct {
	mailserver.Server
	mu  sync.Mutex
	got []receivedMail
}

type receivedMail struct {
	mailserver.Mail
	at time.Time
}

// open starts an SMTP server. It accepts all e-mails except those that must fail because of the fault of nextFault.
func (l *mailbox) open(nextFault func() fault) error {
	later := &smtp.SMTPError{Code: 451, Message: "try again"}
	l.Taking = func(m mailserver.Mail) error {
		how := nextFault()
		if how == fakegoogle.StatusBefore {
			return later
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.got = append(l.got, receivedMail{m, time.Now()}); how == fakegoogle.StatusAfter {
			return later
		}
		return nil
	}
	return l.Start(nil, false)
}

// to returns the accepted e-mails for an address, in order of arrival.
func (l *mailbox) to(address string) []receivedMail {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.got), func(m receivedMail) bool { return m.To != address })
}

// addTo configures a worker to send mail through this server.
func (l *mailbox) addTo(settings map[string]string) {
	maps.Copy(settings, map[string]string{"NOTIFY": "mail", "NOTIFY_FROM": "countersign@example.com",
		"SMTP_URL": "smtp://" + l.Address()})
}

// mail makes a worker send its e-mails soon, with points around its calls to the store and to the mail server.
func (p *points) mail(l *unit.Env) {
	r, on := l.Reminders.(*reminder.Reminders)
	if !on {
		return
	}
	l.Reminding = reminding
	r.Store, r.Kept = l.Store, &records.Records{Store: l.Store, Now: l.Now}
	m := r.Mailer.(*mailer.Mailer)
	dial := m.Dial
	m.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		defer p.around("connection to the mail server")()
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &struckMail{c, p, "the connection"}, nil
	}
}

// struckMail puts points around each line sent to the mail server, and around each answer.
type struckMail struct {
	net.Conn
	*points
	said string
}

// Write implements [net.Conn].
func (c *struckMail) Write(b []byte) (int, error) {
	verb, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
	if c.said = string(verb); len(verb) > len("EHLO") {
		c.said = "the mail"
	}
	defer c.around(c.said)()
	return c.Conn.Write(b)
}

// Read implements [net.Conn].
func (c *struckMail) Read(b []byte) (int, error) {
	defer c.around("the answer to " + c.said)()
	return c.Conn.Read(b)
}
