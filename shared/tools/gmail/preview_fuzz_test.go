package gmail_test

import (
	"strings"
	"testing"
)

// FuzzPreview checks with [toolstest.Suite.Holds] whatever mail is taken: its preview shows every recipient, each at
// the beginning of a line, and every character of subject and body, with every invisible character escaped. The
// fuzzer's addresses are separated by commas.
func FuzzPreview(f *testing.F) {
	f.Add("a@xn--paypal-df0c.com", "", "", "s", "b", "", "")
	f.Add("a@example.com,b@xn--exmple-4nf.com", "A@Example.com", "d@example.com", "a\u202eb",
		"⟨U+202E⟩ \u200b\u2800\U000E0041", "<a href='https://e.example/\u2066'>x</a>", "18c")
	f.Add("x+y@sub.xn--p1ai", "c@example.com,e@example.com,c@EXAMPLE.com", "x@xn--ab-g4t.com",
		"\u0440\u0430ypal \ufeff", "x\r\n\t\u2028\ufe0f", "<img src='//e.example/\u00ad\n'>", "")
	f.Add("a@xn--80ak6aa92e.com", "", "a@xn--0.com", "⟨0xFF⟩ ⟨U+", "\U0010FFFF\ue000",
		"<p style='background:url(http://e/\u034f)'>https://e.example/\u061c", "")
	f.Add("a@xn--a-00a.com", "", "", "", "\u180e\u17b4\u115f"+strings.Repeat("\u0301", 9),
		"<a href='"+strings.Repeat("\u202e", 501)+"'>", "")
	f.Fuzz(func(t *testing.T, to, cc, bcc, subject, body, html, thread string) {
		change := map[string]any{"to": strings.Split(to, ","), "subject": subject, "body": body}
		for name, v := range map[string]string{"cc": cc, "bcc": bcc} {
			if v != "" {
				change[name] = strings.Split(v, ",")
			}
		}
		for name, v := range map[string]string{"htmlBody": html, "threadId": thread} {
			if v != "" {
				change[name] = v
			}
		}
		suite.Holds(t, with(change))
	})
}
