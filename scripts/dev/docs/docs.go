// Package docs serves the description of the API as pages to read and try: OpenAPI Explorer 2.4.820 (Apache 2.0) with
// the local server's /openapi.json.
package docs

import (
	"embed"
	"io/fs"
	"net/http"

	"github.com/countersign-run/countersign/scripts/dev/static"
)

//go:embed site
var embedded embed.FS

// policy allows inline styles but no inline scripts, because the viewer's templates have style elements and attributes.
// Only those templates (lit-html) create markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types lit-html"

// Handler serves the page at /docs and its files below /docs/.
func Handler() http.Handler {
	site, err := fs.Sub(embedded, "site")
	if err != nil {
		panic(err) // unreachable: the folder is embedded
	}
	return static.Files{FS: site, Policy: policy}.Handler("/docs")
}
