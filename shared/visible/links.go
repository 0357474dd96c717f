package visible

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// Link is one address that a text or an HTML source holds.
type Link struct {
	Target string // as it stands there, with escapes for hidden characters, cut at 500 runes
	Loads  bool   // whether opening the text alone fetches it, which tells its sender so
}

// Bounds of Links.
const (
	maxLinks  = 100
	maxTarget = 500
)

var (
	bare   = regexp.MustCompile(`(?i)\b(?:https?|ftp)://[^\s<>"'\x60]+`)
	cssURL = regexp.MustCompile(`(?i)(?:url\(\s*|@import\s+)["']?([^"')\s;]+)`)
	// leads are the attributes whose address is opened by a click, loads those whose address is fetched at once.
	leads = map[string]bool{"href": true, "action": true, "formaction": true, "cite": true, "ping": true, "xlink:href": true}
	loads = map[string]bool{"src": true, "background": true, "poster": true, "data": true, "srcset": true, "imagesrcset": true}
)

// Links lists the addresses in a plain text or an HTML source, each once, at most 100 of them: what a person would
// reach by a click, and what a mail program would fetch without one.
func Links(source string) []Link {
	l := links{at: map[string]int{}}
	z := html.NewTokenizer(strings.NewReader(source))
	for z.Next() != html.ErrorToken {
		tok := z.Token()
		switch tok.Type {
		case html.TextToken:
			l.addAll(bare.FindAllString(tok.Data, -1), false)
			l.addStyle(tok.Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			l.addTag(tok)
		}
	}
	return l.list
}

type links struct {
	list []Link
	at   map[string]int
}

func (l *links) addTag(tok html.Token) {
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
		case loads[key], key == "href" && tok.Data == "link":
			l.add(a.Val, true)
		case leads[key]:
			l.add(a.Val, false)
		case key == "style":
			l.addStyle(a.Val)
		case key == "content" && tok.Data == "meta":
			l.addAll(bare.FindAllString(a.Val, -1), true)
		}
	}
}

func (l *links) addStyle(css string) {
	for _, m := range cssURL.FindAllStringSubmatch(css, -1) {
		l.add(m[1], true)
	}
}

func (l *links) addAll(targets []string, loads bool) {
	for _, t := range targets {
		l.add(t, loads)
	}
}

// add leaves out anchors within the text and parts that the message carries itself.
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
