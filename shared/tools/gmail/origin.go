package gmail

import (
	"context"
	"slices"
	"strings"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Origin is the e-mail that an e-mail answers or forwards, as the server has read it. No model writes it: derive
// replaces what a model gives, and checkOrigin reads the e-mail again before the new one is sent.
type Origin struct {
	MessageID  string   `json:"messageId"` // Gmail's ID
	From       string   `json:"from"`
	Subject    string   `json:"subject"`
	Date       string   `json:"date,omitempty"`
	References []string `json:"references,omitempty"` // those of the e-mail, without its own Message-ID
	To         []string `json:"to,omitempty"`         // the recipients that the e-mail itself asks for
	Cc         []string `json:"cc,omitempty"`
	Because    string   `json:"because,omitempty"` // why it goes to them
	Left       []string `json:"left,omitempty"`    // attachments that a forwarded e-mail loses
	Quote      string   `json:"quote,omitempty"`   // the text below the user's words

	files []Attachment // of a forwarded e-mail
}

func normalizeOrigin(a Args) error {
	switch {
	case a.ReplyTo != nil && a.Forward != nil:
		return fault.Invalid("forward", "an e-mail cannot both reply and forward")
	case a.ReplyTo != nil && !threadID.MatchString(a.ReplyTo.MessageID):
		return fault.Invalid("replyTo.messageId", "not a Gmail ID")
	case a.Forward != nil && !threadID.MatchString(a.Forward.MessageID):
		return fault.Invalid("forward.messageId", "not a Gmail ID")
	}
	return nil
}

// complete checks the sender, and fills in and replaces the arguments that a model cannot know or must not choose: the
// conversation, the Message-IDs, the recipients and subject of an answer, the facts about files, and the signature.
func (s *sender) complete(ctx context.Context, c tool.Call, a Args) (_ Args, err error) {
	if s.origins != nil {
		if a, err = s.chooseSender(ctx, c, a); err != nil {
			return a, err
		}
		if a, err = s.derive(ctx, c, a); err != nil {
			return a, err
		}
	}
	if a, err = s.enclose(ctx, c, a); err != nil {
		return a, err
	}
	return normalize(a.sign(c.Preferences.Signature))
}

// derive is complete without the checks of the result.
func (s *sender) derive(ctx context.Context, c tool.Call, a Args) (Args, error) {
	a.Origin = nil
	switch {
	case a.ReplyTo != nil:
		m, o, err := s.origin(ctx, c, a.ReplyTo.MessageID, false)
		if err != nil {
			return a, err
		}
		if err := o.answeredBy(headersOf(m.Payload), own(c, a), a.ReplyTo.All); err != nil {
			return a, err
		}
		a.To, a.Cc, a.ThreadID, a.InReplyTo = o.To, o.Cc, m.ThreadId, idOf(headersOf(m.Payload).get("Message-ID"))
		a.Subject, a.Origin = prefixed("Re: ", o.Subject), o
	case a.Forward != nil:
		_, o, err := s.origin(ctx, c, a.Forward.MessageID, true)
		if err != nil {
			return a, err
		}
		a.ThreadID, a.InReplyTo, a.Subject, a.Origin = "", "", prefixed("Fwd: ", o.Subject), o
	case a.ThreadID != "":
		return s.inThread(ctx, c, a)
	case a.InReplyTo != "":
		return a, fault.Invalid("inReplyTo", "reply with replyTo.messageId instead")
	}
	return a, nil
}

// inThread derives the Message-IDs of an e-mail that continues a conversation. Its recipients are the model's. If the
// account does not let e-mails be read, the e-mail names the conversation alone.
func (s *sender) inThread(ctx context.Context, c tool.Call, a Args) (Args, error) {
	a.InReplyTo = ""
	svc, err := s.service(ctx, c)
	if err != nil {
		return a, err
	}
	reading, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	ids, _, err := newestOf(reading, svc, a.ThreadID)
	if fault.Is(err, fault.Auth, fault.CodeScope) {
		return a, nil
	}
	if err != nil {
		return a, err
	}
	m, o, err := s.origin(ctx, c, ids[len(ids)-1], false)
	if err != nil {
		return a, err
	}
	o.Quote = ""
	a.InReplyTo, a.Origin = idOf(headersOf(m.Payload).get("Message-ID")), o
	return a, nil
}

// newest reads whether the e-mail that the call answers is still the newest of its conversation.
func (s *sender) newest(ctx context.Context, c tool.Call, a Args) ([]tool.Precondition, error) {
	if a.ThreadID == "" || a.Origin == nil {
		return nil, nil
	}
	svc, err := s.service(ctx, c)
	if err != nil {
		return nil, err
	}
	reading, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	ids, _, err := newestOf(reading, svc, a.ThreadID)
	if err != nil {
		return nil, err
	}
	p := tool.Precondition{Name: "Newest e-mail of the conversation", Value: "the one that this answers", Fine: true}
	if last := ids[len(ids)-1]; last != a.Origin.MessageID {
		p.Value, p.Fine = "a later one ("+last+")", false
		p.Warnings = []tool.Warning{{Text: "The conversation has a later e-mail than the one that this answers."}}
	}
	return []tool.Precondition{p}, nil
}

// origin reads an e-mail that is answered or forwarded.
func (s *sender) origin(ctx context.Context, c tool.Call, id string, forwarded bool) (*gmailapi.Message, *Origin,
	error) {
	svc, err := s.service(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	reading, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	m, err := whole(reading, svc, id)
	if err != nil {
		return nil, nil, err
	}
	l, err := s.origins.letter(ctx, m, forwarded)
	if err != nil {
		return nil, nil, err
	}
	o := &Origin{MessageID: id, From: l.From, Subject: l.Subject, Date: l.Date, References: l.References}
	if o.Quote = quotation(l); forwarded {
		o.Quote, o.References, o.files = passedOn(l), nil, l.Attachments
	}
	return m, o, nil
}

// answeredBy fills in the recipients of an answer. own are the account's addresses, which get no copy.
func (o *Origin) answeredBy(h headers, own []string, all bool) error {
	from, errFrom := bare(h.get("From"))
	to, errTo := bare(h.get("To"))
	cc, errCc := bare(h.get("Cc"))
	goes, errGoes := bare(h.get("Reply-To"))
	switch {
	case errGoes != nil || errFrom != nil && len(goes) == 0:
		return unanswerable("The mail names no address that can be answered.")
	case len(goes) > 0 && !slices.Equal(goes, from):
		o.Because = "Reply-To says " + strings.Join(goes, ", ") + ", and not the sender " + strings.Join(from, ", ")
	case len(from) == 1 && contains(own, from[0]):
		goes = to
		o.Because = "you wrote the e-mail that this answers, to them"
	default:
		goes = from
		o.Because = "the e-mail is from " + strings.Join(from, ", ")
	}
	if all {
		if errTo != nil || errCc != nil {
			return unanswerable("The recipients of the mail cannot be read, so not all of them can be answered.")
		}
		o.Cc = without(slices.Concat(to, cc), slices.Concat(goes, own))
		o.Because += "; copies go to all others who got it"
	}
	if o.To = without(goes, own); len(o.To) == 0 {
		o.To = goes
	}
	if len(o.To) == 0 || len(o.To)+len(o.Cc) > MaxRecipients {
		return unanswerable("An answer would have no recipient, or more than 20.")
	}
	return nil
}

// redirected reports whether an answer goes to another address than the sender's.
func (o *Origin) redirected() bool { return strings.HasPrefix(o.Because, "Reply-To ") }

func unanswerable(why string) error {
	return fault.New(fault.Tool, "unanswerable", "%s", why)
}

// bare returns the addresses in a header, each once, without names.
func bare(header string) (all []string, err error) {
	if strings.TrimSpace(header) == "" {
		return nil, nil
	}
	list, err := listed(header)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		one, err := address.Normalize(a)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// listed returns the addresses in a header. If the header breaks the grammar of RFC 5322, listed reads it as other mail
// programs do.
func listed(header string) (all []string, err error) {
	list, err := parser.ParseList(header)
	if err != nil {
		return lenient(header, err)
	}
	for _, a := range list {
		all = append(all, a.Address)
	}
	return all, nil
}

var (
	quotedNames = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)
	inBrackets  = lazyregexp.New(`<\s*([^<>\s]*)\s*>`)
)

// lenient returns the addresses in a header that has no valid grammar: those in angle brackets, and words with an @
// that stand alone between commas or semicolons. Other words are names. It returns why if a part of the header could
// mean something else.
func lenient(header string, why error) (all []string, err error) {
	for _, part := range strings.FieldsFunc(quotedNames.ReplaceAllString(header, ""), isSeparator) {
		part = strings.TrimSpace(part)
		bracketed := inBrackets.FindAllStringSubmatch(part, -1)
		rest := inBrackets.ReplaceAllString(part, "")
		switch {
		case len(bracketed) > 1 || strings.ContainsAny(rest, `<>"`):
			return nil, why
		case len(bracketed) == 1 && names(rest, bracketed[0][1]):
			return nil, why
		case len(bracketed) == 1:
			all = append(all, bracketed[0][1])
		case strings.ContainsAny(rest, " \t\r\n") && strings.Contains(rest, "@"):
			return nil, why
		case strings.Contains(rest, "@"):
			all = append(all, rest)
		}
	}
	if len(all) == 0 {
		return nil, why
	}
	return all, nil
}

// names reports whether a name contains an address other than this one, which a reader of the name would expect.
func names(name, addr string) bool {
	for word := range strings.FieldsSeq(name) {
		other, err := address.Normalize(strings.Trim(word, "()[]"))
		if err == nil && !strings.EqualFold(other, addr) {
			return true
		}
	}
	return false
}

func isSeparator(r rune) bool { return r == ',' || r == ';' }

// without returns the addresses that are not among the others, each once. Capitals make no difference.
func without(all, others []string) (rest []string) {
	for _, a := range all {
		if !contains(others, a) && !contains(rest, a) {
			rest = append(rest, a)
		}
	}
	return rest
}

func contains(all []string, address string) bool {
	return slices.ContainsFunc(all, func(a string) bool { return strings.EqualFold(a, address) })
}

// prefixed returns a subject that begins with the prefix once.
func prefixed(prefix, subject string) string {
	if len(subject) >= len(prefix)-1 && strings.EqualFold(subject[:len(prefix)-1], prefix[:len(prefix)-1]) {
		return subject
	}
	return clip.Text(prefix+subject, MaxSubject)
}

// checkOrigin reads the e-mail that an e-mail answers or forwards again, and returns an error if the approved card says
// something else about it.
func (s *sender) checkOrigin(ctx context.Context, c tool.Call, a Args) (err error) {
	if a.Origin == nil && a.ReplyTo == nil && a.Forward == nil {
		return nil
	}
	if s.origins == nil || a.Origin == nil {
		return changedOrigin()
	}
	again := a
	if a.ReplyTo == nil && a.Forward == nil { // the e-mail was the newest of its conversation when it was shown
		m, o, err := s.origin(ctx, c, a.Origin.MessageID, false)
		if err != nil {
			return err
		}
		again.ThreadID, again.InReplyTo, again.Origin = m.ThreadId, idOf(headersOf(m.Payload).get("Message-ID")), o
	} else if again, err = s.derive(ctx, c, a); err != nil {
		return err
	}
	if again.Origin == nil || again.ThreadID != a.ThreadID || again.InReplyTo != a.InReplyTo ||
		!again.Origin.same(a.Origin) {
		return changedOrigin()
	}
	return nil
}

func changedOrigin() error {
	return fault.New(fault.Policy, fault.CodeStaleView,
		"The mail that this answers or forwards is not as the approval showed it. Nothing was sent. "+
			"Please ask for it again.")
}

// same compares everything that decides where an e-mail goes. The quoted text is as approved; only its conversion can
// differ.
func (o *Origin) same(other *Origin) bool {
	return o.MessageID == other.MessageID && o.From == other.From && o.Because == other.Because &&
		slices.Equal(o.To, other.To) && slices.Equal(o.Cc, other.Cc) && slices.Equal(o.References, other.References)
}
