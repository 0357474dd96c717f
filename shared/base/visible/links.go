package visible

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// Link is an address found in a text or an HTML source.
type Link struct {
	Target string // as in the source, with hidden characters escaped, cut to 500 runes
	Loads  bool   // opening the text fetches the address, which reveals that the text was opened
}

// Limits of Links.
const (
	maxLinks  = 100
	maxTarget = 500
)

var (
	// quotable finds addresses in code and attributes, where a quote ends an address.
	quotable = lazyregexp.New(`(?i)\b(?:https?|ftp)://[^\s<>"'\x60]+`)
	cssURL   = lazyregexp.New(`(?i)(?:url\(\s*|src\(\s*|@import\s*)["']?([^"')\s;]+)`)
	// An image-set may also list addresses in plain quotes (CSS Images 4, image-set notation).
	imageSet   = lazyregexp.New(`(?i)image-set\(([^;{}]*)`)
	cssString  = lazyregexp.New(`"([^"]*)"|'([^']*)'`)
	cssComment = lazyregexp.New(`(?s)/\*.*?\*/`)
	cssEscape  = lazyregexp.New(`\\(?:([0-9a-fA-F]{1,6})\s?|([^\n]))`)
	// Outlook renders the content of a conditional comment. Every other program treats it as a comment.
	conditional = lazyregexp.New(`(?is)^\s*\[if\b[^\]]*\]>(.*)$`)
	refresh     = lazyregexp.New(`(?is)^[^;,]*[;,\s]\s*(?:url\s*=\s*)?["']?([^"'>\s]+)`)
	// leads lists the attributes whose address opens on a click. loads lists those whose address is fetched at once.
	leads = map[string]bool{"href": true, "longdesc": true, "action": true, "formaction": true, "cite": true,
		"ping": true, "xlink:href": true}
	loads = map[string]bool{"src": true, "background": true, "poster": true, "data": true, "srcset": true,
		"imagesrcset": true, "lowsrc": true, "dynsrc": true, "codebase": true, "classid": true, "archive": true,
		"manifest": true}
	// fetched lists the elements whose href is fetched.
	fetched = map[string]bool{"link": true, "image": true, "use": true, "feimage": true}
	// rawText lists the elements whose content the standard treats as text, but which programs that drop the element
	// render as HTML.
	rawText = map[string]bool{"iframe": true, "noembed": true, "noframes": true, "noscript": true, "xmp": true,
		"plaintext": true}
)

// maxNesting is the maximum depth of sources within sources, such as conditional comments and frame documents.
const maxNesting = 4

// Links returns the addresses in a plain text or an HTML source: those that a click opens and those that a mail program
// fetches on its own. Each address is returned once. At most 100 are returned.
func Links(source string) []Link {
	l := links{at: map[string]int{}}
	l.addSource(source, 0)
	return l.list
}

// addSource adds the links of an HTML source at the given nesting depth.
func (l *links) addSource(source string, nesting int) {
	if nesting > maxNesting {
		l.addAll(quotable.FindAllString(source, -1), true)
		return
	}
	z := html.NewTokenizer(strings.NewReader(source))
	raw, code := false, false
	for z.Next() != html.ErrorToken {
		tok := z.Token()
		switch tok.Type {
		case html.TextToken:
			l.addText(tok.Data, !code)
			l.addStyle(tok.Data)
			if raw {
				l.addSource(tok.Data, nesting+1)
			}
		case html.CommentToken:
			if m := conditional.FindStringSubmatch(tok.Data); m != nil {
				l.addSource(m[1], nesting+1)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			l.addTag(tok, nesting)
		}
		raw = tok.Type == html.StartTagToken && rawText[tok.Data]
		code = tok.Type == html.StartTagToken && (tok.Data == "style" || tok.Data == "script")
	}
}

type links struct {
	list []Link
	at   map[string]int
}

func (l *links) addTag(tok html.Token, nesting int) {
	for _, a := range tok.Attr {
		key := a.Key
		if a.Namespace != "" {
			key = a.Namespace + ":" + key
		}
		switch {
		case strings.HasSuffix(key, "srcset"):
			for _, candidate := range strings.Split(a.Val, ",") {
				url, _, _ := strings.Cut(strings.TrimSpace(candidate), " ")
				l.add(url, true)
			}
		case loads[key], strings.HasSuffix(key, "href") && fetched[tok.Data]:
			l.add(a.Val, true)
		case key == "srcdoc":
			l.addSource(a.Val, nesting+1)
		case leads[key]:
			l.add(a.Val, false)
		case key == "style":
			l.addStyle(a.Val)
		case key == "content" && tok.Data == "meta":
			l.addAll(quotable.FindAllString(a.Val, -1), true)
			if m := refresh.FindStringSubmatch(a.Val); m != nil && refreshes(tok) {
				l.add(m[1], true)
			}
		default:
			l.addAll(quotable.FindAllString(a.Val, -1), false)
			l.addStyle(a.Val)
		}
	}
}

func refreshes(meta html.Token) bool {
	return slices.ContainsFunc(meta.Attr, func(a html.Attribute) bool {
		return a.Key == "http-equiv" && strings.EqualFold(strings.TrimSpace(a.Val), "refresh")
	})
}

// addStyle adds the addresses that a style fetches. It reads the style once as written, and once without the comments
// and escapes that could hide its keywords.
func (l *links) addStyle(css string) {
	if !strings.ContainsAny(css, "(@") {
		return
	}
	l.addPlainStyle(css)
	if plain := unescape(cssComment.ReplaceAllString(css, " ")); plain != css {
		l.addPlainStyle(plain)
	}
}

func (l *links) addPlainStyle(css string) {
	for _, m := range cssURL.FindAllStringSubmatch(css, -1) {
		if !strings.HasPrefix(m[1], "/*") { // a comment; the second reading removes it
			l.add(m[1], true)
		}
	}
	for _, set := range imageSet.FindAllStringSubmatch(css, -1) {
		for _, m := range cssString.FindAllStringSubmatch(set[1], -1) {
			if m[1] += m[2]; !strings.Contains(m[1], "image/") { // a media type is not an address
				l.add(m[1], true)
			}
		}
	}
}

// unescape decodes CSS escapes (CSS Syntax 3 §4.3.7).
func unescape(css string) string {
	return cssEscape.ReplaceAllStringFunc(css, func(s string) string {
		m := cssEscape.FindStringSubmatch(s)
		if m[1] == "" {
			return m[2]
		}
		n, err := strconv.ParseUint(m[1], 16, 32)
		if err != nil || n == 0 || n > unicode.MaxRune {
			return string(unicode.ReplacementChar)
		}
		return string(rune(n))
	})
}

// addText adds the links of a text. In code it adds only links with a scheme.
func (l *links) addText(text string, prose bool) {
	found := quotable.FindAllString(text, -1)
	if prose {
		found, _ = Targets(text)
	}
	l.addAll(found, false)
}

func (l *links) addAll(targets []string, loads bool) {
	for _, t := range targets {
		l.add(t, loads)
	}
}

// add adds a link. It skips anchors within the text and references to parts of the message (cid:).
func (l *links) add(target string, loads bool) {
	target = strings.TrimSpace(target)
	if target == "" || target[0] == '#' || strings.HasPrefix(strings.ToLower(target), "cid:") {
		return
	}
	if runes := []rune(target); len(runes) > maxTarget {
		target = string(runes[:maxTarget]) + "…"
	}
	target, _ = Line(target)
	if i, ok := l.at[target]; ok {
		l.list[i].Loads = l.list[i].Loads || loads
		return
	}
	if len(l.list) < maxLinks {
		l.at[target] = len(l.list)
		l.list = append(l.list, Link{Target: target, Loads: loads})
	}
}
