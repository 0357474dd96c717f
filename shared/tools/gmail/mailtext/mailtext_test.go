package mailtext_test

import (
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/tools/gmail/mailtext"
)

// TestConvertedText checks that a text that Gmail has converted already is not converted again.
func TestConvertedText(t *testing.T) {
	for _, label := range []string{"windows-1251", "Shift_JIS", "iso-2022-jp", "gb18030", "utf-8", "utf-16", ""} {
		if got := mailtext.Decode([]byte("\uFEFFПривет こん"), label); got != "Привет こん" {
			t.Errorf("%s: %q; want got “Привет こん”", label, got)
		}
	}
}

// TestTextOfAnyInput checks inputs that end within a character, an escape sequence or a quotation.
func TestTextOfAnyInput(t *testing.T) {
	for _, s := range []string{"", "a\xff", "\x1b$B", "\x1b$B$",
		"=?utf-8?B?////?=", "> a \n>> b\n", "\xe3\x81", ">"} {
		for _, label := range []string{"iso-2022-jp", "shift_jis", "gb18030", "utf-16", "no-such-label"} {
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
