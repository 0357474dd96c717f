package gmail_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/gmail"
	"github.com/countersign-run/countersign/shared/tools/previewtest"
)

// FuzzPreview checks that the preview shows whatever mail is approved: every recipient, each at the beginning of a
// line, and every character of subject and body, with every invisible character escaped. The fuzzer's addresses are
// separated by commas.
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
	tl := newTool()
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
		args, err := tl.Normalize(with(change))
		if err != nil {
			return
		}
		var a gmail.Args
		if err := json.Unmarshal(args, &a); err != nil {
			t.Fatal(err)
		}
		p, err := tl.Preview(args)
		if err != nil {
			t.Fatal(err)
		}
		previewtest.Check(t, p, "To", "Cc", "Bcc", "Subject", "Message", "The same as HTML (source)",
			"Links in the HTML lead to",
			"Fetched from outside when the mail is opened", "Answers")
		previewtest.Lists(t, p, "To", a.To)
		previewtest.Lists(t, p, "Cc", a.Cc)
		previewtest.Lists(t, p, "Bcc", a.Bcc)
		previewtest.Shows(t, p, "Subject", a.Subject)
		previewtest.Shows(t, p, "Message", a.Body)
		if a.HTMLBody != "" {
			previewtest.Shows(t, p, "The same as HTML (source)", a.HTMLBody)
		}
		all, err := tl.Targets(args)
		if err != nil || !slices.Equal(all, tool.Addresses(slices.Concat(a.To, a.Cc, a.Bcc))) {
			t.Fatalf("the policy judges %q, %v; the mail goes to %+v", all, err, a)
		}
		previewtest.Clean(t, "the summary", tl.Summary(args), false)
	})
}
