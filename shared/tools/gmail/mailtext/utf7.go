package mailtext

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// isUTF7 reports whether a label is that of UTF-7 (RFC 2152), in which Outlook 2000 wrote.
func isUTF7(label string) bool {
	return strings.EqualFold(label, "utf-7") || strings.EqualFold(label, "unicode-1-1-utf-7")
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// fromUTF7 decodes UTF-7. Behind each +, characters follow as UTF-16 in base64, up to a - or another sign.
func fromUTF7(b []byte) string {
	var out strings.Builder
	for {
		plain, rest, shifted := bytes.Cut(b, []byte{'+'})
		out.Write(plain)
		if !shifted {
			return out.String()
		}
		b = bytes.TrimLeft(rest, base64Digits)
		digits := rest[:len(rest)-len(b)]
		b, _ = bytes.CutPrefix(b, []byte{'-'})
		if len(digits) == 0 {
			out.WriteByte('+')
			continue
		}
		if len(digits)%4 == 1 { // too few for a byte
			digits = digits[:len(digits)-1]
		}
		raw, _ := base64.RawStdEncoding.AppendDecode(nil, digits) // all are digits
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(raw[2*i:])
		}
		out.WriteString(string(utf16.Decode(units)))
	}
}
