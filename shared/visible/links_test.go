package visible

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestLinks(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []Link
	}{
		"plain text":          {"see https://a.example/x?y=1 and again https://a.example/x?y=1", []Link{{"https://a.example/x?y=1", false}}},
		"a link's target":     {`<a href='https://evil.example'>Join Meet</a>`, []Link{{"https://evil.example", false}}},
		"an unquoted image":   {`<img src=http://evil.example/p.gif?u=secret>`, []Link{{"http://evil.example/p.gif?u=secret", true}}},
		"entities":            {`<a href="https&#58;//e.example/&amp;x">x</a>`, []Link{{"https://e.example/&x", false}}},
		"style":               {`<p style="background:url( 'http://e.example/b' )">`, []Link{{"http://e.example/b", true}}},
		"style sheet":         {`<style>@import "http://e.example/s.css"; p{background:url(//e.example/t)}</style>`, []Link{{"http://e.example/s.css", true}, {"//e.example/t", true}}},
		"source set":          {`<img srcset="http://e.example/1 1x, http://e.example/2 2x">`, []Link{{"http://e.example/1", true}, {"http://e.example/2", true}}},
		"script target":       {`<a href="javascript:x()">x</a>`, []Link{{"javascript:x()", false}}},
		"own parts":           {`<a href="#top">x</a><img src="cid:1">`, nil},
		"hidden character":    {"<a href=\"https://e.example/\u202e\">x</a>", []Link{{"https://e.example/⟨U+202E⟩", false}}},
		"clicked and fetched": {`<a href="http://e.example/1"><img src="http://e.example/1"></a>`, []Link{{"http://e.example/1", true}}},
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
