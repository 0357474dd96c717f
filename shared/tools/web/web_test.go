package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fields"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// fetched is a fetcher of one page.
type fetched struct {
	page  web.Page
	err   error
	asked string
}

func (f *fetched) Fetch(_ context.Context, url string) (web.Page, error) {
	f.asked = url
	return f.page, f.err
}

// answering is a model with one answer.
type answering struct {
	reply *model.Reply
	err   error
	asked model.Request
}

func (a *answering) Name() string { return "a" }

func (a *answering) Generate(_ context.Context, r model.Request, _ func(string)) (*model.Reply, error) {
	a.asked = r
	return a.reply, a.err
}

// carry normalizes the arguments and carries the call out.
func carry(t *testing.T, tl *tool.Tool, args string) (json.RawMessage, error) {
	t.Helper()
	normal, err := tl.Normalize(json.RawMessage(args))
	if err != nil {
		return nil, err
	}
	return tl.Execute(t.Context(), tool.Call{UID: "ana", Args: normal})
}

func TestFetch(t *testing.T) {
	f := &fetched{page: web.Page{URL: "https://a.example/b", Title: " A\n\u202epage ", Text: "in\u200bvisible\r\ntwo"}}
	tl := web.New(f, nil)[web.Fetch]
	got, err := carry(t, tl, `{"url":"HTTPS://A.Example:443#x"}`)
	want := `{"url":"https://a.example/b","title":"A ⟨U+202E⟩page","text":"in⟨U+200B⟩visible\ntwo","truncated":false}`
	if err != nil || string(got) != want || f.asked != "https://a.example/" {
		t.Errorf("%s, %v; %s was asked for", got, err, f.asked)
	}
	if tl.SideEffect || tl.Approval != tool.NotRequired || !tl.Untrusted {
		t.Errorf("%+v", tl.Spec)
	}
	f.page.Text = strings.Repeat("ä\"", 1<<20)
	var p web.Page
	if got, err = carry(t, tl, `{"url":"https://a.example/"}`); err != nil || json.Unmarshal(got, &p) != nil ||
		!p.Truncated || len(got) > model.MaxResponse || len(p.Text) < web.MaxText/2 {
		t.Errorf("%d bytes, %t, %v", len(got), p.Truncated, err)
	}
	f.err = fault.New(fault.Policy, "address_denied", "No.")
	if _, err = carry(t, tl, `{"url":"https://a.example/"}`); !errors.Is(err, f.err) {
		t.Errorf("%v; want error “%v”", err, f.err)
	}
}

func TestSearch(t *testing.T) {
	a := &answering{reply: &model.Reply{Text: "It is \u200bat ten.", Sources: []model.Source{
		{Title: "A\npage", URL: "https://a.example"}, {Title: "Evil", URL: "javascript:alert(1)"},
		{Title: "Spaced", URL: "https://a.example/a b"}}}}
	tl := web.New(nil, a)[web.Search]
	got, err := carry(t, tl, `{"query":"  when \"is\" it? "}`)
	want := `{"text":"It is ⟨U+200B⟩at ten.","sources":[{"title":"A page","url":"https://a.example/"}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want got %v", got, err, want)
	}
	if ask := string(a.asked.Contents[0]); ask != `{"parts":[{"text":"when \"is\" it?"}],"role":"user"}` ||
		!a.asked.Settings.Search || len(a.asked.Tools) > 0 || a.asked.System == "" {
		t.Errorf("%+v", a.asked)
	}
	for range 50 {
		a.reply.Sources = append(a.reply.Sources, model.Source{Title: strings.Repeat("t", 9999),
			URL: "https://b.example/"})
	}
	a.reply.Text = strings.Repeat("\n", 1<<20)
	if got, err = carry(t, tl, `{"query":"x"}`); err != nil || len(got) > model.MaxResponse {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	a.err = fault.New(fault.Model, model.CodeBlocked, "No.")
	if _, err = carry(t, tl, `{"query":"x"}`); !errors.Is(err, a.err) {
		t.Errorf("%v; want error “%v”", err, a.err)
	}
	if tl.SideEffect || tl.Approval != tool.NotRequired || !tl.Untrusted {
		t.Errorf("%+v", tl.Spec)
	}
}

// TestToolsWithoutClients has the tools of a function that judges and shows calls.
func TestToolsWithoutClients(t *testing.T) {
	for name, args := range map[string]string{web.Fetch: `{"url":"https://a.example/"}`, web.Search: `{"query":"x"}`} {
		if _, err := carry(t, web.New(nil, nil)[name], args); !fault.Is(err, fault.Tool, fault.CodeNotBound) {
			t.Errorf("%s: %v; want error %v %v", name, err, fault.Tool, fault.CodeNotBound)
		}
	}
}

func TestBadArguments(t *testing.T) {
	set := web.New(&fetched{}, nil)
	for _, u := range []string{"", " ", "a.example", "/a", "//a.example/", "http:a.example", "http:///a", "http://",
		"https://:443/", "ftp://a.example/", "file:///etc/passwd", "data:text/html,x", "unix:///var/run/docker.sock",
		"javascript:x", "http://user@a.example/", "http://user:p@a.example/", "http://a.example@127.0.0.1/",
		"http://a.example:0/", "http://a.example:65536/", "http://a.example:x/", "http://a.example\\@127.0.0.1/",
		"http://exa\tmple.com/", "http://a.example/\n", " http://a.example/", "http://a.example/ b",
		"http://a.example/\u200b", "http://a.example/\u202e", "http://-a.example/", "http://a..example/",
		"http://a_b.example/", "http://[::1/", "http://[a]/", "http://%00/", "http://\u00ad/",
		"http://a.example/" + strings.Repeat("x", web.MaxURL)} {
		args, err := json.Marshal(map[string]string{"url": u})
		if err != nil {
			t.Fatal(err)
		}
		_, err = set[web.Fetch].Normalize(args)
		var f *fault.Error
		if !errors.As(err, &f) || f.Class != fault.Validation || f.Field != "url" {
			t.Errorf("%q: %v", u, err)
		}
	}
	for _, q := range []string{``, `""`, `" \u200b "`, `1`, `"` + strings.Repeat("x", web.MaxQuery+1) + `"`} {
		if _, err := set[web.Search].Normalize(json.RawMessage(`{"query":` + q + `}`)); err == nil {
			t.Errorf("%.20s is taken", q)
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"http://Example.COM":           "http://example.com/",
		"https://example.com.:443/a#b": "https://example.com/a",
		"http://example.com:8080/?a=b": "http://example.com:8080/?a=b",
		"http://bücher.example/ä":      "http://xn--bcher-kva.example/%C3%A4",
		"http://①②⑦.⓪.⓪.①/":            "http://127.0.0.1/",
		"http://[2001:DB8:0::1]:80/":   "http://[2001:db8::1]/",
		"http://[fe80::1%25eth0]/":     "http://[fe80::1%25eth0]/",
		"http://example.com/a%2Fb/../": "http://example.com/a%2Fb/../",
	} {
		u, err := web.Address(in)
		if err != nil || u.String() != want {
			t.Errorf("%s is %v (%v), want %s", in, u, err, want)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"http://a.example/", "https://[::1]:8/a?b#c", "http://①.example", "http://a@b/",
		"http:a",
		"http://0x7f.1", "http://[fe80::1%25e]/", "http://a%20b/", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := web.Address(text)
		if err != nil {
			fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: "url"}, text)
			return
		}
		again, err := web.Address(u.String())
		if err != nil || again.String() != u.String() || u.User != nil || u.Fragment != "" || u.Hostname() == "" {
			t.Errorf("%q becomes %q, and that %v (%v)", text, u, again, err)
		}
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.StringN(1, 20, -1).Draw(t, "unit")
		text := strings.Repeat(unit, 1+rapid.IntRange(0, 2*web.MaxText/len(unit)).Draw(t, "n"))
		start, more := web.Cut(text)
		b, err := json.Marshal(start)
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.ReplaceAll(string(b), `\u003c`, "<")
		plain = strings.ReplaceAll(strings.ReplaceAll(plain, `\u003e`, ">"), `\u0026`, "&")
		if !strings.HasPrefix(text, start) || more != (start != text) || !utf8.ValidString(start) ||
			len(plain) > web.MaxText+2 {
			t.Fatalf("%d of %d bytes, %t, %d in JSON", len(start), len(text), more, len(plain))
		}
	})
}
