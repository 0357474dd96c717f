// Package widget provides the chat for any web page, the automation with which it uses the page, and the client by
// which pages and the console ask the API: plain JavaScript modules for a static file server.
package widget

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
	"regexp"
)

//go:embed site/*.js site/client.d.ts
var embedded embed.FS

// Files returns gemini-chat.js, automation.js, client.js with its types, and the modules that they import, at the root.
// Of modules indentation, comments on lines of their own and those that say types, a quarter of the bytes, are removed;
// each line keeps its number.
func Files() fs.FS {
	site, err := fs.Sub(embedded, "site")
	if err != nil {
		panic("widget: the embedded folder has another name: " + err.Error())
	}
	return bare{site}
}

// comment matches a comment with nothing else in its lines.
var comment = regexp.MustCompile(`(?m)^[ \t]*(?://.*|/\*\*(?:[^*]|\*[^/])*\*/)[ \t]*$`)

var indentation = regexp.MustCompile(`(?m)^[ \t]+`)

// typed matches a comment within a line that says a type.
var typed = regexp.MustCompile(`/\*\* @type (?:[^*\n]|\*[^/\n])*\*/ ?`)

// bare is a tree of modules without comments and indentation.
type bare struct{ fs.FS }

func (b bare) Open(name string) (fs.File, error) {
	file, err := b.FS.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil || path.Ext(name) != ".js" {
		return file, err
	}
	source, err := fs.ReadFile(b.FS, name)
	if err != nil {
		return nil, err
	}
	code := comment.ReplaceAllFunc(source,
		func(text []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(text, []byte("\n"))) })
	code = typed.ReplaceAll(indentation.ReplaceAll(code, nil), nil)
	return &module{bytes.NewReader(code), info}, file.Close()
}

// module is an open file; its size is that of the code.
type module struct {
	*bytes.Reader
	fs.FileInfo
}

func (m *module) Size() int64                { return m.Reader.Size() }
func (m *module) Stat() (fs.FileInfo, error) { return m, nil }
func (m *module) Close() error               { return nil }
