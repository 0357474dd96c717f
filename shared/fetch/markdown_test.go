package fetch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/fetch"
	"github.com/countersign-run/countersign/shared/testkit/fakeweb"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// article is a page with a long text amid what is not the text.
func article(inner string) string {
	long := strings.Repeat("<p>The harbour opens at six, and boats that come earlier wait outside of the wall, where "+
		"the water is deep enough for them, as they have done for years.</p>", 8)
	return "<html><head><title>The\n harbour</title><script>var a</script></head><body><nav><a href=/x>Menu</a></nav>" +
		"<article><h1>Opening hours</h1>" + long + inner + "</article><footer>Imprint</footer></body></html>"
}

func read(t *testing.T, html string) web.Page {
	t.Helper()
	w := fakeweb.New(t, names, page("text/html; charset=utf-8", html))
	p, err := fetch.New(w.Options()).Fetch(t.Context(), "https://ok.test/dir/page")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestArticle(t *testing.T) {
	p := read(t, article(`<p>See <a href="../map">the <b>map</b></a>.</p><ul><li>one<li>two</ul>`+
		`<table><tr><th>Day<th>Hour<tr><td>Monday<td>6</table><pre><code>a  b</code></pre>`))
	if strings.Join(strings.Fields(p.Title), " ") != "The harbour" {
		t.Errorf("the title is %q", p.Title)
	}
	for _, want := range []string{"The harbour opens at six", "[the **map**](https://ok.test/map)", "- one\n- two",
		"| Day", "Monday", "a  b"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("%q is missing in\n%s", want, p.Text)
		}
	}
	for _, not := range []string{"Menu", "Imprint", "var a", "<p>"} {
		if strings.Contains(p.Text, not) {
			t.Errorf("%q is in the text", not)
		}
	}
}

// TestNoArticle takes the whole of a page that has no main text.
func TestNoArticle(t *testing.T) {
	p := read(t, `<title>List</title><nav><a href="/a">A</a></nav><p>Short.</p><footer>Foot</footer>`)
	for _, want := range []string{"[A](https://ok.test/a)", "Short.", "Foot"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("%q is missing in %q", want, p.Text)
		}
	}
}

// TestHiddenText reads pages that hide text from their readers, within an article and without one.
func TestHiddenText(t *testing.T) {
	for _, hidden := range []string{`<p style="display:none">SECRET</p>`,
		`<p style="color:red; DISPLAY : NONE !important">SECRET</p>`,
		`<p style="visibility:hidden">SECRET</p>`, `<p style="opacity:0">SECRET</p>`,
		`<p style="opacity: 0.0;a:b">SECRET</p>`,
		`<p style="font-size:0">SECRET</p>`, `<p style="font-size: 0px !important">SECRET</p>`, `<p hidden>SECRET</p>`,
		`<p aria-hidden="true">SECRET</p>`, `<!-- SECRET -->`, `<script>SECRET</script>`, `<style>SECRET</style>`,
		`<template><p>SECRET</p></template>`, `<noscript>SECRET</noscript>`, `<iframe srcdoc="SECRET">SECRET</iframe>`,
		`<svg><text>SECRET</text><desc>SECRET</desc></svg>`, `<object data=x>SECRET</object>`,
		`<a href="javascript:SECRET">x</a>`, `<a href=" data:text/html,SECRET">x</a>`,
		`<img src="data:image/png;base64,SECRET">`,
		`<div hidden><div><p>SECRET</p></div></div>`, `<meta name=description content=SECRET>`} {
		for _, html := range []string{article(hidden), "<p>Short.</p>" + hidden} {
			if p := read(t, html); strings.Contains(p.Text, "SECRET") || strings.TrimSpace(p.Text) == "" {
				t.Errorf("%s: %q", hidden, p.Text)
			}
		}
	}
	for _, shown := range []string{`<p style="opacity:0.5">SEEN</p>`, `<p style="font-size:0.9em">SEEN</p>`,
		`<p style="display:block">SEEN</p>`, `<p aria-hidden=false>SEEN</p>`} {
		if p := read(t, "<p>Short.</p>"+shown); !strings.Contains(p.Text, "SEEN") {
			t.Errorf("%s: %q", shown, p.Text)
		}
	}
}

// TestLongPages keeps the beginning of a page that is too long, and says that there is more.
func TestLongPages(t *testing.T) {
	for _, html := range []string{"<p>begin</p>" + strings.Repeat("<p>word</p>", 60_000),
		"<p>begin " + strings.Repeat("ä word ", 100_000), "<p>begin" + strings.Repeat("<a href=/"+strings.Repeat("x",
			500)+">a</a>", 3000)} {
		p := read(t, html)
		if !p.Truncated || !strings.HasPrefix(p.Text, "begin") || len(p.Text) > 8*web.MaxText ||
			len(p.Text) < web.MaxText {
			t.Errorf("%t, %d bytes, %.20q", p.Truncated, len(p.Text), p.Text)
		}
	}
}

// TestHostilePages reads pages that are made to take long.
func TestHostilePages(t *testing.T) {
	for name, unit := range map[string]string{"divisions": "<div>a</div>", "open": "<p><b><i>",
		"tables":     "<table><tr><td>a",
		"formatting": "<a href=x><b>", "attributes": `<p a=b c=d class="article-body main content">x, y, z</p>`,
		"entities": "&amp;&lt;", "lists": "<ul><li>", "text": "a,b ", "stars": "*_[", "brackets": "](",
		"spaces": "    ",
		"quotes": "<blockquote>a</blockquote>", "breaks": "<br>", "comments": "<!--a-->", "less": "<"} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			html := strings.Repeat(unit, 400_000/len(unit))
			w := fakeweb.New(t, names, page("text/html; charset=utf-8", html))
			p, err := fetch.New(w.Options()).Fetch(t.Context(), "https://ok.test/")
			if err != nil && !fault.Is(err, fault.Tool, "unusable_page") || len(p.Text) > fetch.MaxBody {
				t.Errorf("%d bytes, %v", len(p.Text), err)
			}
			if took := time.Since(began); took > 30*time.Second { // of half a second; a quadratic one takes minutes
				t.Errorf("it took %v", took)
			}
		})
	}
}

func FuzzPage(f *testing.F) {
	for _, seed := range []string{article("<p>x"), "<p>Short", "<table><tr><td>a<td>b", "<a href=x><b></a>",
		"<ul><li><ol>",
		"<pre>\n a", "<p style=display:none>x", "\x00\xff", "<title>a<title>b", "<math><mtext><b>", "<svg><p>",
		"<select><option>a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, html string) {
		p, err := fetch.PageOf("https://ok.test/a", "text/html", []byte(html))
		if err == nil && !utf8.ValidString(p.Text) {
			t.Errorf("%q", p.Text)
		}
	})
}

func BenchmarkPage(b *testing.B) {
	html := []byte(article(strings.Repeat(fmt.Sprintf("<p>%s</p>", strings.Repeat("A word, and another one. ", 20)),
		100)))
	b.SetBytes(int64(len(html)))
	for b.Loop() {
		if _, err := fetch.PageOf("https://ok.test/a", "text/html", html); err != nil {
			b.Fatal(err)
		}
	}
}
