package fetch

import (
	"net/url"
	"strings"
	"sync"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/lazyregexp"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// What is read of a page: looking for its main text and converting it takes time that grows faster than the page.
const (
	maxElements = 20_000          // beyond these, the main text is not looked for
	maxKept     = 4 * web.MaxText // bytes of text that are converted
)

// converting makes Markdown. It is made when the first page is read. Characters that have a meaning in Markdown are not
// escaped: its reader is a model, and to find them takes time that grows with the square of a text.
var converting = sync.OnceValue(func() *converter.Converter {
	return converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
})

// markdown reads an HTML page into p: its title, and its main text as Markdown; of a page that is no article, all of
// it.
func markdown(u *url.URL, source string, p *web.Page) error {
	doc, err := html.Parse(strings.NewReader(source))
	if err != nil {
		return unusable("The page is nested too deeply to be read.")
	}
	p.Title = titleOf(doc)
	elements := seen(doc)
	if reader := readability.NewParser(); elements <= maxElements && reader.CheckDocument(doc) {
		if article, err := reader.ParseDocument(doc, u); err == nil && article.Node != nil {
			doc = article.Node
		}
	}
	left := budget{maxElements, maxKept}
	left.keep(doc)
	p.Truncated = left.spent()
	b, err := converting().ConvertNode(doc, converter.WithDomain(u.Scheme+"://"+u.Host))
	if err != nil {
		return unusable("The page cannot be read.").Because(err)
	}
	p.Text = string(b)
	return nil
}

// budget is what may still be kept of a page.
type budget struct{ elements, text int }

func (b *budget) spent() bool { return b.elements < 0 || b.text < 0 }

// keep removes from the node what lies behind the first elements and bytes of text.
func (b *budget) keep(n *html.Node) {
	var next *html.Node
	for c := n.FirstChild; c != nil; c = next {
		next = c.NextSibling
		switch c.Type {
		case html.TextNode:
			size := len(c.Data)
			c.Data = clip.Prefix(c.Data, max(b.text, 0))
			b.text -= size
		case html.ElementNode:
			b.elements--
			b.text -= sizeOf(c.Attr)
		}
		switch {
		case !b.spent():
			b.keep(c)
		case c.Type != html.TextNode || c.Data == "":
			n.RemoveChild(c)
		}
	}
}

// sizeOf returns the length of the values.
func sizeOf(attributes []html.Attribute) (n int) {
	for _, a := range attributes {
		n += len(a.Val)
	}
	return n
}

// titleOf returns the text of the page's title.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "title" && n.Namespace == "" && n.FirstChild != nil {
			return n.FirstChild.Data
		}
	}
	return ""
}

// unseen are elements that show nothing of their own, or nothing that is text.
var unseen = map[string]bool{"script": true, "style": true, "template": true, "noscript": true, "svg": true,
	"iframe": true, "object": true, "embed": true, "canvas": true, "audio": true, "video": true, "head": true}

// hiding matches a style that leaves nothing of an element to be seen.
var hiding = lazyregexp.New(`(?i)(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|` +
	`opacity\s*:\s*0*(?:\.0+)?%?\s*(?:;|!|$)|font-size\s*:\s*0*(?:\.0+)?(?:px|pt|em|rem|%)?\s*(?:;|!|$))`)

// seen removes from a page what its reader would not see, and links and images that lead nowhere but into the page's
// own text. It returns how many elements are left.
func seen(doc *html.Node) (elements int) {
	var next *html.Node
	for n := doc.FirstChild; n != nil; n = next {
		next = n.NextSibling
		switch {
		case n.Type == html.CommentNode || n.Type == html.ElementNode && hidden(n):
			doc.RemoveChild(n)
		case n.Type == html.ElementNode:
			dropEmbedded(n)
			elements += 1 + seen(n)
		}
	}
	return elements
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

// dropEmbedded removes addresses that hold data or a program.
func dropEmbedded(n *html.Node) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(a.Val)), ":")
		if (a.Key == "href" || a.Key == "src") && (scheme == "data" || scheme == "javascript" || scheme == "vbscript") {
			continue
		}
		kept = append(kept, a)
	}
	n.Attr = kept
}
