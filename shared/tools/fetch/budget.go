package fetch

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// budget is the remaining allowance of a page: elements, and bytes of text and of attributes.
type budget struct {
	elements, text, attributes int
	cut                        bool // cells of a row were removed
}

func (b *budget) spent() bool { return b.elements < 0 || b.text < 0 || b.attributes < 0 }

// keep removes everything from the node that exceeds the budget. depth is the number of elements around the node,
// indents the number of those that indent.
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
