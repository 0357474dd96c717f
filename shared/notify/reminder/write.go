package reminder

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime/quotedprintable"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// write returns the e-mail about the approvals (RFC 5322). Besides fixed text, it contains only a checked address,
// times and IDs.
func (r *Reminders) write(u *run.User, waiting []run.Approval, now time.Time) ([]byte, error) {
	_, domain, _ := strings.Cut(r.From, "@")
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", "Countersign <" + r.From + ">"},
		{"To", u.Reminders.To},
		{"Subject", subject(waiting)},
		{"Date", now.Format(time.RFC1123Z)},
		{"Message-ID", "<" + name(waiting) + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, // RFC 3834: suppresses automatic replies
		{"List-Unsubscribe", "<" + r.inbox() + ">"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if _, err := io.WriteString(w, r.text(u.Locale.Zone(), waiting)); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

// name returns the same name for the same approvals, so that mail programs recognise a repeated e-mail.
func name(waiting []run.Approval) string {
	sum := sha256.New()
	for _, a := range waiting {
		fmt.Fprintln(sum, a.ID)
	}
	return "reminder." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))[:32]
}

func subject(waiting []run.Approval) string {
	if len(waiting) == 1 {
		return event.Question(waiting[0])
	}
	return count(len(waiting)) + " requests need your decision"
}

// count returns the number of approvals in words. If the limit was reached, there may be more.
func count(n int) string {
	if n < mostRead {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d or more", n)
}

func (r *Reminders) text(zone *time.Location, waiting []run.Approval) string {
	var b strings.Builder
	for _, a := range waiting[:min(len(waiting), mostListed)] {
		fmt.Fprintf(&b, "%s\n  Asked on %s, expires on %s.\n  %s\n\n", event.Question(a), clock(a.RequestedAt, zone),
			clock(a.ExpiresAt, zone), event.Link(r.Console, a.ThreadID))
	}
	if more := len(waiting) - mostListed; more > 0 {
		fmt.Fprintf(&b, "%s more: %s\n\n", count(more), r.inbox())
	}
	b.WriteString("Open the link to decide. You cannot decide by replying to this e-mail.\n\n" +
		"You get this e-mail at most once an hour, if a request has waited for more than five\n" +
		"minutes. To stop these e-mails, use the button in your inbox:\n" + r.inbox() + "\n")
	return b.String()
}

func clock(t time.Time, zone *time.Location) string { return t.In(zone).Format("Mon 2 Jan, 15:04 MST") }

func (r *Reminders) inbox() string { return r.Console + "/#/inbox" }
