// Package examples has one page for each way to use the agent from a page: fetch, <gemini-chat>, the AI SDK's useChat,
// and AG-UI. All pages show the same conversation and the same pending card. The libraries of useChat are in one file,
// site/usechat/libraries.js, which esbuild builds from libraries.mjs. Their licences are in the same folder.
package examples

import (
	"embed"
	"io/fs"
	"net/http"

	"github.com/countersign-run/countersign/scripts/dev/static"
)

//go:embed site
var embedded embed.FS

// policy is the usual policy. It also lets the index show the other pages in frames.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the index at /examples and the pages below it.
func Handler() http.Handler {
	site, err := fs.Sub(embedded, "site")
	if err != nil {
		panic(err) // unreachable: the folder is embedded
	}
	return static.Files{FS: site, Policy: policy}.Handler("/examples")
}
