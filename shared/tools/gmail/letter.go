package gmail

import (
	"context"
	"mime"
	"net/mail"
	"slices"
	"strings"
	"time"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
)

// The limits of one e-mail.
const (
	maxListed      = 50   // addresses of a header
	maxReferences  = 20   // Message-IDs: the first and the newest
	maxAttachments = 50   // attachments
	maxParts       = 1000 // parts, at any depth
)

// Letter is an e-mail in the form that the model reads. Hidden characters in its texts are written out.
type Letter struct {
	ID          string       `json:"id"`
	ThreadID    string       `json:"threadId"`
	From        string       `json:"from"`
	ReplyTo     []string     `json:"replyTo,omitempty"` // where its sender wants the answers, if not at From
	To          []string     `json:"to,omitempty"`
	Cc          []string     `json:"cc,omitempty"`
	Date        string       `json:"date,omitempty"` // when Gmail took it, in UTC
	Subject     string       `json:"subject"`
	MessageID   string       `json:"messageIdHeader,omitempty"` // the header Message-ID
	References  []string     `json:"references,omitempty"`
	List        string       `json:"list,omitempty"`        // the mailing list that it came through
	Unsubscribe string       `json:"unsubscribe,omitempty"` // where the list can be left
	Sender      string       `json:"sender"`                // whether the sender is proven: the values of Proven
	Text        string       `json:"text"`                  // Markdown
	Truncated   bool         `json:"truncated,omitempty"`   // the text is only the beginning
	Attachments []Attachment `json:"attachments,omitempty"`
	Ours        bool         `json:"ours,omitempty"` // a call of gmail_send made it: a model wrote its words
}

// The values of Letter.Sender, by the check that Gmail made when it took the e-mail.
const (
	SenderProven  = "proven"     // DMARC passed: the domain in From has sent it
	SenderFailed  = "not proven" // DMARC failed: somebody else may have sent it
	SenderUnknown = "unknown"    // Gmail recorded no result, as for e-mails that the user sent
)

// Attachment is a file in an e-mail. Its content is not read.
type Attachment struct {
	Part string `json:"part"` // Gmail's ID of the part
	Name string `json:"name,omitempty"`
	Type string `json:"type"`
	Size int64  `json:"size"` // bytes
}

// words returns the texts of strangers in an e-mail.
func (l Letter) words() string {
	all := []string{l.From, l.Subject, l.List, l.Unsubscribe, l.Text}
	for _, list := range [][]string{l.ReplyTo, l.To, l.Cc} {
		all = append(all, list...)
	}
	for _, a := range l.Attachments {
		all = append(all, a.Name)
	}
	return strings.Join(all, "\n")
}

// letter reads an e-mail that Gmail has taken apart.
func (r *reader) letter(ctx context.Context, m *gmailapi.Message, quotes bool) (Letter, error) {
	h := headersOf(m.Payload)
	l := Letter{ID: m.Id, ThreadID: line(m.ThreadId, maxLine), From: senderOf(h.get("From")),
		ReplyTo: people(h.get("Reply-To")), To: people(h.get("To")), Cc: people(h.get("Cc")),
		Subject: line(mailtext.Header(h.get("Subject")), maxLine), MessageID: idOf(h.get("Message-ID")),
		References: idsIn(h.get("References")), List: line(mailtext.Header(h.get("List-Id")), maxLine),
		Unsubscribe: line(h.get("List-Unsubscribe"), 2*maxLine), Sender: proven(h.get("Authentication-Results")),
		Ours: h.get(actionHeader) != ""}
	if sameAddress(h.get("Reply-To"), h.get("From")) {
		l.ReplyTo = nil
	}
	if m.InternalDate > 0 {
		l.Date = time.UnixMilli(m.InternalDate).UTC().Format(time.RFC3339)
	}
	p := parts{left: maxParts}
	p.add(m.Payload, false)
	l.Attachments = p.attachments
	text, cut, err := r.text(ctx, p.texts)
	if err != nil {
		return l, err
	}
	if !quotes {
		text = mailtext.Fold(text, h.get("In-Reply-To") != "" || len(l.References) > 0)
	}
	l.Text, _ = visible.Text(strings.TrimSpace(text))
	l.Truncated = cut || p.left == 0
	return l, nil
}

// headers are the headers of a part, by lower-case name: the first of each name, which is the newest.
type headers map[string]string

func headersOf(p *gmailapi.MessagePart) headers {
	all := headers{}
	for _, h := range p.Headers {
		if name := strings.ToLower(h.Name); all[name] == "" {
			all[name] = h.Value
		}
	}
	return all
}

func (h headers) get(name string) string { return h[strings.ToLower(name)] }

// people returns the addresses in a header, each with its name. A header that cannot be parsed is one text.
func people(header string) (all []string) {
	if strings.TrimSpace(header) == "" {
		return nil
	}
	list, err := parser.ParseList(header)
	if err != nil {
		return []string{line(mailtext.Header(header), 2*maxLine)}
	}
	for _, a := range list[:min(len(list), maxListed)] {
		all = append(all, nameOf(a))
	}
	return all
}

// parser decodes names in every known character set.
var parser = mail.AddressParser{WordDecoder: &mailtext.Words}

func nameOf(a *mail.Address) string {
	if a.Name == "" {
		return line(a.Address, maxLine)
	}
	name := mailtext.Header(a.Name) // some programs put encoded words into quotation marks
	return line(name, maxLine) + " <" + line(a.Address, maxLine) + ">"
}

// sameAddress reports whether both headers name one address, and the same.
func sameAddress(a, b string) bool {
	one, errOne := parser.Parse(a)
	other, errOther := parser.Parse(b)
	return errOne == nil && errOther == nil && strings.EqualFold(one.Address, other.Address)
}

// idOf returns the Message-ID in a header, or "" if there is none. It leaves out comments and spaces around the ID, and
// adds the angle brackets that some programs omit.
func idOf(header string) string {
	id := strings.TrimSpace(header)
	if _, from, ok := strings.Cut(id, "<"); ok {
		inner, _, _ := strings.Cut(from, ">")
		id = strings.TrimSpace(inner)
	}
	id = "<" + id + ">"
	if len(id) > MaxMessageID || !messageID.MatchString(id) {
		return ""
	}
	return id
}

// idsIn returns the first and the last Message-IDs in a header.
func idsIn(header string) (ids []string) {
	bracketed := strings.Contains(header, "<") // other words are comments
	for _, word := range strings.Fields(strings.ReplaceAll(header, "><", "> <")) {
		if id := idOf(word); id != "" && strings.Contains(word, "<") == bracketed {
			ids = append(ids, id)
		}
	}
	if n := len(ids) - maxReferences; n > 0 { // the first one names the conversation
		ids = slices.Delete(ids, 1, 1+n)
	}
	return ids
}

// proven reads the result of DMARC from the header that Gmail adds above all others.
func proven(results string) string {
	server, checks, _ := strings.Cut(results, ";")
	if strings.TrimSpace(server) != "mx.google.com" {
		return SenderUnknown
	}
	for check := range strings.SplitSeq(checks, ";") {
		switch word, _, _ := strings.Cut(strings.TrimSpace(check)+" ", " "); word {
		case "dmarc=pass":
			return SenderProven
		case "dmarc=fail":
			return SenderFailed
		}
	}
	return SenderUnknown
}

// typeOf returns the type of a part and its parameters. An invalid header counts as Gmail has read it.
func typeOf(p *gmailapi.MessagePart) (kind string, params map[string]string) {
	kind, params, err := mime.ParseMediaType(headersOf(p).get("Content-Type"))
	if err != nil && kind == "" {
		kind = strings.ToLower(p.MimeType)
	}
	if kind, _, _ = strings.Cut(kind, " "); kind == "" {
		kind = "text/plain" // RFC 2045 §5.2
	}
	return clip.Text(kind, maxLine), params
}
