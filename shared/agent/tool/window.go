package tool

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Window is the part of a text that a call requests.
type Window struct {
	Offset     int // lines to skip
	Limit      int // maximum number of lines; 0: as many as fit
	ByteOffset int // if positive, the byte to begin at, instead of Offset
}

// View is the part of a text that a result has, in whole characters.
type View struct {
	Text string
	From int // the byte of the whole text at which Text begins
	Line int // number of the first line, from 1
	All  int // lines of the whole text
	// The next part begins at one of these: after whole lines, or within a line that is too long for one result. Both
	// are 0 at the end of the text.
	NextOffset     int
	NextByteOffset int
}

// Within returns the part of the text in the window: whole lines of at most most bytes when encoded as JSON, or the
// beginning of a longer line. The error is for a window beyond the end of the text.
func Within(text string, w Window, most int) (View, error) {
	v := View{All: lineCount(text), From: w.ByteOffset}
	if w.ByteOffset == 0 {
		if w.Offset > 0 && w.Offset >= v.All {
			return v, fault.Invalid("offset", "beyond the end of the text (%d lines)", v.All)
		}
		v.From = afterLines(text, w.Offset)
	}
	end := len(text)
	if w.Limit > 0 && v.From <= len(text) {
		end = v.From + afterLines(text[v.From:], w.Limit)
	}
	var err error
	if v.Text, v.From, err = Piece(text[:end], v.From, 0, most); err != nil {
		return v, fault.Invalid("byteOffset", "beyond the end of the text (%d bytes)", len(text))
	}
	if whole := strings.LastIndexByte(v.Text, '\n') + 1; v.From+len(v.Text) < end && whole > 0 {
		v.Text = v.Text[:whole]
	}
	v.Line = strings.Count(text[:v.From], "\n") + 1
	switch next := v.From + len(v.Text); {
	case next == len(text):
	case next > 0 && text[next-1] == '\n':
		v.NextOffset = strings.Count(text[:next], "\n")
	default:
		v.NextByteOffset = next
	}
	return v, nil
}

// lineCount returns the number of lines. The last one need not end with a line feed.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// afterLines returns the position after the first n lines, or the end of the text.
func afterLines(text string, n int) (at int) {
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}
