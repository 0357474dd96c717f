package gmail_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

func newTool() *tool.Tool { return gmail.New(nil, gmail.Options{}) }

// suite is the tool with an ordinary mail.
var suite = toolstest.Suite{
	Tool: newTool(),
	Args: map[string]any{"to": []string{"a@example.com"}, "subject": "s", "body": "b"},
	Other: map[string]map[string]any{
		"to": {"to": []string{"b@example.com"}}, "cc": {"cc": []string{"b@example.com"}},
		"bcc": {"bcc": []string{"b@example.com"}}, "subject": {"subject": "another"}, "body": {"body": "another"},
		"htmlBody": {"htmlBody": "<p>another</p>"}, "threadId": {"threadId": "18c0ffee"},
		"inReplyTo": {"inReplyTo": "<x@y.example>"}, "signature": {"signature": "Ana"},
	},
	Free: []string{"subject", "body", "htmlBody", "signature"},
	Labels: []string{"To", "Cc", "Bcc", "Subject", "Message", "The same as HTML (source)",
		"Links in the HTML lead to", "Fetched from outside when the mail is opened", "Answers",
		"Signature, from your preferences"},
	Texts: map[string]string{"subject": "Subject", "body": "Message", "htmlBody": "The same as HTML (source)",
		"signature": "Signature, from your preferences"},
	Addresses: []toolstest.Addresses{{Argument: "to", Label: "To"}, {Argument: "cc", Label: "Cc"},
		{Argument: "bcc", Label: "Bcc"}},
	Previews: previews,
	Refused:  refused,
	Unsaid:   []string{"evil", "ceo@"},
}

func TestSuite(t *testing.T) { suite.Run(t) }

// with returns the arguments of an ordinary mail, with changes; nil removes a field.
func with(change map[string]any) json.RawMessage { return suite.With(change) }

func many(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("p%d@example.com", i))
	}
	return out
}

// refused lists arguments that are not an e-mail.
var refused = map[string]toolstest.Refused{
	"line break in an address": {Change: map[string]any{"to": []string{"a@example.com\r\nBcc: evil@x.com"}},
		Field: "to/0"},
	"two addresses in one": {Change: map[string]any{"cc": []string{"a@example.com", "b@x.com, c@x.com"}},
		Field: "cc/1"},
	"a display name":        {Change: map[string]any{"bcc": []string{"Boss <evil@x.com>"}}, Field: "bcc/0"},
	"a string for the list": {Change: map[string]any{"to": "a@example.com"}, Field: "to"},
	"no recipient":          {Change: map[string]any{"to": []string{}}, Field: "to"},
	"21 in one list":        {Change: map[string]any{"to": many(21)}, Field: "to"},
	"21 in all": {Change: map[string]any{"to": many(10), "cc": many(10), "bcc": many(1)},
		Field: "to"},
	"line break in the subject":  {Change: map[string]any{"subject": "hi\r\nBcc: evil@x.com"}, Field: "subject"},
	"line feed in the subject":   {Change: map[string]any{"subject": "hi\nX: y"}, Field: "subject"},
	"a subject of 999 octets":    {Change: map[string]any{"subject": strings.Repeat("s", 999)}, Field: "subject"},
	"a subject of 999 in UTF-8":  {Change: map[string]any{"subject": strings.Repeat("ü", 500)}, Field: "subject"},
	"control characters":         {Change: map[string]any{"body": "\x00\x01\x1b[2J"}, Field: "body"},
	"control characters in HTML": {Change: map[string]any{"htmlBody": "<p>\x1b"}, Field: "htmlBody"},
	"an empty body":              {Change: map[string]any{"body": ""}, Field: "body"},
	"a blank body":               {Change: map[string]any{"body": " \r\n\t"}, Field: "body"},
	"no body":                    {Change: map[string]any{"body": nil}, Field: "body"},
	"a body that is too long":    {Change: map[string]any{"body": strings.Repeat("b", 200<<10+1)}, Field: "body"},
	"the same in UTF-8":          {Change: map[string]any{"body": strings.Repeat("ü", 100<<10+1)}, Field: "body"},
	"HTML that is too long": {Change: map[string]any{"htmlBody": strings.Repeat("b", 200<<10+1)},
		Field: "htmlBody"},
	"a sender": {Change: map[string]any{"from": "ceo@corp.com"}, Field: "from"},
	"free headers": {Change: map[string]any{"headers": map[string]string{"Bcc": "evil@x.com"}},
		Field: "headers"},
	"a mailbox": {Change: map[string]any{"userId": "userB@example.com"}, Field: "userId"},
	"attachments": {
		Change: map[string]any{"attachments": []any{map[string]string{"file": "a.pdf"}}}, Field: "attachments"},
	"a path": {
		Change: map[string]any{"attachments": []any{map[string]string{"path": "/etc/passwd"}}},
		Field:  "attachments/0/path"},
	"line break in In-Reply-To": {Change: map[string]any{"threadId": "18c0ffee",
		"inReplyTo": "<x@y>\r\nBcc: e@x.com"}, Field: "inReplyTo"},
	"an In-Reply-To with a space": {Change: map[string]any{"inReplyTo": "<x y@z>"}, Field: "inReplyTo"},
	"an In-Reply-To of 251 octets": {Change: map[string]any{"inReplyTo": "<" + strings.Repeat("x", 247) + "@y>"},
		Field: "inReplyTo"},
	"two In-Reply-To":             {Change: map[string]any{"inReplyTo": "<x@y><x@y>"}, Field: "inReplyTo"},
	"an In-Reply-To without <>":   {Change: map[string]any{"inReplyTo": "x@y"}, Field: "inReplyTo"},
	"a thread id that is none":    {Change: map[string]any{"threadId": "../18c0"}, Field: "threadId"},
	"an address in another field": {Change: map[string]any{"To": []string{"evil@x.com"}}, Field: "To"},
}

// TestMessageIDsInUse accepts the Message-IDs that mail programs write, beyond those that the standard allows.
func TestMessageIDsInUse(t *testing.T) {
	for _, id := range []string{
		"<CAF+x=_1@mail.gmail.com>", "<1@host_name.example.com>", "<a@[192.0.2.1]>", "<a@[IPv6:2001:db8::1]>",
		"<" + strings.Repeat("a", 130) + "@example.com>", "<" + strings.Repeat("x", 246) + "@y>", "<a%b@c>",
		"<DB7PR01MB1234(x)@EURPRD01.PROD.OUTLOOK.COM>", "<0102018f-a:b/c,d@eu-west-1.amazonses.com>",
		"<notifications/1234@github.com>", "<1.user@host@list.example.org>", "<\"quoted\"@example.org>",
	} {
		if _, err := newTool().Normalize(with(map[string]any{"inReplyTo": id})); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestNormalizeRecipients(t *testing.T) {
	args, _ := suite.Holds(t, with(map[string]any{
		"to": []string{"a@example.com", "a@EXAMPLE.com"}, "cc": []string{"A@example.com", "a@example.com"},
		"bcc": []string{"c@example.com", "a@Example.com"}, "body": "x\r\ny\rz",
	}))
	if want := `{"bcc":["c@example.com"],"body":"x\ny\nz","cc":["A@example.com"],"subject":"s","to":["a@example.com"]}`; string(args) != want {
		t.Errorf("Normalize = %s; want %s", args, want)
	}
}

// previews are what a person reads before approving an e-mail.
var previews = map[string]toolstest.Shown{
	"everybody": {Change: map[string]any{"to": []string{"a@example.com", "b@example.com"},
		"cc": []string{"c@example.com"}, "bcc": []string{"d@example.com"}},
		Want: []string{"4 people", "To: a@example.com\nb@example.com", "Cc: c@example.com", "Bcc: d@example.com"}},
	"the whole body": {Change: map[string]any{"body": strings.Repeat("\n", 200) + "hidden tail: wire 10000 EUR\n"},
		Want: []string{"Message: \n\n"}},
	"a long blank stretch": {Change: map[string]any{"body": "ok" + strings.Repeat("\n", 200) + "hidden tail"},
		Want: []string{"hidden tail", "! Message: There is a long blank stretch"}},
	"markdown, inert": {Change: map[string]any{"body": "**[Approve](https://evil.example/a)**"},
		Want: []string{"Message: **[Approve](https://evil.example/a)**"}},
	"HTML in the text": {Change: map[string]any{"body": "<details><summary>safe</summary>x</details>"},
		Want: []string{"<details><summary>safe</summary>x</details>"}},
	"bidi in the subject": {Change: map[string]any{"subject": "Transfer approved by \u202ekcehc\u202c"},
		Want: []string{"Subject: Transfer approved by ⟨U+202E⟩kcehc⟨U+202C⟩",
			"! Subject: there are characters that cannot be seen"}},
	"braille blanks": {Change: map[string]any{"subject": "Pay\u2800now"},
		Want: []string{"Pay⟨U+2800⟩now", "! Subject:"}},
	"private use": {Change: map[string]any{"subject": "\ue000private"},
		Want: []string{"⟨U+E000⟩private", "! Subject:"}},
	"mixed scripts": {Change: map[string]any{"body": "log in to p\u0430ypal"},
		Want: []string{"! Message: The word “pаypal” mixes Latin and Cyrillic letters."}},
	"punycode": {Change: map[string]any{"to": []string{"user@xn--exmple-4nf.com"}},
		Want: []string{"To: user@xn--exmple-4nf.com (shown as user@", "! To: the domain of user@xn--exmple-4nf.com"}},
	"no subject": {Change: map[string]any{"subject": ""}, Want: []string{"! There is no subject."}},
	"HTML": {Change: map[string]any{
		"htmlBody": `<p>Hi</p><a href="https://a.example/x">x</a><img src=http://evil.example/p.gif?u=secret>`},
		Want: []string{`source): <p>Hi</p><a href="https://a.example/x">x</a><img src=http://evil.example/p.gif?u=secret>`, "lead to: https://a.example/x", "opened: http://evil.example/p.gif?u=secret", "! The HTML fetches", "! There is an HTML version too"}},
	"an answer": {Change: map[string]any{"threadId": "18c0ffee", "inReplyTo": "<x@y.example>"},
		Want: []string{"Answers: 18c0ffee <x@y.example>"}},
}

func TestSummaryWithoutBody(t *testing.T) {
	tl := newTool()
	args, _ := tl.Normalize(
		with(map[string]any{"subject": "Hi\u202e", "body": "SECRET", "bcc": []string{"b@example.com"}}))
	if s := tl.Summary(args); s != "Sent “Hi⟨U+202E⟩” to a@example.com, b@example.com." {
		t.Errorf("Summary = %q", s)
	}
}

func TestScopeOfMode(t *testing.T) {
	for mode, want := range map[gmail.Mode]string{"": compose, gmail.Draft: compose, gmail.Direct: send} {
		if got := gmail.New(nil, gmail.Options{Mode: mode}).Scopes; len(got) != 1 || got[0] != want {
			t.Errorf("mode %q: scopes %v; want %s", mode, got, want)
		}
	}
}
