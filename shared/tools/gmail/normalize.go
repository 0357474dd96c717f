package gmail

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// The limits of a message.
const (
	MaxRecipients = 20        // to, cc and bcc together
	MaxSubject    = 998       // octets, RFC 5322 §2.1.1
	MaxBody       = 200 << 10 // octets, each of body and htmlBody
	MaxMessageID  = 250       // octets of a Message-ID; a line of a header has 998
)

var (
	threadID = lazyregexp.New(`^[0-9a-f]{1,32}$`)
	// messageID is wider than RFC 5322 §3.6.4: mail in use has "_" in domains, and several @.
	messageID = lazyregexp.New(`^<[!-;=?A-~]+@[!-;=?-~]+>$`)
)

// normalize checks what the schema cannot express, and brings addresses and line ends into one form. An address in
// several lists is kept in the first of to, cc and bcc, so that each person is reached and shown once.
func normalize(a Args) (Args, error) {
	if len(a.To)+len(a.Cc)+len(a.Bcc) > MaxRecipients {
		return a, fault.Invalid("to", "the limit of to, cc and bcc together is %d recipients", MaxRecipients)
	}
	if err := normalizeSender(&a); err != nil {
		return a, err
	}
	var known []string
	for _, list := range []struct {
		field string
		in    *[]string
	}{{"to", &a.To}, {"cc", &a.Cc}, {"bcc", &a.Bcc}} {
		all, err := address.List(list.field, *list.in, MaxRecipients)
		if err != nil {
			return a, err
		}
		*list.in = slices.DeleteFunc(all, func(s string) bool { return slices.Contains(known, s) })
		known = append(known, *list.in...)
	}
	if err := cmp.Or(normalizeOrigin(a), normalizeEnclosures(a.Attachments)); err != nil {
		return a, err
	}
	if len(a.To) == 0 && (a.ReplyTo == nil || a.Origin != nil) {
		return a, fault.Invalid("to", "a recipient is required")
	}
	if len(a.Subject) > MaxSubject {
		return a, fault.Invalid("subject", "the limit of a subject is %d octets", MaxSubject)
	}
	if strings.ContainsFunc(a.Subject, unicode.IsControl) {
		return a, fault.Invalid("subject", "a subject cannot have line breaks or control characters")
	}
	var err error
	if a.Body, err = text("body", a.Body); err != nil {
		return a, err
	}
	if strings.TrimSpace(a.Body) == "" {
		return a, fault.Invalid("body", "the message is empty")
	}
	if a.HTMLBody, err = text("htmlBody", a.HTMLBody); err != nil {
		return a, err
	}
	if a.Signature, err = text("signature", a.Signature); err != nil {
		return a, err
	}
	if a.ThreadID != "" && !threadID.MatchString(a.ThreadID) {
		return a, fault.Invalid("threadId", "not a Gmail thread ID")
	}
	if len(a.InReplyTo) > MaxMessageID {
		return a, fault.Invalid("inReplyTo", "%d octets; the limit of a Message-ID is %d", len(a.InReplyTo),
			MaxMessageID)
	}
	if a.InReplyTo != "" && !messageID.MatchString(a.InReplyTo) {
		return a, fault.Invalid("inReplyTo",
			"not a Message-ID: it needs the form <left@right>, in ASCII, without spaces")
	}
	return a, nil
}

// text converts line ends to line feeds and refuses all control characters except line feed and tab.
func text(field, s string) (string, error) {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	if len(s) > MaxBody {
		return s, fault.Invalid(field, "the limit of a message is %d octets", MaxBody)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return s, fault.Invalid(field, "a message cannot have control characters")
	}
	return s, nil
}
