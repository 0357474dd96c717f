package mailtext_test

import (
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
)

// TestConvertedText checks that a text that Gmail has converted already is not converted again.
func TestConvertedText(t *testing.T) {
	for _, label := range []string{"windows-1251", "Shift_JIS", "iso-2022-jp", "gb18030", "utf-8", "utf-7", "utf-16",
		""} {
		if got := mailtext.Decode([]byte("\uFEFFПривет こん"), label); got != "Привет こん" {
			t.Errorf("%s: %q; want got “Привет こん”", label, got)
		}
	}
}

// TestTextOfAnyInput checks inputs that end within a character, an escape sequence or a quotation.
func TestTextOfAnyInput(t *testing.T) {
	for _, s := range []string{"", "a\xff", "\x1b$B", "\x1b$B$",
		"=?utf-8?B?////?=", "> a \n>> b\n", "\xe3\x81", ">", "+", "+-+A", "a+2D3-"} {
		for _, label := range []string{"utf-8", "utf-7", "iso-2022-jp", "shift_jis", "gb18030", "utf-16",
			"no-such-label"} {
			text := mailtext.Decode([]byte(s), label)
			for _, got := range []string{text, mailtext.Header(s), mailtext.Fold(text, true),
				mailtext.Unflow(text, true)} {
				if !utf8.ValidString(got) || len(got) > 8*len(s)+2 {
					t.Errorf("%q in %s: %q", s, label, got)
				}
			}
		}
	}
}

// TestWrongLabels reads texts that mail programs have labelled wrongly, and UTF-7.
func TestWrongLabels(t *testing.T) {
	for _, c := range []struct{ text, label, want string }{
		{"Fr\xf6sche", "UTF-8", "Frösche"},
		{"Frösche \xff", "utf-8", "Frösche \uFFFD"},
		{"Fr+APY-sche, 1 +- 1 +2D3cqQ-!", "utf-7", "Frösche, 1 + 1 💩!"},
		{"+AOk +AOkx", "UNICODE-1-1-UTF-7", "é é"},
		{"a+APY-", "us-ascii", "a+APY-"},
	} {
		if got := mailtext.Decode([]byte(c.text), c.label); got != c.want {
			t.Errorf("%q in %s: %q; want %q", c.text, c.label, got, c.want)
		}
	}
	const head = "=?utf-7?Q?Die_Fr+APY-sche?="
	if got := mailtext.Header(head); got != "Die Frösche" {
		t.Errorf("the header %s is %q; want Die Frösche", head, got)
	}
}
