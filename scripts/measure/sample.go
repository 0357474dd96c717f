package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A passage is one doc comment, paragraph or message, and the place where it is.
type passage struct{ at, text string }

// prose holds all passages of the module that users or engineers read.
type prose struct {
	root                           string
	comments, paragraphs, messages []passage
}

// sample writes 60 doc comments, 30 paragraphs and 60 messages of the module in a folder. Equal seeds draw equal
// passages from equal code.
func sample(w io.Writer, root string, seed uint64) error {
	p := &prose{root: root}
	if err := p.read(); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for _, kind := range []struct {
		name  string
		all   []passage
		drawn int
	}{
		{"doc comments", p.comments, 60}, {"paragraphs", p.paragraphs, 30}, {"messages", p.messages, 60},
	} {
		drawn := min(kind.drawn, len(kind.all))
		if _, err := fmt.Fprintf(w, "# %d of %d %s\n\n", drawn, len(kind.all), kind.name); err != nil {
			return err
		}
		order := random.Perm(len(kind.all))[:drawn]
		slices.Sort(order)
		for _, i := range order {
			if _, err := fmt.Fprintf(w, "%s\n%s\n\n", kind.all[i].at, kind.all[i].text); err != nil {
				return err
			}
		}
	}
	return nil
}

// read collects the passages of all files below the root, without tests and testdata.
func (p *prose) read() error {
	return filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "node_modules" || name == "bundle" ||
			strings.HasPrefix(name, ".") && path != p.root):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		case filepath.Ext(name) == ".go":
			return p.readGo(path)
		case filepath.Ext(name) == ".js":
			return p.readScript(path)
		case filepath.Ext(name) == ".md":
			return p.readPage(path)
		}
		return nil
	})
}

// readGo adds the doc comments of the package and of declarations, and the messages in calls.
func (p *prose) readGo(path string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	at := func(n ast.Node) string { return p.place(path, fset.Position(n.Pos()).Line) }
	ast.Inspect(file, func(n ast.Node) bool {
		var doc *ast.CommentGroup
		switch n := n.(type) {
		case *ast.File:
			doc = n.Doc
		case *ast.FuncDecl:
			doc = n.Doc
		case *ast.GenDecl:
			doc = n.Doc
		case *ast.TypeSpec:
			doc = n.Doc
		case *ast.ValueSpec:
			doc = n.Doc
		case *ast.CallExpr:
			if speaks(n) {
				p.addMessages(n, at)
			}
		}
		if doc.Text() != "" {
			p.comments = append(p.comments, passage{at(doc), strings.TrimSpace(doc.Text())})
		}
		return true
	})
	return nil
}

var speakers = []string{"Code", "Debug", "Error", "Errorf", "Fprintf", "Fprintln", "Info", "Invalid", "New", "Printf",
	"Println", "Sprintf", "Unavailable", "Warn", "Within"}

// speaks reports whether a call makes an error, a log line or another text for people.
func speaks(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(speakers, f.Sel.Name)
}

// addMessages adds the arguments of a call that have three words or more.
func (p *prose) addMessages(call *ast.CallExpr, at func(ast.Node) string) {
	for _, argument := range call.Args {
		l, ok := argument.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(l.Value); err == nil && sentence(text) {
			p.messages = append(p.messages, passage{at(l), text})
		}
	}
}

var scriptString = regexp.MustCompile("\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`")

// readScript adds the texts of a page's script, line by line. Lines that are longer than our limit belong to libraries.
func (p *prose) readScript(path string) error {
	script, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(script), "\n") {
		code := strings.TrimSpace(line)
		if len(line) > 240 || strings.HasPrefix(code, "//") || strings.HasPrefix(code, "*") {
			continue
		}
		for _, text := range scriptString.FindAllString(line, -1) {
			if text = text[1 : len(text)-1]; sentence(text) {
				p.messages = append(p.messages, passage{p.place(path, i+1), text})
			}
		}
	}
	return nil
}

var word = regexp.MustCompile(`^[A-Za-z'’]{2,}[,.:;?!]?$`)

// sentence reports whether a text has at least three words of letters.
func sentence(text string) bool {
	words := 0
	for _, w := range strings.Fields(text) {
		if word.MatchString(w) {
			words++
		}
	}
	return words > 2
}

// readPage adds the paragraphs of a page that are not code.
func (p *prose) readPage(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	line, fenced := 1, false
	for _, block := range bytes.Split(page, []byte("\n\n")) {
		text := string(block)
		isCode := fenced || strings.Contains(text, "```") || strings.HasPrefix(text, "    ")
		if strings.Count(text, "```")%2 == 1 {
			fenced = !fenced
		}
		if !isCode && sentence(text) && !strings.HasPrefix(text, "#") {
			p.paragraphs = append(p.paragraphs, passage{p.place(path, line), strings.TrimSpace(text)})
		}
		line += strings.Count(text, "\n") + 2
	}
	return nil
}

func (p *prose) place(path string, line int) string {
	if own, err := filepath.Rel(p.root, path); err == nil {
		path = filepath.ToSlash(own)
	}
	return path + ":" + strconv.Itoa(line)
}
