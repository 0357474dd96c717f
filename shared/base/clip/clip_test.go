package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/base/clip"
)

func TestText(t *testing.T) {
	const mark = " […]"
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(-1, 50).Draw(t, "n")
		got := clip.Text(s, n)
		switch {
		case len(s) <= n && got != s:
			t.Fatalf("%q, which is short enough for %d, became %q", s, n, got)
		case len(got) > max(n, len(mark)) || !utf8.ValidString(got):
			t.Fatalf("%q cut to %d is %q", s, n, got)
		case len(s) > n && (!strings.HasSuffix(got, mark) || !strings.HasPrefix(s, strings.TrimSuffix(got, mark))):
			t.Fatalf("%q cut to %d is %q, without a mark or with what is not its start", s, n, got)
		}
	})
}

func TestLines(t *testing.T) {
	for n, want := range map[int]string{20: "one\ntwo\nthree\n", 14: "one\ntwo\nthree\n", 13: "one\n[…]\n",
		12: "one\n[…]\n", 9: "[…]\n", 0: "[…]\n", -1: "[…]\n"} {
		if got := clip.Lines("one\ntwo\nthree\n", n); got != want {
			t.Errorf("cut to %d it is %q, want %q", n, got, want)
		}
	}
}

func TestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(-1, 50).Draw(t, "n")
		got := clip.Prefix(s, n)
		if !strings.HasPrefix(s, got) || len(got) > max(n, 0) || !utf8.ValidString(got) {
			t.Fatalf("%q cut to %d is %q", s, n, got)
		}
		if next, size := utf8.DecodeRuneInString(s[len(got):]); size > 0 && len(got)+size <= n {
			t.Fatalf("%q cut to %d is %q, where %q fits too", s, n, got, next)
		}
	})
	if got := clip.Prefix("a\x80\x80\x80", 2); len(got) > 2 {
		t.Errorf("%q", got)
	}
}
