package gmail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// actionHeader carries the action's id with the message and identifies a sent message. The Message-ID cannot, since
// Gmail writes a new one (reliability §0.1).
const actionHeader = "X-Countersign-Action"

var validAction = lazyregexp.New(`^[A-Za-z0-9_-]{1,128}$`)

// message returns the message of an approved call, with its files.
func (s *sender) message(ctx context.Context, c tool.Call, a Args) ([]byte, error) {
	files, err := s.contents(ctx, c, a.Attachments)
	if err != nil {
		return nil, err
	}
	return build(a, c, files...)
}

// build returns the message of a call (RFC 5322, RFC 2045). The same call always has the same bytes: Gmail adds the
// date and the Message-ID, and the sender if the account's address is not known. files are those of a.Attachments.
func build(a Args, c tool.Call, files ...[]byte) ([]byte, error) {
	action := c.ActionID
	if !validAction.MatchString(action) {
		return nil, unbuilt(fmt.Errorf("an action ID of %d octets is too long for a header value", len(action)))
	}
	h := header(a, action)
	if from := fromOf(c, a); from != "" {
		h.Set("From", from)
	}
	bodies := []part{{kind: "text/plain", body: a.Body + a.signed() + a.quote()}}
	if a.HTMLBody != "" {
		bodies = append(bodies, part{kind: "text/html", body: a.HTMLBody + a.signedHTML() + a.quoteHTML()})
	}
	text := part{parts: bodies, kind: "multipart/alternative", boundary: boundary(action)}
	if len(bodies) == 1 {
		text = bodies[0]
	}
	if len(files) > 0 {
		text.boundary = boundary(action + " text")
		text = part{kind: "multipart/mixed", boundary: boundary(action), parts: []part{text}}
		for i, data := range files {
			text.parts = append(text.parts, part{kind: a.Attachments[i].Is.Type, file: a.Attachments[i].Is, data: data})
		}
	}
	text.set(&h)
	var b bytes.Buffer
	b.Grow(sizeOf(files))
	w, err := message.CreateWriter(&b, h)
	if err == nil {
		err = text.write(w)
	}
	if err != nil {
		return nil, unbuilt(err)
	}
	return b.Bytes(), nil
}

// sizeOf returns about as many bytes as the files have in base64.
func sizeOf(files [][]byte) (n int) {
	for _, data := range files {
		n += len(data)/3*4 + len(data)/50
	}
	return n
}

// accountOf returns the address of the account for which the call was approved, or "" if it is not known.
func accountOf(c tool.Call) string {
	from, err := address.Normalize(c.Place.Name)
	if err != nil {
		return ""
	}
	return from
}

// part is a text, a file, or a container of other parts.
type part struct {
	kind     string
	body     string // of a text
	file     *Enclosed
	data     []byte // of a file
	parts    []part
	boundary string // between the parts
}

func unbuilt(err error) error {
	return fault.New(fault.Tool, fault.CodeInternal, "The e-mail could not be prepared.").Because(err)
}

func header(a Args, action string) message.Header {
	var h message.Header
	// Each field is added above the previous ones.
	h.Set(actionHeader, action)
	if a.InReplyTo != "" {
		h.Set("References", strings.Join(append(a.references(), a.InReplyTo), " "))
		h.Set("In-Reply-To", a.InReplyTo)
	}
	h.Set("Subject", encodeSubject(a.Subject))
	for _, list := range []struct {
		name string
		all  []string
	}{{"Bcc", a.Bcc}, {"Cc", a.Cc}, {"To", a.To}} {
		if len(list.all) > 0 {
			h.Set(list.name, strings.Join(list.all, ", "))
		}
	}
	h.Set("MIME-Version", "1.0")
	return h
}

// set adds the headers of the part.
func (p part) set(h *message.Header) {
	switch {
	case p.parts != nil:
		h.SetContentType(p.kind, map[string]string{"boundary": p.boundary})
	case p.file == nil:
		h.Set("Content-Transfer-Encoding", "quoted-printable")
		h.SetContentType(p.kind, map[string]string{"charset": "utf-8"})
	default:
		h.Set("Content-Transfer-Encoding", "base64")
		h.SetContentDisposition("attachment", map[string]string{"filename": p.file.Name})
		params := map[string]string{"name": p.file.Name}
		if strings.HasPrefix(p.kind, "text/") && utf8.Valid(p.data) {
			params["charset"] = "utf-8"
		}
		h.SetContentType(p.kind, params)
	}
}

// write writes the body of the part.
func (p part) write(w *message.Writer) error {
	var err error
	switch {
	case p.file != nil:
		_, err = w.Write(p.data)
	case p.parts == nil:
		_, err = io.WriteString(w, p.body)
	}
	for _, inner := range p.parts {
		var h message.Header
		inner.set(&h)
		iw, err := w.CreatePart(h)
		if err == nil {
			err = inner.write(iw)
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(err, w.Close())
}

// boundary returns a string that cannot occur in a body: neither quoted-printable nor base64 contains "=_".
func boundary(action string) string {
	sum := sha256.Sum256([]byte(action))
	return "=_countersign_" + hex.EncodeToString(sum[:16])
}

var plainSubject = lazyregexp.New(`^[!-~]+( [!-~]+)*$`)

// encodeSubject encodes a subject so that a reader decodes exactly the same text. A text that looks like an encoded
// word is encoded so that it remains text, and so is what folding could change: a long line, or spaces at its ends.
func encodeSubject(s string) string {
	if s == "" || len(s) <= 60 && plainSubject.MatchString(s) && !strings.Contains(s, "=?") {
		return s
	}
	// RFC 2047 §2: an encoded word has at most 75 characters, and no rune is split.
	const octets = 45
	var words []string
	for len(s) > 0 {
		word := clip.Prefix(s, octets)
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(word))+"?=")
		s = s[len(word):]
	}
	return strings.Join(words, " ")
}
