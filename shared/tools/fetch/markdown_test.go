package fetch_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakeweb"
	"github.com/countersign-run/countersign/shared/testkit/figures"
	"github.com/countersign-run/countersign/shared/tools/fetch"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// article returns a page with a long text between parts that do not belong to it.
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

// TestMarkdownWithoutArticle checks that a page without a main text is converted as a whole.
func TestMarkdownWithoutArticle(t *testing.T) {
	p := read(t, `<title>List</title><nav><a href="/a">A</a></nav><p>Short.</p><footer>Foot</footer>`)
	for _, want := range []string{"[A](https://ok.test/a)", "Short.", "Foot"} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("%q is missing in %q", want, p.Text)
		}
	}
}

// TestHiddenText reads pages with text that their readers do not see, within an article and without one.
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
			t.Errorf("%s: %q; want p.Text with “SEEN”", shown, p.Text)
		}
	}
}

// TestLongPages checks that a page that is too long is cut, and that the text says so.
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

// TestHostilePages reads pages that were made to take a long time.
func TestHostilePages(t *testing.T) {
	for name, unit := range map[string]string{"divisions": "<div>a</div>", "open": "<p><b><i>",
		"tables":     "<table><tr><td>a",
		"formatting": "<a href=x><b>", "attributes": `<p a=b c=d class="article-body main content">x, y, z</p>`,
		"entities": "&amp;&lt;", "lists": "<ul><li>", "text": "a,b ", "stars": "*_[", "brackets": "](",
		"spaces": "    ",
		"quotes": "<blockquote>a</blockquote>", "breaks": "<br>", "comments": "<!--a-->", "less": "<"} {
		t.Run(name, func(t *testing.T) {
			html := strings.Repeat(unit, 400_000/len(unit))
			w := fakeweb.New(t, names, page("text/html; charset=utf-8", html))
			p, err := fetch.New(w.Options()).Fetch(t.Context(), "https://ok.test/")
			if err != nil && !fault.Is(err, fault.Tool, "unusable_page") || len(p.Text) > fetch.MaxBody {
				t.Errorf("%d bytes, %v", len(p.Text), err)
			}
		})
	}
}

// TestBombs reads pages whose tree or text would be far larger than the page, and counts the allocated bytes.
func TestBombs(t *testing.T) {
	numbered := func(n int, open string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, open, i)
		}
		return b.String()
	}
	rep := strings.Repeat
	for name, html := range map[string]string{
		"copied formatting": "<p>" + numbered(400, "<b id=%d>") + rep("<p>x", 2000),
		"misnested formatting": rep(numbered(40, "<b id=%d>")+rep("<div>", 9)+rep("</b>", 40)+rep("</div>", 9), 30) +
			rep("<p>x", 2000),
		"formatting in drawings": "<svg><style></svg><p>" + numbered(400, "<b id=%d>") + rep("<p>x", 2000),
		"attributes":             "<p" + rep(" a", 60_000),
		"ignored tags":           rep("a</i>", 30_000),
		"ignored in a table":     "<table>" + rep("a</i>", 30_000),
		"numbers":                rep("<ol start=9000000000000000000><li>", 100) + "<pre>" + rep("\n", 30_000),
		"lists":                  rep("<ul><li>", 200) + "<pre>" + rep("\n", 30_000),
		"quotations":             rep("<blockquote>", 400) + rep("a<br>", 5000),
		"spans":                  "<table><tr><td colspan=300000>a<td>b<tr><td rowspan=300000>c",
		"wide tables":            "<table><tr>" + rep("<td>a", 1500) + rep("<tr><td>a", 1500),
		"wide cells":             "<table><tr><td>" + rep("a", 30_000) + rep("<tr><td>a", 1500),
		"nested divisions":       rep("<div>", 400) + "<p>" + rep("word, and word. ", 30_000),
	} {
		t.Run(name, func(t *testing.T) {
			var p web.Page
			var err error
			n := figures.Allocated(func() {
				p, err = fetch.PageOf("https://ok.test/", "text/html; charset=utf-8", []byte(html))
			})
			if err != nil && !fault.Is(err, fault.Tool, "unusable_page") {
				t.Error(err)
			}
			if n > mostAllocated || len(p.Text) > fetch.MaxBody {
				t.Errorf("%d MB were allocated for %d bytes, and %d came of them", n>>20, len(html), len(p.Text))
			}
		})
	}
}

// mostAllocated is the maximum number of bytes that a page of TestBombs may allocate in total. The number in use at one
// time is smaller.
const mostAllocated = 64 << 20

// TestFormatting checks links and formatting that end correctly, in the wrong place, or not at all.
func TestFormatting(t *testing.T) {
	for html, want := range map[string]string{
		`<p>a <b>b</b> <i>c</i> <a href=/d>d</a>`: "a **b** *c* [d](https://ok.test/d)",
		`<p><a href=/a>a<a href=/b>b</a>`:         "[a](https://ok.test/a)[b](https://ok.test/b)",
		`<p><b>a</p><p>b</p>`:                     "**a**\n\nb",
		`<p>a<svg><path/><title>t</title></svg>b`: "ab",
		`<p>1 < 2 <code>x<y</code>`:               "1 &lt; 2 `x`",
		`<pre>a
 b</pre>`: "```\na\n b\n```",
		`<title>T</title><p>a<math><mi>x</mi></math>`:         "ax",
		`<script>if (a<b) "<p>"</script><STYLE>b</STYLE><p>a`: "a",
	} {
		if p := read(t, html); p.Text != want {
			t.Errorf("%s: %q; want p.Text %v", html, p.Text, want)
		}
	}
}

// TestMarkdownConcurrency reads more pages at once than may be converted at once.
func TestMarkdownConcurrency(t *testing.T) {
	var pages sync.WaitGroup
	for range 8 {
		pages.Go(func() {
			if p, err := fetch.PageOf("https://ok.test/", "text/html", []byte("<p>a")); err != nil || p.Text != "a" {
				t.Errorf("%q, %v; want p.Text “a”", p.Text, err)
			}
		})
	}
	pages.Wait()
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
