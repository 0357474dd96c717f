package taint

import (
	"math/bits"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// windows are all stretches of [Shared] characters of a text, by a hash that rolls from one to the next.
type windows struct {
	text    string
	marks   marks // of the text, or nil
	spans   []span
	newest  map[uint64]int // the last span with a hash; those before it follow by before
	filter  filter
	present int
}

// span is where a window lies in the text, in bytes.
type span struct {
	from, to int
	before   int // the one before with the same hash, or -1
	gone     bool
}

// filter has a bit for each hash that may be one of a text's: most of what is scanned ends here. Nil has all bits.
type filter []uint64

// longestFilter is the number of words of the filter of a text of 64 KiB or more. A shorter text has a word for each
// byte and one more, so that at most one bit in 64 is set and an empty text has a word too.
const longestFilter = 64 << 10

func newFilter(text string) filter { return make(filter, min(len(text)+1, longestFilter)) }

// place returns where the hash's bit is: its word, and the word with that bit alone.
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

// each calls visit with the windows that have the hash and the bytes and are not forgotten.
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

// forget removes the windows that the other text has too. If the windows have marks, so has the other text, and its
// digits must be the same.
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

// forgetText removes the windows of a stretch, whatever its digits.
func (w *windows) forgetText(stretch string) {
	of := w.marks
	w.marks = nil
	w.forget(stretch, nil)
	w.marks = of
}

// in returns the first stretch that the text shares with the other one, as far as it goes, or nothing.
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

// common returns what both texts begin with.
func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return clip.Prefix(a, n)
}

// base is that of the hash, any odd number with bits all over; outgoing is its power by which a character counts when
// it leaves the window.
const base = 0x9E3779B97F4A7C15

var outgoing = func() uint64 {
	p := uint64(1)
	for range Shared {
		p *= base
	}
	return p
}()

// roll calls visit with each window of [Shared] characters whose hash may be in the filter, until it returns false.
// Texts are UTF-8.
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
		h = h*base + c - outgoing*chars[at] // a character that is not there yet is zero
		chars[at], starts[at] = c, i
		i += size
		if n >= Shared-1 && f.has(h) && !visit(h, starts[(n+1)%Shared], i) {
			return
		}
	}
}
