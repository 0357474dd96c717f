// Package mailtext reads the texts of e-mails: bytes in a character set, the encoded words of headers, paragraphs in
// the format flowed, and the quotations of earlier e-mails. Its functions accept every input and return valid UTF-8.
package mailtext

import (
	"bytes"
	"io"
	"mime"
	"strings"
	"unicode/utf8"

	gocharset "github.com/emersion/go-message/charset"
	"golang.org/x/net/html/charset"
)

// Decode returns the bytes of a part as text. Bytes that are valid UTF-8 are UTF-8 whatever the label says, because
// Gmail may have converted them, and because mail programs label wrongly. Labels are read as browsers read them (WHATWG
// Encoding), then as IANA registers them. If a label is unknown, or if it says UTF-8 and no character beyond ASCII is
// UTF-8, the text is read as Windows-1252.
func Decode(b []byte, label string) string {
	if utf8.Valid(b) && !escapes(b, label) {
		return strings.TrimPrefix(string(b), "\uFEFF")
	}
	if strings.EqualFold(label, "utf-8") && singleBytes(b) {
		label = "windows-1252"
	}
	in, err := reader(label, bytes.NewReader(b))
	if err != nil {
		in, err = reader("windows-1252", bytes.NewReader(b))
	}
	var out []byte
	if err == nil {
		out, err = io.ReadAll(in)
	}
	if err != nil {
		out = b
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(out), "\uFFFD"), "\uFEFF")
}

// escapes reports whether bytes that are valid UTF-8 are text of another character set: one that switches with escape
// sequences (ISO-2022-JP) or signs (UTF-7), or one with zero bytes (UTF-16).
func escapes(b []byte, label string) bool {
	label = strings.ToLower(label)
	return isUTF7(label) && !bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) ||
		strings.HasPrefix(label, "iso-2022-") && bytes.IndexByte(b, 0x1b) >= 0 ||
		strings.HasPrefix(label, "utf-16") && bytes.IndexByte(b, 0) >= 0
}

// singleBytes reports whether no character beyond ASCII is UTF-8.
func singleBytes(b []byte) bool {
	return bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf && r != utf8.RuneError }) < 0
}

func reader(label string, in io.Reader) (io.Reader, error) {
	if isUTF7(label) {
		b, err := io.ReadAll(in)
		return strings.NewReader(fromUTF7(b)), err
	}
	if enc, _ := charset.Lookup(label); enc != nil {
		return enc.NewDecoder().Reader(in), nil
	}
	return gocharset.Reader(label, in)
}

// Words decodes the encoded words of headers (RFC 2047) in every known character set.
var Words = mime.WordDecoder{CharsetReader: reader}

// Header returns a header's text. Text in an unknown encoding stays as it is.
func Header(value string) string {
	text, err := Words.DecodeHeader(value)
	if err != nil {
		text = value
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
