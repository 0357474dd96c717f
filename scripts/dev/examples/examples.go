// Package examples has one page for each way in which a page can have the agent: plain fetch, <gemini-chat>, the AI
// SDK's useChat, and AG-UI. All of them show one conversation and its pending card. The libraries of useChat are in one
// file (site/usechat/libraries.js), which esbuild builds from the imports of libraries.mjs; their licences are next to
// it.
package examples

import (
	"embed"
	"io/fs"
	"net/http"

	"github.com/countersign-run/countersign/scripts/dev/static"
)

//go:embed site
var embedded embed.FS

// policy is the usual one, and lets the index show the other pages in frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the index at /examples and the pages below.
func Handler() http.Handler {
	site, err := fs.Sub(embedded, "site")
	if err != nil {
		panic(err) // unreachable: the folder is embedded
	}
	return static.Files{FS: site, Policy: policy}.Handler("/examples")
}
