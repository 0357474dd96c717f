package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

// TestReplyToTricks has strangers hide where a reply goes. Either the card names that address and warns, or the e-mail
// cannot be answered. The e-mail goes to the address on the card, and to no other.
func TestReplyToTricks(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		to     string // where the reply goes; empty: it is refused
	}{
		"a name like the sender": {`Reply-To: "ben@example.com" <eve@evil.example>`, "eve@evil.example"},
		"a comment":              {"Reply-To: eve@evil.example (ben@example.com)", "eve@evil.example"},
		"an encoded name":        {"Reply-To: =?utf-8?B?YmVuQGV4YW1wbGUuY29t?= <eve@evil.example>", "eve@evil.example"},
		"folded":                 {"Reply-To:\r\n <eve@evil.example>", "eve@evil.example"},
		"behind spaces": {"Reply-To: ben@example.com,\r\n" + strings.Repeat(" ", 300) + "eve@evil.example",
			"ben@example.com, eve@evil.example"},
		"an overridden direction":   {"Reply-To: \"\u202eneb\" <eve@evil.example>", "eve@evil.example"},
		"other capitals":            {"Reply-To: Ben@Example.com", "Ben@example.com"},
		"letters that look alike":   {"Reply-To: ben@ex\u0430mple.com", ""},
		"a domain that looks alike": {"Reply-To: ben@xn--exmple-4nf.com", "ben@xn--exmple-4nf.com"},
		"an address in a name":      {"Reply-To: ben@example.com <eve@evil.example>", ""},
		"an encoded address":        {"Reply-To: =?utf-8?B?ZXZlQGV2aWwuZXhhbXBsZQ==?=", ""},
		"an address of no mailbox":  {"Reply-To: undisclosed-recipients:;", "ben@example.com"},
		"a second header":           {"Reply-To: ben@example.com\r\nReply-To: eve@evil.example", "ben@example.com"},
		"a header in the subject": {"X: y\r\nSubject: =?utf-8?Q?Hi=0D=0AReply-To:_eve@evil.example?=",
			"ben@example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := answering(t, c.header+"\r\n"+asked)
			r, card := w.proposes(map[string]any{"body": "Fine.", "replyTo": map[string]any{"messageId": id}})
			if c.to == "" {
				if len(r.Approvals) != 0 || r.Actions[0].ErrorReason != "unanswerable" {
					t.Errorf("%s; want len(r.Approvals) 0, r.Actions[0].ErrorReason “unanswerable”", r.Body)
				}
				return
			}
			holds(t, "the card", card, `{"label":"To","value":"`+strings.ReplaceAll(c.to, ", ", `\n`))
			if strings.Contains(c.to, "xn--") {
				holds(t, "the card", card, "may only look like one that you know")
			}
			if c.to != "ben@example.com" {
				holds(t, "the card", card, "The reply does not go to the sender: Reply-To says "+c.to)
			}
			w.sends(r)
			sent := w.Google.Messages()[0]
			if got := slices.Concat(sent.To, sent.Cc, sent.Bcc); strings.Join(got, ", ") != c.to {
				t.Errorf("the reply goes to %q", got)
			}
		})
	}
}

// TestReplyToChangedMail changes the answered e-mail between the card and the intent.
func TestReplyToChangedMail(t *testing.T) {
	for name, raw := range map[string]string{
		"a Reply-To":       "Reply-To: eve@evil.example\r\n" + asked,
		"another sender":   strings.Replace(asked, "ben@", "eve@", 1),
		"other references": strings.Replace(asked, "<1@example.com>", "<9@example.com>", 1),
		"another ID":       strings.Replace(asked, "<2@example.com>", "<9@example.com>", 1),
	} {
		for _, tool := range []string{gmail.Name, gmail.LeaveDraft} {
			t.Run(name+"/"+tool, func(t *testing.T) {
				w, id := answering(t, asked, "AGENTS="+daysAgent(t, tool))
				w.SetModel(testkit.Wants(tool, map[string]any{"body": "Fine.",
					"replyTo": map[string]any{"messageId": id}}))
				r := w.askOf("days")
				w.Google.Replace(testkit.Address("ana"), id, []byte(raw))
				r = w.approve(r)
				if len(w.Google.Messages())+len(w.Google.Drafts(testkit.Address("ana"))) != 0 ||
					!strings.Contains(string(r.Body), "is not as the approval showed it") {
					t.Errorf("%s", r.Body)
				}
			})
		}
	}
}
