package fetch

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Limits for reading a page. The time for finding the main text and converting it grows faster than the page.
const (
	maxElements = 20_000          // with more elements, the main text is not searched for
	maxSearched = 512 << 10       // bytes of text that are searched for the main text, again for each element
	maxKept     = 4 * web.MaxText // bytes of text that are converted, and the same for attributes
	maxDepth    = 100             // nested elements; deeper ones keep only their text
	maxIndents  = 8               // nested lists and quotations; each indents all lines inside it
	maxCells    = 50              // of a table's row; each row is padded to the longest
)

// reading limits the number of pages that this process converts at the same time: each may take about 64 MiB.
var reading = make(chan struct{}, 2)

// converting returns the Markdown converter, which is made when the first page is read. Characters with a meaning in
// Markdown are not escaped, because the reader is a model, and escaping takes time that grows with the square of a
// text.
var converting = sync.OnceValue(func() *converter.Converter {
	return converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
})

// Markdown converts the whole text of an HTML source, such as the body of an e-mail, to Markdown. cut reports whether a
// part of the source was left out. Markdown waits while two other pages are being read, or until ctx ends.
func Markdown(ctx context.Context, source string) (text string, cut bool, err error) {
	if len(source) > MaxBody {
		source, cut = clip.Prefix(source, MaxBody), true
	}
	doc, end, short, err := parse(ctx, source)
	if err != nil {
		return "", false, err
	}
	defer end()
	seen(doc)
	text, spent, err := convert(doc, "")
	return text, cut || short || spent, err
}

// parse waits for its turn and parses a source. cut reports that the document has only a part of the source. The caller
// must call end after it has read the document.
func parse(ctx context.Context, source string) (doc *html.Node, end func(), cut bool, err error) {
	select {
	case reading <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, false, failure(ctx, ctx.Err())
	}
	end = func() { <-reading }
	source, cut = tame(source)
	doc, err = html.Parse(strings.NewReader(source))
	if err != nil {
		end()
		return nil, nil, false, unusable("The page is nested too deeply to be read.")
	}
	return doc, end, cut, nil
}

// convert returns the visible parts of a document as Markdown, and whether some exceeded the limits. domain completes
// relative addresses.
func convert(doc *html.Node, domain string) (text string, cut bool, err error) {
	left := budget{elements: maxElements, text: maxKept, attributes: maxKept}
	left.keep(doc, 0, 0)
	b, err := converting().ConvertNode(doc, converter.WithDomain(domain))
	if err != nil {
		return "", false, unusable("The page cannot be read.").Because(err)
	}
	return string(b), left.cut || left.spent(), nil
}

// markdown reads an HTML page into p: its title, and its main text as Markdown. If the page is not an article, it
// converts the whole page. It waits while two other pages are being read, or until ctx ends.
func markdown(ctx context.Context, u *url.URL, source string, p *web.Page) error {
	doc, end, cut, err := parse(ctx, source)
	if err != nil {
		return err
	}
	defer end()
	p.Title = titleOf(doc)
	elements := seen(doc)
	searched := budget{elements: maxElements, text: maxSearched, attributes: MaxBody}
	searched.keep(doc, 0, 0)
	if reader := readability.NewParser(); elements <= maxElements && reader.CheckDocument(doc) {
		if article, err := reader.ParseDocument(doc, u); err == nil && article.Node != nil {
			doc = article.Node
		}
	}
	text, spent, err := convert(doc, u.Scheme+"://"+u.Host)
	p.Text, p.Truncated = text, cut || searched.cut || searched.spent() || spent
	return err
}

// titleOf returns the text of the page's title.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.FirstChild != nil {
			return n.FirstChild.Data
		}
	}
	return ""
}

// unseen lists the elements that show no text of their own.
var unseen = map[string]bool{"script": true, "style": true, "template": true, "noscript": true, "wbr": true,
	"iframe": true, "object": true, "embed": true, "canvas": true, "audio": true, "video": true, "head": true}

// hiding matches a style that makes an element invisible.
var hiding = lazyregexp.New(`(?i)(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|` +
	`opacity\s*:\s*0*(?:\.0+)?%?\s*(?:;|!|$)|font-size\s*:\s*0*(?:\.0+)?(?:px|pt|em|rem|%)?\s*(?:;|!|$))`)

// seen removes everything from a page that a reader would not see. It also removes links and images whose addresses
// contain data or a program. It returns the number of remaining elements.
func seen(doc *html.Node) (elements int) {
	var next *html.Node
	for n := doc.FirstChild; n != nil; n = next {
		next = n.NextSibling
		switch {
		case n.Type == html.CommentNode || n.Type == html.ElementNode && hidden(n):
			doc.RemoveChild(n)
		case n.Type == html.ElementNode:
			rename(n)
			dropEmbedded(n)
			elements += 1 + seen(n)
		}
	}
	joinTexts(doc)
	return elements
}

// joinTexts joins adjacent texts. The converter would join them pair by pair.
func joinTexts(doc *html.Node) {
	for n := doc.FirstChild; n != nil; n = n.NextSibling {
		if n.Type != html.TextNode || n.NextSibling == nil || n.NextSibling.Type != html.TextNode {
			continue
		}
		var text strings.Builder
		text.WriteString(n.Data)
		for next := n.NextSibling; next != nil && next.Type == html.TextNode; next = n.NextSibling {
			text.WriteString(next.Data)
			doc.RemoveChild(next)
		}
		n.Data = text.String()
	}
}

func hidden(n *html.Node) bool {
	if unseen[n.Data] {
		return true
	}
	for _, a := range n.Attr {
		switch {
		case a.Key == "hidden", a.Key == "aria-hidden" && strings.EqualFold(a.Val, "true"):
			return true
		case a.Key == "style" && hiding.MatchString(a.Val):
			return true
		}
	}
	return false
}

// rename restores the name of an element that [tame] has changed.
func rename(n *html.Node) {
	if name, ok := strings.CutPrefix(n.Data, renamed); ok && copied[name] {
		n.Data, n.DataAtom = name, atom.Lookup([]byte(name))
	}
}

// dropEmbedded removes addresses that contain data or a program, and numbers that could make lists and tables
// arbitrarily large.
func dropEmbedded(n *html.Node) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		if a.Key == "start" || a.Key == "colspan" || a.Key == "rowspan" {
			continue
		}
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(a.Val)), ":")
		if (a.Key == "href" || a.Key == "src") && (scheme == "data" || scheme == "javascript" || scheme == "vbscript") {
			continue
		}
		kept = append(kept, a)
	}
	n.Attr = kept
}
