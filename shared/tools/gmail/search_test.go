package gmail_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/gmail"
)

const (
	listMails = "gmail.messages.list"
	getMail   = "gmail.messages.get"
	mayRead   = "https://www.googleapis.com/auth/gmail.readonly"
)

// finding is the tool that searches, with an ordinary query.
var finding = toolstest.Suite{
	Tool:   gmail.NewSearch(nil, gmail.Options{}),
	Args:   map[string]any{"query": "from:ana invoice"},
	Other:  map[string]map[string]any{"query": {"query": "lunch"}, "limit": {"limit": 5}},
	Fixed:  map[string]any{"limit": gmail.MaxFound},
	Labels: []string{"Words", "At most"},
	Texts:  map[string]string{"query": "Words"},
	Previews: map[string]toolstest.Shown{
		"a search": {Want: []string{"Search your mail", "Words: from:ana invoice", "At most: 20 e-mails"}},
		"spaces":   {Change: map[string]any{"query": " a \n b "}, Want: []string{"Words: a b"}},
	},
	Refused: map[string]toolstest.Refused{
		"no words":   {Change: map[string]any{"query": " \u200b"}, Field: "query"},
		"long words": {Change: map[string]any{"query": strings.Repeat("é", 251)}, Field: "query"},
		"no mails":   {Change: map[string]any{"limit": 0}, Field: "limit"},
		"21 mails":   {Change: map[string]any{"limit": 21}, Field: "limit"},
	},
}

func TestSearchSuite(t *testing.T) {
	finding.Run(t)
	if s := finding.Tool.Spec; s.SideEffect || s.Approval != tool.NotRequired || !s.Untrusted ||
		strings.Join(s.Scopes, " ") != mayRead {
		t.Errorf("%+v", s)
	}
	if got := finding.Tool.Reading([]byte(`{}`), []byte(`{}`)); got != (tool.Reading{Origin: "your mail"}) ||
		!finding.Tool.Placed() {
		t.Errorf("what it reads is %+v", got)
	}
}

// inbox is a local Gmail with the tool.
type inbox struct {
	*toolstest.Google
	tool *tool.Tool
}

func openInbox(t *testing.T, scopes ...string) inbox {
	t.Helper()
	g := toolstest.OpenGoogle(t, scopes...)
	options := gmail.Options{Endpoint: g.URL + "/", Timeout: await.Most}
	return inbox{g, gmail.NewSearch(fakegoogle.Accounts{}, options)}
}

func (i inbox) receive(t *testing.T, from, subject, body string) {
	t.Helper()
	if err := i.Receive("me@example.com", []byte("From: "+from+"\r\nTo: me@example.com\r\nSubject: "+subject+
		"\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n"+body)); err != nil {
		t.Fatal(err)
	}
}

func (i inbox) search(t *testing.T, change map[string]any) (gmail.Found, error) {
	t.Helper()
	return toolstest.Result[gmail.Found](t.Context(), t, i.tool, finding.With(change))
}

func TestSearchNewestFirst(t *testing.T) {
	i := openInbox(t, mayRead)
	i.receive(t, "ana@example.com", "Lunch", "At noon?")
	i.receive(t, "=?utf-8?Q?Ana_Garc=C3=ADa?= <ana@example.com>", "=?utf-8?Q?Invoice_f=C3=BCr_dich?=",
		"Please pay <now> & \"well\".\r\n\r\nYours")
	i.receive(t, `"Ana" <ana@example.com>, Bob <bob@example.com>`, "=?x-none?Q?an invoice?=", "invoice")
	i.receive(t, "bob@example.com", "invoice", "")
	out, err := i.search(t, nil)
	if err != nil || len(out.Mails) != 2 || out.More {
		t.Fatalf("%+v, %v", out, err)
	}
	m := out.Mails[1]
	if m.From != "Ana García <ana@example.com>" || m.Subject != "Invoice für dich" ||
		m.Snippet != `Please pay <now> & "well". Yours` || m.ID == "" || m.ThreadID != m.ID ||
		!strings.HasSuffix(m.Date, "Z") {
		t.Errorf("%+v", m)
	}
	if m := out.Mails[0]; m.From != `"Ana" <ana@example.com>, Bob <bob@example.com>` ||
		m.Subject != "=?x-none?Q?an invoice?=" {
		t.Errorf("what cannot be decoded is %+v", m)
	}
	if out, err := i.search(t, map[string]any{"limit": 1}); err != nil || len(out.Mails) != 1 || !out.More ||
		out.Mails[0].ID == m.ID {
		t.Errorf("one of two: %+v, %v", out, err)
	}
	if out, err := i.search(t, map[string]any{"query": "dinner"}); err != nil || out.Mails == nil ||
		len(out.Mails) != 0 {
		t.Errorf("none: %+v, %v", out, err)
	}
}

// TestSearchForeignMails has e-mails that hide what they say, or whom they are from, or are long.
func TestSearchForeignMails(t *testing.T) {
	i := openInbox(t, mayRead)
	for n := range 30 {
		i.receive(t, `"`+strings.Repeat("boss@example.com ", 600)+fmt.Sprint(n)+`" <eve@evil.example>`,
			"a\u202eb\u200b "+strings.Repeat("long ", 2<<10), "c\u202ed\x1b[31m"+strings.Repeat("e", 10<<10))
	}
	out, err := i.search(t, map[string]any{"query": "from:eve"})
	b, _ := json.Marshal(out) // it came as JSON
	if err != nil || len(out.Mails) != gmail.MaxFound || !out.More || len(b) > 24<<10 {
		t.Fatalf("%d e-mails of %d bytes, %v", len(out.Mails), len(b), err)
	}
	for _, m := range out.Mails {
		if !strings.HasSuffix(m.From, "[…] <eve@evil.example>") || len(m.From) > 300 || len(m.Subject) > 200 ||
			!strings.HasPrefix(m.Subject, "a⟨U+202E⟩b⟨U+200B⟩ long") || len(m.Snippet) > 300 ||
			!strings.HasPrefix(m.Snippet, "c⟨U+202E⟩d⟨U+001B⟩[31me") {
			t.Fatalf("%+v", m)
		}
	}
}

// TestSearchFails has Gmail fail when it is asked which e-mails there are, and for one of them.
func TestSearchFails(t *testing.T) {
	for name, c := range map[string]struct {
		fault fakegoogle.Fault
		class fault.Class
		code  fault.Code
		again bool // whether it may be tried again
	}{
		"500":               {toolstest.Status(500, ""), fault.Tool, "provider_failed", true},
		"403 for the rate":  {toolstest.Status(403, "userRateLimitExceeded"), fault.Tool, "provider_limited", true},
		"429":               {toolstest.Status(429, "rateLimitExceeded"), fault.Tool, "provider_limited", true},
		"403":               {toolstest.Status(403, "forbidden"), fault.Tool, "provider_refused", false},
		"403 for the scope": {toolstest.Status(403, "insufficientPermissions"), fault.Auth, fault.CodeScope, false},
		"401":               {toolstest.Status(401, "authError"), fault.Auth, fault.CodeReauth, false},
		"reset":             {toolstest.Kind(fakegoogle.ResetAfter), fault.Tool, "provider_failed", true},
		"hangs":             {toolstest.Kind(fakegoogle.HangBefore), fault.Tool, "provider_failed", true},
		"answer cut":        {toolstest.Kind(fakegoogle.CutAfter), fault.Tool, "provider_failed", true},
		"numbers":           {toolstest.Kind(fakegoogle.NumberAfter), fault.Tool, "provider_failed", true},
	} {
		for _, op := range []string{listMails, getMail} {
			// An answer of numbers has no field of a list, and net/http reads again over a connection that was in use.
			if op == listMails && name == "numbers" || op == getMail && name == "reset" {
				continue
			}
			t.Run(op+" "+name, func(t *testing.T) {
				i := openInbox(t, mayRead)
				for range 3 {
					i.receive(t, "ana@example.com", "invoice", "")
				}
				ctx := toolstest.NewExpiring(t.Context())
				c.fault.Text, c.fault.Hung = "Bearer ya29.SECRET", ctx.Expire
				i.Break(op, c.fault)
				out, err := toolstest.Result[gmail.Found](ctx, t, i.tool, finding.With(nil))
				if !fault.Is(err, c.class, c.code) || tool.IsTransient(err) != c.again || tool.IsAmbiguous(err) ||
					strings.Contains(err.Error(), "SECRET") {
					t.Errorf("%+v, %v", out, err)
				}
				if out, err := i.search(t, nil); err != nil || len(out.Mails) != 3 {
					t.Errorf("afterwards: %+v, %v", out, err)
				}
			})
		}
	}
	i := openInbox(t, mayRead)
	i.receive(t, "ana@example.com", "invoice", "")
	i.Break(getMail, toolstest.Kind(fakegoogle.OddAfter))
	if out, err := i.search(t, nil); !fault.Is(err, fault.Tool, "provider_failed") || !tool.IsTransient(err) {
		t.Errorf("another mail: %+v, %v", out, err)
	}
	i.Break(getMail, toolstest.Status(404, "notFound"))
	if out, err := i.search(t, nil); err != nil || len(out.Mails) != 0 {
		t.Errorf("a mail that is gone: %+v, %v", out, err)
	}
	i = openInbox(t, "https://www.googleapis.com/auth/gmail.compose")
	if out, err := i.search(t, nil); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("without the scope: %+v, %v", out, err)
	}
}

// TestSearchOwnMail has an e-mail that gmail_send made come back: its addresses are not read.
func TestSearchOwnMail(t *testing.T) {
	i := openInbox(t, mayRead)
	i.receive(t, "ana@example.com", "invoice", "https://ana.example/1")
	i.receive(t, "me@example.com\r\nX-Countersign-Action: act_1", "invoice", "https://own.example/2")
	out, err := i.search(t, map[string]any{"query": "invoice"})
	if err != nil || len(out.Mails) != 2 || !out.Mails[0].Ours || out.Mails[1].Ours {
		t.Fatalf("%+v, %v", out, err)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	found := i.tool.Reading([]byte(`{}`), raw).Found
	if !i.tool.Echoes || !strings.Contains(found, "https://ana.example/1") || strings.Contains(found, "own.example") {
		t.Errorf("read: %s", found)
	}
}
