package gmail

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/mail"
	"slices"
	"strings"

	"github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // Gmail may store a text in another character set than it was given in.
)

// meaning is what matters in a message: who gets it, what it says, and which action it belongs to. Gmail stores a draft
// with headers of its own, in another order and folded anew, so that its bytes are not the approved ones.
type meaning struct {
	To, Cc, Bcc []string // addresses in order, the domains in lower case
	ReplyTo     []string // whom an answer would reach, when that is not the sender
	Subject     string
	InReplyTo   string
	Action      string // empty when the header was dropped
	Parts       []part // leaves of the message, their line ends as line feeds, without blanks at the end
}

// same reports whether a stored message still says what was approved: equal bytes, or equal meaning. A dropped action
// header is no difference; another one is.
func same(approved, stored []byte) bool {
	if bytes.Equal(approved, stored) {
		return true
	}
	a, errA := read(approved)
	s, errS := read(stored)
	return errA == nil && errS == nil &&
		slices.Equal(a.To, s.To) && slices.Equal(a.Cc, s.Cc) && slices.Equal(a.Bcc, s.Bcc) && slices.Equal(a.ReplyTo, s.ReplyTo) &&
		a.Subject == s.Subject && a.InReplyTo == s.InReplyTo && slices.Equal(a.Parts, s.Parts) &&
		(s.Action == "" || s.Action == a.Action)
}

func read(raw []byte) (m meaning, err error) {
	e, err := message.Read(bytes.NewReader(raw))
	if err != nil {
		return m, err
	}
	for _, list := range []struct {
		name string
		into *[]string
	}{{"To", &m.To}, {"Cc", &m.Cc}, {"Bcc", &m.Bcc}, {"Reply-To", &m.ReplyTo}} {
		if *list.into, err = addresses(&e.Header, list.name); err != nil {
			return m, err
		}
	}
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(e.Header.Get("Subject")); err != nil {
		return m, err
	}
	m.InReplyTo = e.Header.Get("In-Reply-To")
	m.Action = e.Header.Get(actionHeader)
	err = e.Walk(func(_ []int, leaf *message.Entity, err error) error {
		if err != nil || leaf.MultipartReader() != nil {
			return err
		}
		p, err := readPart(leaf)
		m.Parts = append(m.Parts, p)
		return err
	})
	return m, err
}

// addresses are those of all fields of the name: a second To field reaches people too.
func addresses(h *message.Header, name string) (out []string, err error) {
	for f := h.FieldsByKey(name); f.Next(); {
		if strings.TrimSpace(f.Value()) == "" {
			continue
		}
		list, err := mail.ParseAddressList(f.Value())
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			local, domain, _ := strings.Cut(a.Address, "@")
			out = append(out, local+"@"+strings.ToLower(domain))
		}
	}
	return out, nil
}

var errAttachment = errors.New("a part is not shown inline")

func readPart(e *message.Entity) (part, error) {
	kind, _, err := e.Header.ContentType()
	if err != nil {
		return part{}, err
	}
	if disposition, _, _ := e.Header.ContentDisposition(); disposition == "attachment" {
		return part{}, errAttachment
	}
	b, err := io.ReadAll(e.Body)
	if err != nil {
		return part{}, err
	}
	body := strings.ReplaceAll(string(b), "\r\n", "\n")
	return part{kind: kind, body: strings.TrimRight(body, " \t\n")}, nil
}
