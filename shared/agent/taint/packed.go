package taint

import (
	"encoding/ascii85"
	"strings"
)

// A packing writes each few bits of a text as one character of an alphabet.
type packing struct {
	values [256]int8 // of the characters; -1 for others
	bits   int
	group  int // number of characters after which a character begins with a byte again
}

var packings = []packing{
	newPacking("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 6, 4),
	newPacking(base32Letters, 5, 8),
	newPacking("0123456789ABCDEFGHIJKLMNOPQRSTUV", 5, 8), // base32hex
}

func newPacking(alphabet string, bits, group int) packing {
	p := packing{bits: bits, group: group}
	for c := range p.values {
		of := byte(c)
		if bits < 6 && of >= 'a' && of <= 'z' {
			of -= 'a' - 'A'
		}
		switch of {
		case '-':
			of = '+'
		case '_':
			of = '/'
		}
		p.values[c] = int8(strings.IndexByte(alphabet, of))
	}
	return p
}

// leastUnpacked is the minimum length of an unpacked run, in bytes. Few other texts unpack to so many printable ones.
const leastUnpacked = 8

// unpacked returns the runs of printable ASCII that the text has in the packing. Other characters may cut a run into
// pieces, such as spaces, quotes and signs between the lines of a program.
func (p *packing) unpacked(s string, least int) string {
	values, word, known := make([]byte, 0, len(s)), 0, false // known: the word has a letter or a digit
	for i := range len(s) {
		c := s[i]
		if !isBase64(c) {
			if !known {
				values = values[:word] // a sign between two pieces
			}
			word, known = len(values), false
			continue
		}
		known = known || c != '+' && c != '/' && c != '-' && c != '_'
		if v := p.values[c]; v >= 0 {
			values = append(values, byte(v))
		}
	}
	if len(values) < least {
		return ""
	}
	var out []byte
	for first := range min(p.group, len(values)) { // a run begins with a byte
		out = p.unpackFrom(values[first:], max(leastUnpacked, least*p.bits/8), out)
	}
	return strings.TrimSpace(string(out))
}

// unpackFrom appends the printable runs of at least least bytes, each on a line, if a byte begins with the first value.
func (p *packing) unpackFrom(values []byte, least int, out []byte) []byte {
	begin, acc, bits := len(out), 0, 0
	for _, v := range values {
		acc, bits = acc<<p.bits|int(v), bits+p.bits
		if bits < 8 {
			continue
		}
		bits -= 8
		c := byte(acc >> bits)
		acc &= 0xff
		if c >= ' ' && c <= '~' || c >= '\t' && c <= '\r' {
			out = append(out, c)
			continue
		}
		if len(out)-begin >= least {
			out = append(out, '\n')
			begin = len(out)
		}
		out = out[:begin]
	}
	if len(out)-begin < least {
		out = out[:begin]
	}
	return append(out, '\n')
}

// uudecoded returns what the lines of uuencode in a text contain. Each line begins with the number of its bytes.
func uudecoded(s string) string {
	var out []byte
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, "\r\n")
		if len(line) < leastUnpacked || !inUU(line) {
			continue
		}
		n, acc := int(line[0]-' '), 0
		if len(line)-1 < (n+2)/3*4 || len(line)-1 > (n+2)/3*4+1 { // a checksum may follow
			continue
		}
		bytes := make([]byte, 0, n+2)
		for i := range (n + 2) / 3 * 4 {
			acc = acc<<6 | int(line[1+i]-' ')&0x3f
			if i%4 == 3 {
				bytes = append(bytes, byte(acc>>16), byte(acc>>8), byte(acc))
			}
		}
		out = append(out, bytes[:n]...)
	}
	return textOf(out)
}

// inUU reports whether all characters of a line are those of uuencode.
func inUU(line string) bool {
	for i := range len(line) {
		if line[i] < ' ' || line[i] > '`' {
			return false
		}
	}
	return true
}

// base85 is the alphabet of Git and Python (RFC 1924), and z85 that of ZeroMQ. The position of a character is its
// value.
const (
	base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	z85    = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)

// from85 decodes a word in Ascii85, with or without its brackets, base85 or Z85. It returns "" if that is no text.
func from85(word string) string {
	forms := []string{strings.TrimSuffix(strings.TrimPrefix(word, "<~"), "~>")}
	for _, alphabet := range []string{base85, z85} {
		forms = append(forms, strings.Map(func(r rune) rune {
			if v := strings.IndexRune(alphabet, r); v >= 0 {
				return '!' + rune(v)
			}
			return -1
		}, word))
	}
	for _, f := range forms {
		b := make([]byte, 4*len(f)+4)
		n, _, err := ascii85.Decode(b, []byte(f), true)
		if text := textOf(b[:n]); err == nil && text != "" {
			return text
		}
	}
	return ""
}

// words85 returns the words of a text that [from85] decodes.
func words85(s string, least int) string {
	var out []string
	for word := range strings.FieldsSeq(s) {
		if len(word) >= least && len(word) <= longestWord {
			if text := from85(strings.Trim(word, "\"'")); text != "" {
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, "\n")
}

// longestWord is the size limit of a word in base85, in bytes.
const longestWord = 64 << 10
