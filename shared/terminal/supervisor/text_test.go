package supervisor_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"plain", "one\ntwo", "one\ntwo"},
		{"a terminal's ends of lines", "one\r\ntwo\r\r\n\r\n", "one\ntwo\n\n"},
		{"tabs and UTF-8", "a\tbä😀 e\u0301\n", "a\tbä😀 e\u0301\n"},
		{"colours", "\x1b[1;31mred\x1b[0m \x1b[38;5;4mblue\x1b[m\n", "red blue\n"},
		{"a title and a link", "\x1b]0;title\x07a \x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\\n", "a link\n"},
		{"progress", " 10%\r 50%\r100%\r\ndone\n", "100%\ndone\n"},
		{"a shorter state over a longer one", "Downloading\rOK\n", "OKwnloading\n"},
		{"erased", "Downloading\r\x1b[KOK\n", "OK\n"},
		{"erased whole", "Downloading\x1b[2K\x1b[1GOK\n", "OK\n"},
		{"backspace", "pasX\bs\n", "pass\n"},
		{"columns", "abc\x1b[1Gx\x1b[3Gz\x1b[2C!\n", "xbz  !\n"},
		{"bracketed paste", "\x1b[?2004hok\x1b[?2004l\r\n", "ok\n"},
		{"no UTF-8", "a\xff\xfeb\xc3\n", "a\uFFFDb\uFFFD\n"},
		{"controls", "a\x00b\x07c\x7fd\u0085e\n", "abcde\n"},
		{"a sequence that does not end", "\x1b]0;title " + strings.Repeat("x", 2000),
			"]0;title " + strings.Repeat("x", 2000)},
		{"an escape at the end", "a\x1b", "a"},
		{"over many lines", "\x1b]0;not\nhidden\n", "]0;not\nhidden\n"},
	} {
		if got, cut := supervisor.Text([]byte(c.raw), 1<<20); got != c.want || cut {
			t.Errorf("%s: %q becomes %q, want %q", c.name, c.raw, got, c.want)
		}
	}
}

func TestTextLimit(t *testing.T) {
	got, cut := supervisor.Text([]byte(strings.Repeat("ä", 100)), 40)
	want := "äääää\n" + clip.Mark(160) + "\n" + strings.Repeat("ä", 15)
	if got != want || !cut {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKept(t *testing.T) {
	var k supervisor.Kept
	var all bytes.Buffer
	for i := range 3000 {
		part := bytes.Repeat([]byte{byte(i)}, 211)
		all.Write(part)
		_, _ = k.Write(part)
		if got, cut := k.Bytes(); all.Len() <= supervisor.MaxKept && (cut || !bytes.Equal(got, all.Bytes())) {
			t.Fatalf("%d bytes are not kept", all.Len())
		}
	}
	const head, tail = 64 << 10, 192 << 10
	b := all.Bytes()
	want := string(b[:head]) + "\n" + clip.Mark(int64(len(b)-head-tail)) + "\n" + string(b[len(b)-tail:])
	if got, cut := k.Bytes(); string(got) != want || !cut {
		t.Error("the beginning and the end are not kept")
	}
	k = supervisor.Kept{}
	_, _ = k.Write(b)
	if got, _ := k.Bytes(); string(got) != want {
		t.Error("one write is kept in another way than many")
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb\r\nc", "\x1b]0;x\x07\x1bPq\x1b\\", "\xff\x9b31m\u009b31m",
		"a\rb\bc\x1b[2K\x1b[99999999G!",
		"\x1b[38:2::1:2:3mx", "e\u0301\u200d\r\u0301"} {
		f.Add([]byte(s), 10)
	}
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		if limit < 8 || limit > 1<<16 {
			limit = 64
		}
		whole, _ := supervisor.Text(raw, 1<<30)
		text, cut := supervisor.Text(raw, limit)
		if !utf8.ValidString(text) || len(text) > limit+64 || cut != (len(whole) > limit) {
			t.Fatalf("%q of %d bytes", text, len(text))
		}
		for _, r := range whole {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7F && r < 0xA0 {
				t.Fatalf("%q has the control %U", whole, r)
			}
		}
	})
}
