package gmail

import (
	"context"
	"encoding/base64"
	"strings"

	gmailapi "google.golang.org/api/gmail/v1"

	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
)

// Converter returns an HTML text as Markdown, and whether it is only a part of the text.
type Converter func(ctx context.Context, html string) (markdown string, cut bool, err error)

// parts are the parts of an e-mail that its reader sees.
type parts struct {
	texts       []*gmailapi.MessagePart // texts in their order
	attachments []Attachment
	left        int // number of further parts that are read
}

// add adds a part with its children. attached means that the part is in a file, such as a forwarded e-mail.
func (p *parts) add(part *gmailapi.MessagePart, attached bool) {
	if part == nil || p.left == 0 {
		return
	}
	p.left--
	kind, _ := typeOf(part)
	h := headersOf(part)
	disposition, _, _ := strings.Cut(strings.ToLower(h.get("Content-Disposition")), ";")
	file := part.Filename != "" || strings.TrimSpace(disposition) == "attachment"
	switch {
	case kind == "message/rfc822" || len(part.Parts) == 0 && (file || !strings.HasPrefix(kind, "text/")):
		p.attach(part, kind)
		attached = true
	case len(part.Parts) == 0 && !attached:
		p.texts = append(p.texts, part)
	}
	if kind == "multipart/alternative" && !attached {
		p.alternative(part)
		return
	}
	for _, child := range part.Parts {
		p.add(child, attached)
	}
}

// alternative adds the best form of a text. A later form is better (RFC 2046 §5.1.4), if it can be shown.
func (p *parts) alternative(part *gmailapi.MessagePart) {
	var best parts
	for _, child := range part.Parts {
		form := parts{left: p.left}
		form.add(child, false)
		p.left = form.left
		p.attachments = append(p.attachments, form.attachments...)
		if len(form.texts) > 0 {
			best = form
		}
	}
	p.texts = append(p.texts, best.texts...)
}

func (p *parts) attach(part *gmailapi.MessagePart, kind string) {
	if len(p.attachments) >= maxAttachments || strings.HasPrefix(kind, "multipart/") {
		return
	}
	a := Attachment{Part: part.PartId, Name: line(mailtext.Header(part.Filename), maxLine), Type: line(kind, maxLine)}
	if part.Body != nil {
		a.Size = part.Body.Size
	}
	p.attachments = append(p.attachments, a)
}

// text returns the texts as Markdown, one below the other.
func (r *reader) text(ctx context.Context, all []*gmailapi.MessagePart) (text string, cut bool, err error) {
	var out []string
	for _, p := range all {
		part, short, err := r.textOf(ctx, p)
		if err != nil {
			return "", false, err
		}
		if cut = cut || short; strings.TrimSpace(part) != "" {
			out = append(out, strings.Trim(part, "\n"))
		}
	}
	return strings.Join(out, "\n\n"), cut, nil
}

func (r *reader) textOf(ctx context.Context, p *gmailapi.MessagePart) (text string, cut bool, err error) {
	if p.Body == nil || p.Body.Data == "" {
		return "", p.Body != nil && p.Body.AttachmentId != "", nil // a text that Gmail keeps separately is long
	}
	raw, err := base64.URLEncoding.WithPadding(base64.NoPadding).DecodeString(strings.TrimRight(p.Body.Data, "="))
	if err != nil {
		return "", true, nil
	}
	kind, params := typeOf(p)
	text = strings.ReplaceAll(mailtext.Decode(raw, params["charset"]), "\r\n", "\n")
	switch {
	case kind == "text/html" && r.markdown != nil:
		return r.markdown(ctx, text)
	case strings.EqualFold(params["format"], "flowed"):
		text = mailtext.Unflow(text, strings.EqualFold(params["delsp"], "yes"))
	}
	return text, false, nil
}
