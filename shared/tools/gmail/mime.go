package gmail

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

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

// build returns the message of a call (RFC 5322, RFC 2045). The same call always has the same bytes: Gmail adds the
// date and the Message-ID, and the sender if the account's address is not known.
func build(a Args, c tool.Call) ([]byte, error) {
	action := c.ActionID
	if !validAction.MatchString(action) {
		return nil, unbuilt(fmt.Errorf("an action ID of %d octets is too long for a header value", len(action)))
	}
	h := header(a, action)
	if from := fromOf(c, a); from != "" {
		h.Set("From", from)
	}
	bodies := []part{{"text/plain", a.Body + a.quote()}}
	if a.HTMLBody != "" {
		bodies = append(bodies, part{"text/html", a.HTMLBody + a.quoteHTML()})
	}
	var b bytes.Buffer
	var err error
	if len(bodies) == 1 {
		setText(&h, bodies[0].kind)
		err = writeText(&b, h, bodies[0])
	} else {
		h.SetContentType("multipart/alternative", map[string]string{"boundary": boundary(action)})
		err = writeParts(&b, h, bodies)
	}
	if err != nil {
		return nil, unbuilt(err)
	}
	return b.Bytes(), nil
}

// accountOf returns the address of the account for which the call was approved, or "" if it is not known.
func accountOf(c tool.Call) string {
	from, err := address.Normalize(c.Place.Name)
	if err != nil {
		return ""
	}
	return from
}

type part struct{ kind, body string }

func unbuilt(err error) error {
	return fault.New(fault.Tool, fault.CodeInternal, "The mail could not be prepared.").Because(err)
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

func setText(h *message.Header, kind string) {
	h.Set("Content-Transfer-Encoding", "quoted-printable")
	h.SetContentType(kind, map[string]string{"charset": "utf-8"})
}

func writeText(w io.Writer, h message.Header, p part) error {
	mw, err := message.CreateWriter(w, h)
	if err != nil {
		return err
	}
	return fill(mw, p.body)
}

func writeParts(w io.Writer, h message.Header, parts []part) error {
	mw, err := message.CreateWriter(w, h)
	if err != nil {
		return err
	}
	for _, p := range parts {
		var ph message.Header
		setText(&ph, p.kind)
		pw, err := mw.CreatePart(ph)
		if err != nil {
			return err
		}
		if err := fill(pw, p.body); err != nil {
			return err
		}
	}
	return mw.Close()
}

func fill(w io.WriteCloser, body string) error {
	if _, err := io.WriteString(w, body); err != nil {
		return err
	}
	return w.Close()
}

// boundary returns a string that cannot occur in a body: quoted-printable never contains "=_".
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
