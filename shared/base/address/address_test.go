package address

import (
	"errors"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
)

func TestNormalizeCase(t *testing.T) {
	for in, want := range map[string]string{
		"a@example.com":                   "a@example.com",
		"First.Last@EXAMPLE.Com":          "First.Last@example.com",
		"a+tag@example.co.uk":             "a+tag@example.co.uk",
		"o'neil_x@mail.example.org":       "o'neil_x@mail.example.org",
		"user@xn--exmple-4nf.com":         "user@xn--exmple-4nf.com",
		"user@example.xn--p1ai":           "user@example.xn--p1ai",
		"1@2.de":                          "1@2.de",
		"user@münchen.de":                 "user@xn--mnchen-3ya.de",
		"user@MÜNCHEN.DE":                 "user@xn--mnchen-3ya.de",
		"user@mu\u0308nchen.de":           "user@xn--mnchen-3ya.de", // decomposed, as macOS writes it
		"user@straße.de":                  "user@xn--strae-oqa.de",
		"user@例え.テスト":                     "user@xn--r8jz45g.xn--zckzah",
		"user@почта.рф":                   "user@xn--80a1acny.xn--p1ai",
		"user@xn--mnchen-3ya.de":          "user@xn--mnchen-3ya.de",
		"user@한국.kr":                      "user@xn--3e0b707e.kr",
		"user@sub.bücher.example":         "user@sub.xn--bcher-kva.example",
		strings.Repeat("a", 64) + "@b.de": strings.Repeat("a", 64) + "@b.de",
	} {
		got, err := Normalize(in)
		if err != nil || got != want {
			t.Errorf("Normalize(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

var refused = []string{
	"", "@", "a", "a@", "@example.com", "a@b@example.com", "a@example.com\r\nBcc: evil@x.com",
	"a@example.com\nTo: c@d.com",
	"a@example.com, b@x.com", "a@example.com;c@d.com", "undisclosed-recipients:;", "grp: a@b.com;", "Boss <evil@x.com>",
	"=?utf-8?b?Ym9zc0Bjb3JwLmNvbQ==?= <evil@x.com>", "=?utf-8?q?a?=@example.com", "evil@x.com (boss@corp.com)",
	`"a b"@example.com`, `"a@b"@x.com`,
	"a@localhost", "a@host.localhost", "a@printer.local", "a@metadata.google.internal", "a@x.onion",
	"a@1.0.0.127.in-addr.arpa", "a@[127.0.0.1]", "a@[IPv6:::1]",
	"a@127.0.0.1", "a@-x.com", "a@x-.com", "a@example.com.", "a@.example.com", "a@example..com", "mailto:a@example.com",
	"a@example.com\x00", "a\u202e@example.com", "a\u200b@example.com", "a@example\u3002com", "\uff41@example.com",
	"a@ex\u0430mple.com", "a%evil.com@example.com", "evil.com!a@example.com", "-oQ/tmp@example.com", ".a@example.com",
	"a.@example.com", "a..b@example.com", "a@ex_ample.com", "a@example.c", "a@example.123", " a@example.com",
	"a@example.com ",
	"*@example.com", "|/bin/sh@example.com", "`id`@example.com", "/etc/passwd@example.com", "a/b@example.com",
	"$HOME@example.com", "a?b@example.com",
	"a#b@example.com", "a^b@example.com", "{a,b}@example.com", "a=?utf-8?q?b?=@example.com",
	"a.=?utf-8?b?Yg==?=.c@example.com",
	"a@münchen", "a@\u212aen.com", "a@İstanbul.com.tr",
	"a@pаypal.com", "a@αpple.com", "a@exa\u00admple.de", "a@münchen\uff0ede", "a@-ü.de", "a@\u0308u.de",
	"jürgen@example.com", "用户@example.com",
	"a\t@example.com", "<a@example.com>", "a@xn--.com", "a\x80@example.com",
	strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("b", 64) + ".com",
	"a@" + strings.Repeat("bbbbbbb.", 32) + "com",
}

func TestNormalizeAmbiguous(t *testing.T) {
	for _, in := range refused {
		got, err := Normalize(in)
		var e *fault.Error
		if !errors.As(err, &e) || e.Class != fault.Validation {
			t.Errorf("Normalize(%q) = %q, %v; want a ValidationError", in, got, err)
			continue
		}
		if len(in) > 3 && strings.Contains(e.Error(), in) {
			t.Errorf("the error repeats the address: %v", e)
		}
	}
}

func TestNormalizeRefusals(t *testing.T) {
	for in, named := range map[string]string{
		"*@example.com": "character *,", "|/bin/sh@example.com": "character |,", "`id`@example.com": "character `,",
		"/etc/passwd@example.com": "character /,",
		"a b@example.com":         "character U+0020,", "\u202ea@example.com": "character U+202E,",
		"a\x80@example.com": "character U+FFFD,", "a=?utf-8?q?b?=@example.com": "character ?,",
		"jürgen@example.com":           "whose first part is ASCII",
		"ken@ex\u200dample.com":        "invisible character U+200D",
		"ken@\u0430pple.com":           "\u0430 is U+0430",
		"ken@g\u03bfogle.com":          "it may imitate another one",
		"ken@\u4f8b\u0430.example.com": "several scripts",
	} {
		if _, err := Normalize(in); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%q: %v; want an error with %q", in, err, named)
		}
	}
}

func TestListRepetitionsAndFaults(t *testing.T) {
	got, err := List("to", []string{"a@example.com", "B@x.org", "a@EXAMPLE.com", "b@x.org"}, 20)
	if want := []string{"a@example.com", "B@x.org", "b@x.org"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("List = %q, %v; want %q", got, err, want)
	}
	_, err = List("cc", []string{"a@example.com", "SECRET someone@x.com"}, 20)
	var e *fault.Error
	if !errors.As(err, &e) || e.Field != "cc/1" || strings.Contains(e.Error(), "SECRET") {
		t.Errorf("List = %v; want an error at cc/1 without the address", err)
	}
	_, err = List("bcc", make([]string, 21), 20)
	if !errors.As(err, &e) || e.Field != "bcc" {
		t.Errorf("List of 21 = %v; want an error at bcc", err)
	}
}

func TestUnicodeOfPunycode(t *testing.T) {
	if shown, puny := Unicode("user@xn--exmple-4nf.com"); !puny || shown == "user@xn--exmple-4nf.com" ||
		strings.Contains(shown, "xn--") {
		t.Errorf("Unicode = %q, %v", shown, puny)
	}
	if shown, puny := Unicode("user@example.com"); puny || shown != "user@example.com" {
		t.Errorf("Unicode = %q, %v", shown, puny)
	}
}

// FuzzNormalize checks that an accepted address is a fixed point, is plain ASCII, and is parsed by net/mail as the same
// single mailbox.
func FuzzNormalize(f *testing.F) {
	for _, s := range refused {
		f.Add(s)
	}
	f.Add("First.Last+tag@Sub.EXAMPLE.com")
	f.Add("user@xn--exmple-4nf.com")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Normalize(s)
		if err != nil {
			return
		}
		at := strings.IndexByte(s, '@')
		foreign := strings.ContainsFunc(s, func(r rune) bool { return r > '~' }) // its domain is converted
		if at < 0 || !strings.HasPrefix(got, s[:at+1]) || !foreign && got != s[:at]+strings.ToLower(s[at:]) {
			t.Fatalf("Normalize(%q) = %q", s, got)
		}
		if again, err := Normalize(got); err != nil || again != got {
			t.Fatalf("Normalize(%q) = %q, but again %q, %v", s, got, again, err)
		}
		for _, r := range got {
			if r <= ' ' || r > '~' {
				t.Fatalf("Normalize(%q) let %U through", s, r)
			}
		}
		parsed, err := mail.ParseAddressList(got)
		if err != nil || len(parsed) != 1 || parsed[0].Address != got || parsed[0].Name != "" {
			t.Fatalf("net/mail reads %q as %v, %v", got, parsed, err)
		}
	})
}
