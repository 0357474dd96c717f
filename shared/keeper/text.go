package keeper

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/countersign-run/countersign/shared/clip"
)

// Bounds of a command's output, in bytes.
const (
	MaxKept = 256 << 10 // of what is kept: the first quarter, and of the rest the last
	MaxText = 16 << 10  // of what a model is told, in the same proportion
)

// Text returns what a terminal would have shown of an output, as far as a text can: without control sequences, of a
// line that was written over its last state, and U+FFFD for each run of bytes that is no UTF-8. Of a text over limit
// bytes the first quarter and the end are left, with a [clip.Mark] between them, on whole characters; cut reports that.
func Text(raw []byte, limit int) (text string, cut bool) {
	return clip.Middle(shown(raw), limit)
}

// shown returns the text that a terminal would have shown, however long it is.
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

// A line is one of a terminal while it is written.
type line struct {
	cells []string
	at    int
}

// write writes what a line shows in the end.
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
		case state != ansi.NormalState: // no sequence: nothing is hidden behind one that does not end
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

// longestSequence bounds a control sequence. What is longer is taken for text.
const longestSequence = 1 << 10

// control reports whether a character is none that is shown.
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

// move does what a control character does to the place where the next character is put.
func (l *line) move(c rune) {
	switch c {
	case '\r':
		l.at = 0
	case '\b':
		l.at = max(0, l.at-1)
	}
}

// erase does what those sequences do that progress bars are made of: erase in the line, and go to a column.
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

// maxColumn is the last that a sequence may go to.
const maxColumn = 1000

// A Kept output is the beginning and the end of what is written to it. The zero value is ready for use.
type Kept struct {
	head, tail []byte
	all        int64
}

// Write never fails.
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
	if len(k.tail) > 2*last { // not at each write
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-last:]...)
	}
	return n, nil
}

// Bytes returns what was kept, with a [clip.Mark] for what was not, and whether there is one.
func (k *Kept) Bytes() ([]byte, bool) {
	tail := k.tail[max(0, len(k.tail)-(MaxKept-MaxKept/4)):]
	out := k.all - int64(len(k.head)+len(tail))
	if out == 0 {
		return append(bytes.Clone(k.head), tail...), false
	}
	return append(append(bytes.Clone(k.head), "\n"+clip.Mark(out)+"\n"...), tail...), true
}
