package visible

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// nested returns a link within n frames.
func nested(n int) string {
	s := `<img src="https://e.example/deep">`
	for range n {
		s = `<!--[if mso]>` + s
	}
	return s
}

func TestLinks(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []Link
	}{
		"plain text": {"see https://a.example/x?y=1 and again https://a.example/x?y=1",
			[]Link{{"https://a.example/x?y=1", false}}},
		"a link's target": {`<a href='https://evil.example'>Join Meet</a>`,
			[]Link{{"https://evil.example", false}}},
		"an unquoted image": {`<img src=http://evil.example/p.gif?u=secret>`,
			[]Link{{"http://evil.example/p.gif?u=secret", true}}},
		"entities": {`<a href="https&#58;//e.example/&amp;x">x</a>`,
			[]Link{{"https://e.example/&x", false}}},
		"style": {`<p style="background:url( 'http://e.example/b' )">`,
			[]Link{{"http://e.example/b", true}}},
		"style sheet": {`<style>@import "http://e.example/s.css"; p{background:url(//e.example/t)}</style>`,
			[]Link{{"http://e.example/s.css", true}, {"//e.example/t", true}}},
		"source set": {`<img srcset="http://e.example/1 1x, http://e.example/2 2x">`,
			[]Link{{"http://e.example/1", true}, {"http://e.example/2", true}}},
		"Outlook's part": {`<!--[if mso]><img src="//e.example/o"><v:fill src='//e.example/v'/><![endif]-->`,
			[]Link{{"//e.example/o", true}, {"//e.example/v", true}}},
		"Outlook's, with not": {`<!--[if (gte mso 9)|(IE)]><a href="//e.example/o">x</a><![endif]-->`,
			[]Link{{"//e.example/o", false}}},
		"a comment": {`<!-- <img src="//e.example/c"> -->`, nil},
		"image set": {
			`<p style="background:image-set('//e.example/1' 1x, &quot;//e.example/2&quot; 2x type('image/png'))">`,
			[]Link{{"//e.example/1", true}, {"//e.example/2", true}}},
		"image set of WebKit": {
			`<style>p{background:-webkit-image-set(url(//e.example/1) 1x, "//e.example/2" 2x)}</style>`,
			[]Link{{"//e.example/1", true}, {"//e.example/2", true}}},
		"two image sets": {
			`<style>p{background:image-set("//e.example/1" 1x)}q{background:image-set("//e.example/2" 1x)}</style>`,
			[]Link{{"//e.example/1", true}, {"//e.example/2", true}}},
		"escapes in a style":  {`<p style="background:u\72l(//e.example/e)">`, []Link{{"//e.example/e", true}}},
		"comments in a style": {`<style>@import/**/"//e.example/i";</style>`, []Link{{"//e.example/i", true}}},
		"a frame's document": {`<iframe srcdoc="<img src='//e.example/f'><a href=//e.example/a>x</a>"></iframe>`,
			[]Link{{"//e.example/f", true}, {"//e.example/a", false}}},
		"a frame's content": {
			`<iframe><img src="//e.example/f"></iframe><noembed><img src="//e.example/n"></noembed>`,
			[]Link{{"//e.example/f", true}, {"//e.example/n", true}}},
		"refresh": {`<meta http-equiv="Refresh" content="0; url=//e.example/r">`,
			[]Link{{"//e.example/r", true}}},
		"refresh in quotes": {`<meta content="5;URL='//e.example/r'" http-equiv=refresh>`,
			[]Link{{"//e.example/r", true}}},
		"refresh without url": {`<meta http-equiv=refresh content="0 //e.example/r">`, []Link{{"//e.example/r", true}}},
		"other meta":          {`<meta name=viewport content="width=device-width; height=1">`, nil},
		"an image of SVG": {
			`<svg><image href="//e.example/s"/><use xlink:href="//e.example/u"/><rect fill="url(//e.example/w)"/></svg>`, []Link{{"//e.example/s", true}, {"//e.example/u", true}, {"//e.example/w", true}}},
		"a handler":        {`<p onclick="location='https://e.example/h'">`, []Link{{"https://e.example/h", false}}},
		"frames in frames": {nested(40), []Link{{"https://e.example/deep", true}}},
		"script target":    {`<a href="javascript:x()">x</a>`, []Link{{"javascript:x()", false}}},
		"own parts":        {`<a href="#top">x</a><img src="cid:1">`, nil},
		"hidden character": {"<a href=\"https://e.example/\u202e\">x</a>",
			[]Link{{"https://e.example/⟨U+202E⟩", false}}},
		"clicked and fetched": {`<a href="http://e.example/1"><img src="http://e.example/1"></a>`,
			[]Link{{"http://e.example/1", true}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Links(c.in); !slices.Equal(got, c.want) {
				t.Errorf("Links = %v; want %v", got, c.want)
			}
		})
	}
	var many strings.Builder
	for i := range 500 {
		fmt.Fprintf(&many, "<img src=http://e.example/%d>", i)
	}
	if got := Links(many.String()); len(got) != 100 {
		t.Errorf("%d links; want 100", len(got))
	}
}

// FuzzLinks checks that no source makes the list too long, takes too long, or results in a hidden character.
func FuzzLinks(f *testing.F) {
	for _, s := range []string{nested(40), `<iframe srcdoc="&lt;iframe srcdoc=x>">`, `<p style="u\\72l(//e.example">`,
		"<!--[if", `<meta http-equiv=refresh content=";">`, "image-set('", "\u202ehttps://x", "http://\xb8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list := Links(s)
		if len(list) > maxLinks {
			t.Fatalf("%d links", len(list))
		}
		for _, l := range list {
			if l.Target == "" || !utf8.ValidString(l.Target) ||
				strings.ContainsFunc(l.Target, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%q is shown", l.Target)
			}
		}
	})
}
