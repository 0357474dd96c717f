package gmail_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

func newTool() *tool.Tool { return gmail.New(nil, gmail.Options{}) }

// with returns the arguments of an ordinary mail, with changes; nil removes a field.
func with(change map[string]any) json.RawMessage {
	args := map[string]any{"to": []string{"a@example.com"}, "subject": "s", "body": "b"}
	for k, v := range change {
		if v == nil {
			delete(args, k)
			continue
		}
		args[k] = v
	}
	b, _ := json.Marshal(args)
	return b
}

func many(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("p%d@example.com", i))
	}
	return out
}

func TestWhatIsNoMailIsRefusedAndTheFieldNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		field  string
	}{
		"line break in an address":   {map[string]any{"to": []string{"a@example.com\r\nBcc: evil@x.com"}}, "to/0"},
		"two addresses in one":       {map[string]any{"cc": []string{"a@example.com", "b@x.com, c@x.com"}}, "cc/1"},
		"a display name":             {map[string]any{"bcc": []string{"Boss <evil@x.com>"}}, "bcc/0"},
		"a string for the list":      {map[string]any{"to": "a@example.com"}, "to"},
		"nobody":                     {map[string]any{"to": []string{}}, "to"},
		"21 in one list":             {map[string]any{"to": many(21)}, "to"},
		"21 in all":                  {map[string]any{"to": many(10), "cc": many(10), "bcc": many(1)}, "to"},
		"line break in the subject":  {map[string]any{"subject": "hi\r\nBcc: evil@x.com"}, "subject"},
		"line feed in the subject":   {map[string]any{"subject": "hi\nX: y"}, "subject"},
		"a subject of 999 octets":    {map[string]any{"subject": strings.Repeat("s", 999)}, "subject"},
		"a subject of 999 in UTF-8":  {map[string]any{"subject": strings.Repeat("ü", 500)}, "subject"},
		"control characters":         {map[string]any{"body": "\x00\x01\x1b[2J"}, "body"},
		"control characters in HTML": {map[string]any{"htmlBody": "<p>\x1b"}, "htmlBody"},
		"an empty body":              {map[string]any{"body": ""}, "body"},
		"a blank body":               {map[string]any{"body": " \r\n\t"}, "body"},
		"no body":                    {map[string]any{"body": nil}, "body"},
		"a body that is too long":    {map[string]any{"body": strings.Repeat("b", 200<<10+1)}, "body"},
		"the same in UTF-8":          {map[string]any{"body": strings.Repeat("ü", 100<<10+1)}, "body"},
		"HTML that is too long":      {map[string]any{"htmlBody": strings.Repeat("b", 200<<10+1)}, "htmlBody"},
		"a sender":                   {map[string]any{"from": "ceo@corp.com"}, "from"},
		"free headers":               {map[string]any{"headers": map[string]string{"Bcc": "evil@x.com"}}, "headers"},
		"a mailbox":                  {map[string]any{"userId": "userB@example.com"}, "userId"},
		"attachments": {map[string]any{"attachments": []any{map[string]string{"path": "/etc/passwd"}}},
			"attachments"},
		"line break in In-Reply-To": {map[string]any{"threadId": "18c0ffee", "inReplyTo": "<x@y>\r\nBcc: e@x.com"},
			"inReplyTo"},
		"an In-Reply-To without <>":   {map[string]any{"inReplyTo": "x@y"}, "inReplyTo"},
		"a thread id that is none":    {map[string]any{"threadId": "../18c0"}, "threadId"},
		"an address in another field": {map[string]any{"To": []string{"evil@x.com"}}, "To"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := newTool().Normalize(with(c.change))
			var e *fault.Error
			if !errors.As(err, &e) || e.Class != fault.Validation || e.Field != c.field {
				t.Errorf("Normalize = %.100s, %v; want a ValidationError at %q", a, err, c.field)
			}
			if err != nil && (strings.Contains(err.Error(), "evil") || strings.Contains(err.Error(), "ceo@")) {
				t.Errorf("the value is repeated: %v", err)
			}
		})
	}
}

func TestEachPersonIsReachedOnce(t *testing.T) {
	tl := newTool()
	args, err := tl.Normalize(with(map[string]any{
		"to": []string{"a@example.com", "a@EXAMPLE.com"}, "cc": []string{"A@example.com", "a@example.com"},
		"bcc": []string{"c@example.com", "a@Example.com"}, "body": "x\r\ny\rz",
	}))
	if want := `{"bcc":["c@example.com"],"body":"x\ny\nz","cc":["A@example.com"],"subject":"s","to":["a@example.com"]}`; err != nil || string(args) != want {
		t.Fatalf("Normalize = %s, %v; want %s", args, err, want)
	}
	if again, err := tl.Normalize(args); err != nil || string(again) != string(args) {
		t.Errorf("once more = %s, %v", again, err)
	}
	r, err := tl.Targets(args)
	if err != nil || !slices.Equal(r, tool.Addresses([]string{"a@example.com", "A@example.com", "c@example.com"})) {
		t.Errorf("Targets = %v, %v", r, err)
	}
}

// shown returns a preview as one string.
func shown(t *testing.T, change map[string]any) string {
	t.Helper()
	tl := newTool()
	args, err := tl.Normalize(with(change))
	if err != nil {
		t.Fatal(err)
	}
	p, err := tl.Preview(args)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{p.Title}
	for _, f := range p.Fields {
		lines = append(lines, f.Label+": "+f.Value)
	}
	for _, w := range p.Warnings {
		lines = append(lines, "! "+w)
	}
	return strings.Join(lines, "\n")
}

func TestThePreviewShowsAllThatWouldBeSent(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		want   []string
	}{
		"everybody": {map[string]any{"to": []string{"a@example.com", "b@example.com"}, "cc": []string{"c@example.com"},
			"bcc": []string{"d@example.com"}},
			[]string{"4 people", "To: a@example.com\nb@example.com", "Cc: c@example.com", "Bcc: d@example.com"}},
		"the whole body": {map[string]any{"body": strings.Repeat("\n", 200) + "hidden tail: wire 10000 EUR\n"},
			[]string{"Message: \n\n"}},
		"a long blank stretch": {map[string]any{"body": "ok" + strings.Repeat("\n", 200) + "hidden tail"},
			[]string{"hidden tail", "! Message: There is a long blank stretch"}},
		"markdown, inert": {map[string]any{"body": "**[Approve](https://evil.example/a)**"},
			[]string{"Message: **[Approve](https://evil.example/a)**"}},
		"HTML in the text": {map[string]any{"body": "<details><summary>safe</summary>x</details>"},
			[]string{"<details><summary>safe</summary>x</details>"}},
		"bidi in the subject": {map[string]any{"subject": "Transfer approved by \u202ekcehc\u202c"},
			[]string{"Subject: Transfer approved by ⟨U+202E⟩kcehc⟨U+202C⟩",
				"! Subject: there are characters that cannot be seen"}},
		"braille blanks": {map[string]any{"subject": "Pay\u2800now"}, []string{"Pay⟨U+2800⟩now", "! Subject:"}},
		"private use":    {map[string]any{"subject": "\ue000private"}, []string{"⟨U+E000⟩private", "! Subject:"}},
		"mixed scripts": {map[string]any{"body": "log in to p\u0430ypal"},
			[]string{"! Message: The word “pаypal” mixes Latin and Cyrillic letters."}},
		"punycode": {map[string]any{"to": []string{"user@xn--exmple-4nf.com"}},
			[]string{"To: user@xn--exmple-4nf.com (shown as user@", "! To: the domain of user@xn--exmple-4nf.com"}},
		"no subject": {map[string]any{"subject": ""}, []string{"! There is no subject."}},
		"HTML": {map[string]any{
			"htmlBody": `<p>Hi</p><a href="https://a.example/x">x</a><img src=http://evil.example/p.gif?u=secret>`},
			[]string{`source): <p>Hi</p><a href="https://a.example/x">x</a><img src=http://evil.example/p.gif?u=secret>`, "lead to: https://a.example/x", "opened: http://evil.example/p.gif?u=secret", "! The HTML fetches", "! There is an HTML version too"}},
		"an answer": {map[string]any{"threadId": "18c0ffee", "inReplyTo": "<x@y.example>"},
			[]string{"Answers: 18c0ffee <x@y.example>"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, c.change)
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("the preview lacks %q:\n%.600s", w, got)
				}
			}
		})
	}
	if got := shown(t, nil); strings.Contains(got, "!") {
		t.Errorf("an ordinary mail is warned of:\n%s", got)
	}
}

func TestTheSummaryHoldsNoBody(t *testing.T) {
	tl := newTool()
	args, _ := tl.Normalize(
		with(map[string]any{"subject": "Hi\u202e", "body": "SECRET", "bcc": []string{"b@example.com"}}))
	if s := tl.Summary(args); s != "Sent “Hi⟨U+202E⟩” to a@example.com, b@example.com." {
		t.Errorf("Summary = %q", s)
	}
}

func TestTheScopeFollowsTheMode(t *testing.T) {
	for mode, want := range map[gmail.Mode]string{"": compose, gmail.Draft: compose, gmail.Direct: send} {
		if got := gmail.New(nil, gmail.Options{Mode: mode}).Scopes; len(got) != 1 || got[0] != want {
			t.Errorf("mode %q: scopes %v; want %s", mode, got, want)
		}
	}
}

func TestBoundIsWhomAMailReaches(t *testing.T) {
	tl := newTool()
	bound := func(change map[string]any) string {
		args, err := tl.Normalize(with(change))
		if err != nil {
			t.Fatal(err)
		}
		b, err := tl.Bound(args)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	mail := bound(nil)
	for _, words := range []map[string]any{{"subject": "another"}, {"body": "another"},
		{"htmlBody": "<p>another</p>"}} {
		if got := bound(words); got != mail {
			t.Errorf("with %v it is %s, and without %s", words, got, mail)
		}
	}
	for _, other := range []map[string]any{{"to": []string{"b@example.com"}}, {"cc": []string{"b@example.com"}},
		{"bcc": []string{"b@example.com"}}, {"threadId": "18c0ffee"}} {
		if got := bound(other); got == mail {
			t.Errorf("%v is not part of %s", other, got)
		}
	}
}
