package fetch

import (
	"strings"

	"golang.org/x/net/html"
)

// Sizes of the parts of a page's tree, in bytes. The rest of the tree is the page's own text, at most twice [MaxBody].
const (
	maxTree  = 40 << 20
	nodeSize = 112
	attrSize = 48
)

// renamed is a prefix for the names of elements that the parser must not recognise. The parser copies all open
// formatting elements into every block that follows, which can turn a page of 33 KB into half a gigabyte. It never
// copies an unknown element.
const renamed = "plain-"

// copied lists the formatting elements (HTML §13.2.4.3), and math, in which texts and tags follow other rules.
var copied = setOf("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
	"math")

// raw lists the elements whose text contains no tags.
var raw = setOf("iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp")

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// taming rewrites a page, token by token, so that its tree grows no faster than its text.
type taming struct {
	out   strings.Builder
	size  int    // bytes that the tree of the output needs
	after string // the start tag that was written last; empty after any other token
	svg   int    // number of open drawings, whose content is not written
}

// tame returns a page that can be parsed in linear time and memory, and whether it is only the start of the source.
func tame(source string) (page string, cut bool) {
	var t taming
	z := html.NewTokenizer(strings.NewReader(source))
	for t.size <= maxTree {
		kind := z.Next()
		if kind == html.ErrorToken {
			return t.out.String(), false
		}
		t.token(z, kind)
	}
	return t.out.String(), true
}

func (t *taming) token(z *html.Tokenizer, kind html.TokenType) {
	text := string(z.Raw()) // before the name is read, which converts it to lower case
	b, attributes := z.TagName()
	name := string(b)
	switch {
	case name == "svg" || t.svg > 0:
		t.drawing(z, kind, name)
	case kind == html.TextToken:
		t.text(text)
	case name != "":
		t.tag(z, kind, name, text, attributes)
	case kind == html.CommentToken:
		t.out.WriteString("<!---->")
		t.size += nodeSize
	default:
		t.out.WriteString(text)
		t.size += nodeSize
	}
	t.after = ""
	if kind != html.EndTagToken && t.svg == 0 {
		t.after = name
	}
}

// drawing skips an SVG drawing, in which the tokenizer follows other rules.
func (t *taming) drawing(z *html.Tokenizer, kind html.TokenType, name string) {
	switch {
	case name == "svg" && kind == html.StartTagToken:
		t.svg++
	case name == "svg" && kind == html.EndTagToken:
		t.svg = max(t.svg-1, 0)
	}
	if t.svg > 0 {
		z.NextIsNotRawText()
	}
	z.AllowCDATA(t.svg > 0)
	t.size += nodeSize
	if t.svg == 0 {
		t.out.WriteString("<!---->") // keeps the texts before and after apart
	}
}

// text writes a text as a separate node. If only ignored tags separated two texts, the parser would join them and copy
// both. Before white space it writes a comment, because an element would start the body.
func (t *taming) text(text string) {
	switch {
	case raw[t.after]:
	case strings.Trim(text, " \t\r\n\f") == "":
		t.out.WriteString("<!---->")
	default:
		t.out.WriteString("<wbr>")
	}
	t.out.WriteString(text)
	t.size += 2 * nodeSize
}

func (t *taming) tag(z *html.Tokenizer, kind html.TokenType, name, text string, attributes bool) {
	t.size += nodeSize
	for more := attributes; more; {
		_, _, more = z.TagAttr()
		t.size += attrSize
	}
	if t.size > maxTree {
		return
	}
	if !copied[name] {
		t.out.WriteString(text)
		return
	}
	slash := ""
	if kind == html.EndTagToken {
		slash = "/"
	} else if name == "a" {
		t.out.WriteString("</" + renamed + "a>") // a link ends where the next one begins
	}
	t.out.WriteString("<" + slash + renamed + text[1+len(slash):])
}
