package taint

import (
	"math/bits"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// windows holds all stretches of [Shared] characters of a text, indexed by a rolling hash.
type windows struct {
	text    string
	marks   marks // of the text, or nil
	spans   []span
	newest  map[uint64]int // the last span with a hash; span.before leads to the earlier ones
	filter  filter
	present int
}

// span is the position of a window in the text, in bytes.
type span struct {
	from, to int
	before   int // index of the previous span with the same hash, or -1
	gone     bool
}

// filter has a bit for each hash that may occur in a text. It rejects most windows cheaply. A nil filter accepts all.
type filter []uint64

// longestFilter is the number of words in the filter of a text of 64 KiB or more. A shorter text has one word more than
// it has bytes, so at most one bit in 64 is set, and the filter of an empty text is not empty.
const longestFilter = 64 << 10

func newFilter(text string) filter { return make(filter, min(len(text)+1, longestFilter)) }

// place returns the index of the hash's word, and a word with only the hash's bit.
func (f filter) place(h uint64) (word, bit uint64) {
	word, rest := bits.Mul64(h, uint64(len(f)))
	return word, 1 << (rest >> 58)
}

func (f filter) add(h uint64) {
	word, bit := f.place(h)
	f[word] |= bit
}

func (f filter) has(h uint64) bool {
	if f == nil {
		return true
	}
	word, bit := f.place(h)
	return f[word]&bit != 0
}

func newWindows(text string) *windows {
	w := &windows{text: text, newest: make(map[uint64]int, len(text)), filter: newFilter(text)}
	roll(text, nil, func(h uint64, from, to int) bool {
		before, known := w.newest[h]
		if !known {
			before = -1
		}
		w.newest[h] = len(w.spans)
		w.spans = append(w.spans, span{from: from, to: to, before: before})
		w.filter.add(h)
		return true
	})
	w.present = len(w.spans)
	return w
}

// each calls visit with the remaining windows that have the hash and the bytes.
func (w *windows) each(h uint64, bytes string, visit func(*span)) {
	at, known := w.newest[h]
	for known && at >= 0 {
		s := &w.spans[at]
		if !s.gone && w.text[s.from:s.to] == bytes {
			visit(s)
		}
		at = s.before
	}
}

// forget removes the windows that also occur in other. If the windows have marks, of must hold the marks of other, and
// the digits must be equal.
func (w *windows) forget(other string, of marks) {
	roll(other, w.filter, func(h uint64, from, to int) bool {
		w.each(h, other[from:to], func(s *span) {
			if w.marks == nil || sameDigits(w.marks[s.from:s.to], of[from:to]) {
				s.gone = true
				w.present--
			}
		})
		return w.present > 0
	})
}

// forgetText removes the windows of a stretch, whatever its digits are.
func (w *windows) forgetText(stretch string) {
	of := w.marks
	w.marks = nil
	w.forget(stretch, nil)
	w.marks = of
}

// in returns the first stretch that the text shares with other, extended as far as both agree, or "".
func (w *windows) in(other string) (shared string) {
	if w.present == 0 {
		return ""
	}
	roll(other, w.filter, func(h uint64, from, to int) bool {
		w.each(h, other[from:to], func(s *span) { shared = w.text[s.from:s.to] + common(w.text[s.to:], other[to:]) })
		return shared == ""
	})
	return shared
}

// common returns the common beginning of both texts.
func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return clip.Prefix(a, n)
}

// base is the base of the hash: any odd number with bits set throughout. outgoing is base to the power of Shared. A
// character that leaves the window is multiplied by it.
const base = 0x9E3779B97F4A7C15

var outgoing = func() uint64 {
	p := uint64(1)
	for range Shared {
		p *= base
	}
	return p
}()

// roll calls visit with each window of [Shared] characters whose hash may be in the filter, until visit returns false.
// The text must be UTF-8.
func roll(text string, f filter, visit func(hash uint64, from, to int) bool) {
	var chars [Shared]uint64
	var starts [Shared]int
	var h uint64
	for i, n := 0, 0; i < len(text); n++ {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		at := n % Shared
		c := uint64(r) + 1
		h = h*base + c - outgoing*chars[at] // zero for a character that does not exist yet
		chars[at], starts[at] = c, i
		i += size
		if n >= Shared-1 && f.has(h) && !visit(h, starts[(n+1)%Shared], i) {
			return
		}
	}
}
