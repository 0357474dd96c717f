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

// Limits for reading a page. Finding the main text and converting it take time that grows faster than the page.
const (
	maxElements = 20_000          // with more elements, the main text is not searched for
	maxSearched = 512 << 10       // bytes of text that are searched for the main text, again for each element
	maxKept     = 4 * web.MaxText // bytes of text that are converted, and the same for attributes
	maxDepth    = 100             // nested elements; deeper ones keep only their text
	maxIndents  = 8               // nested lists and quotations; each indents all lines inside it
	maxCells    = 50              // of a table's row; each row is padded to the longest
)

// reading bounds the pages that are processed at once in this process: each may take about 64 MiB.
var reading = make(chan struct{}, 2)

// converting returns the Markdown converter, which is made when the first page is read. Characters with a meaning in
// Markdown are not escaped, because the reader is a model, and escaping takes time that grows with the square of a
// text.
var converting = sync.OnceValue(func() *converter.Converter {
	return converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
})

// markdown reads an HTML page into p: its title, and its main text as Markdown. If the page is not an article, it
// converts the whole page. It waits while two other pages are being read, or until ctx ends.
func markdown(ctx context.Context, u *url.URL, source string, p *web.Page) error {
	select {
	case reading <- struct{}{}:
		defer func() { <-reading }()
	case <-ctx.Done():
		return failure(ctx, ctx.Err())
	}
	source, cut := tame(source)
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return unusable("The page is nested too deeply to be read.")
	}
	p.Title = titleOf(doc)
	elements := seen(doc)
	searched := budget{elements: maxElements, text: maxSearched, attributes: MaxBody}
	searched.keep(doc, 0, 0)
	if reader := readability.NewParser(); elements <= maxElements && reader.CheckDocument(doc) {
		if article, err := reader.ParseDocument(doc, u); err == nil && article.Node != nil {
			doc = article.Node
		}
	}
	left := budget{elements: maxElements, text: maxKept, attributes: maxKept}
	left.keep(doc, 0, 0)
	p.Truncated = cut || searched.cut || searched.spent() || left.cut || left.spent()
	b, err := converting().ConvertNode(doc, converter.WithDomain(u.Scheme+"://"+u.Host))
	if err != nil {
		return unusable("The page cannot be read.").Because(err)
	}
	p.Text = string(b)
	return nil
}

// budget is what may still be kept of a page: elements, and bytes of text and of attributes.
type budget struct {
	elements, text, attributes int
	cut                        bool // cells of a row were removed
}

func (b *budget) spent() bool { return b.elements < 0 || b.text < 0 || b.attributes < 0 }

// keep removes everything from the node that exceeds the budget or would make its text grow beyond it. depth is the
// number of elements around the node, indents the number of those that indent.
func (b *budget) keep(n *html.Node, depth, indents int) {
	var next *html.Node
	cells := 0
	for c := n.FirstChild; c != nil; c = next {
		next = c.NextSibling
		switch c.Type {
		case html.TextNode:
			size := len(c.Data)
			c.Data = clip.Prefix(c.Data, max(b.text, 0))
			b.text -= size
		case html.ElementNode:
			b.elements--
			b.attributes -= sizeOf(c.Attr)
		}
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			cells++
		}
		switch {
		case cells > maxCells:
			b.cut = true
			n.RemoveChild(c)
		case !b.spent():
			b.keep(c, depth+1, indents+flatten(c, depth, indents))
		case c.Type != html.TextNode || c.Data == "":
			n.RemoveChild(c)
		}
	}
}

// flatten removes an indent that is nested too deeply, and reduces an element that is nested too deeply to its text. It
// returns the number of indents that the element adds.
func flatten(n *html.Node, depth, indents int) int {
	if depth >= maxDepth {
		onlyText(n)
	}
	switch n.DataAtom {
	case atom.Ul, atom.Ol, atom.Blockquote:
		if indents < maxIndents {
			return 1
		}
		n.Data, n.DataAtom = "div", atom.Div
	}
	return 0
}

// onlyText replaces the content of an element with its text.
func onlyText(n *html.Node) {
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data + " ")
		}
	}
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
	if text.Len() > 0 {
		n.AppendChild(&html.Node{Type: html.TextNode, Data: text.String()})
	}
}

// sizeOf returns the total length of the attributes' values.
func sizeOf(attributes []html.Attribute) (n int) {
	for _, a := range attributes {
		n += len(a.Val)
	}
	return n
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

// seen removes everything from a page that its reader would not see. It also removes links and images whose addresses
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
