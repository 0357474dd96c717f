// Package static serves the files of the local server's pages, under a strict content security policy.
package static

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"time"
)

// Policy permits a page only scripts, styles, pictures and requests of the same origin.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; " +
	"trusted-types 'none'"

// types holds the media types of the files, because the machine's table may differ.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

// Files are the files of a page.
type Files struct {
	FS     fs.FS
	Policy string
}

// Handler serves the folder at a path such as /docs: index.html at that path, and the other pages below it without
// their .html, along with their files.
func (f Files) Handler(at string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) { f.serve(w, r, "index.html") })
	mux.HandleFunc("GET "+at+"/{file...}", func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("file"); path.Ext(name) == "" {
			f.serve(w, r, name+".html")
		} else {
			f.ServeFile(w, r, name)
		}
	})
	return mux
}

// ServeFile responds with a file that is not a page, or with 404 if it does not exist.
func (f Files) ServeFile(w http.ResponseWriter, r *http.Request, name string) {
	if path.Ext(name) == ".html" {
		http.NotFound(w, r)
		return
	}
	f.serve(w, r, name)
}

func (f Files) serve(w http.ResponseWriter, r *http.Request, name string) {
	kind := types[path.Ext(name)]
	data, err := fs.ReadFile(f.FS, name)
	if err != nil || kind == "" {
		http.NotFound(w, r)
		return
	}
	sum := sha256.Sum256(data)
	f.Headers(w.Header(), kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// Headers sets the headers of a response with the media type.
func (f Files) Headers(h http.Header, kind string) {
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", f.Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
