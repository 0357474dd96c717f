package supervisor

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// Limits for a command's output, in bytes.
const (
	MaxKept = 256 << 10 // kept in total: the first quarter, and the last three quarters
	MaxText = 16 << 10  // shown to a model, in the same proportion
)

// Text returns the text that a terminal would show for the output: without control sequences, with the final state of
// each overwritten line, and with U+FFFD for each run of invalid UTF-8. A text over limit bytes is cut to its first
// quarter and its end, with a [clip.Mark] between them; cut reports that.
func Text(raw []byte, limit int) (text string, cut bool) {
	return clip.Middle(shown(raw), limit)
}

// shown returns the text that a terminal would show, without a size limit.
func shown(raw []byte) string {
	valid := bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	var b strings.Builder
	b.Grow(len(valid))
	var row line
	for text := range bytes.Lines(valid) {
		text, ended := bytes.CutSuffix(text, []byte{'\n'})
		row.write(bytes.TrimRight(text, "\r"), &b)
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// A line is one line of a terminal that is being written.
type line struct {
	cells []string
	at    int
}

// write writes the final content of a line.
func (l *line) write(text []byte, to *strings.Builder) {
	if !bytes.ContainsFunc(text, control) {
		to.Write(text)
		return
	}
	l.cells, l.at = l.cells[:0], 0
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	for len(text) > 0 {
		seq, _, n, state := ansi.DecodeSequence(text[:min(len(text), longestSequence)], ansi.NormalState, p)
		first, _ := utf8.DecodeRune(seq)
		switch {
		case state != ansi.NormalState: // not a sequence: an unfinished sequence hides nothing
			n = 1
		case first == ansi.ESC:
			l.erase(ansi.Cmd(p.Command()), p)
		case control(first):
			l.move(first)
		default:
			l.put(string(seq))
		}
		text = text[n:]
	}
	for _, c := range l.cells {
		to.WriteString(c)
	}
}

// longestSequence is the maximum length of a control sequence, in bytes. Anything longer is treated as text.
const longestSequence = 1 << 10

// control reports whether a character is a control character other than a tab.
func control(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7F && r < 0xA0 }

func (l *line) put(c string) {
	for l.at > len(l.cells) {
		l.cells = append(l.cells, " ")
	}
	if l.at < len(l.cells) {
		l.cells[l.at] = c
	} else {
		l.cells = append(l.cells, c)
	}
	l.at++
}

// move applies a control character to the cursor.
func (l *line) move(c rune) {
	switch c {
	case '\r':
		l.at = 0
	case '\b':
		l.at = max(0, l.at-1)
	}
}

// erase applies the control sequences that progress bars use: erase in line, and cursor movement within the line.
func (l *line) erase(cmd ansi.Cmd, p *ansi.Parser) {
	if cmd.Prefix() != 0 || cmd.Intermediate() != 0 {
		return
	}
	n, _ := p.Param(0, 0)
	switch cmd.Final() {
	case 'K':
		switch n {
		case 0:
			l.cells = l.cells[:min(l.at, len(l.cells))]
		case 2:
			l.cells = l.cells[:0]
		}
	case 'G':
		l.at = min(max(n-1, 0), maxColumn)
	case 'C':
		l.at = min(l.at+max(n, 1), max(maxColumn, l.at))
	case 'D':
		l.at = max(0, l.at-max(n, 1))
	}
}

// maxColumn is the last column that a sequence may move to.
const maxColumn = 1000

// Kept keeps the beginning and the end of everything that is written to it, at most MaxKept bytes. The zero value is
// ready for use.
type Kept struct {
	head, tail []byte
	all        int64
}

// Write keeps p. It never fails.
func (k *Kept) Write(p []byte) (int, error) {
	n := len(p)
	k.all += int64(n)
	first := min(len(p), MaxKept/4-len(k.head))
	k.head = append(k.head, p[:first]...)
	p = p[first:]
	const last = MaxKept - MaxKept/4
	if len(p) > last {
		p = p[len(p)-last:]
	}
	k.tail = append(k.tail, p...)
	if len(k.tail) > 2*last { // not at every write, because it copies the tail
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-last:]...)
	}
	return n, nil
}

// Bytes returns the kept output, with a [clip.Mark] in place of the rest, and whether some was dropped.
func (k *Kept) Bytes() ([]byte, bool) {
	tail := k.tail[max(0, len(k.tail)-(MaxKept-MaxKept/4)):]
	out := k.all - int64(len(k.head)+len(tail))
	if out == 0 {
		return append(bytes.Clone(k.head), tail...), false
	}
	return append(append(bytes.Clone(k.head), "\n"+clip.Mark(out)+"\n"...), tail...), true
}
