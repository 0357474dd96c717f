// Package page is the trial page of the local server: sign in as a local user, talk to the agent, decide what waits, and
// look at the local mailbox and calendar. It is plain HTML, CSS and ES modules without a build step, and shows what
// comes from outside as text only, under a policy that lets nothing but its own files run.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"time"
)

//go:embed site
var site embed.FS

// policy permits the page its own scripts, styles and requests, and nothing else: no inline script, no frame, no form
// that leaves, no string that becomes markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// types are the media types of the files; the machine's own table may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

type file struct {
	name, kind, etag string
	data             []byte
}

// Handler serves the page at "/" and its files beside it; every other path is for elsewhere.
func Handler(elsewhere http.Handler) http.Handler {
	files, err := load()
	if err != nil {
		panic("page: " + err.Error()) // the files are part of the binary
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		switch {
		case !ok:
			elsewhere.ServeHTTP(w, r)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "This path takes GET and HEAD.", http.StatusMethodNotAllowed)
			return
		}
		f.serve(w, r)
	})
}

func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.data))
}

func load() (map[string]file, error) {
	entries, err := fs.ReadDir(site, "site")
	if err != nil {
		return nil, err
	}
	files := map[string]file{}
	for _, e := range entries {
		data, err := fs.ReadFile(site, "site/"+e.Name())
		if err != nil {
			return nil, err
		}
		kind := types[path.Ext(e.Name())]
		if kind == "" {
			return nil, fmt.Errorf("%s has a type that is not known here", e.Name())
		}
		sum := sha256.Sum256(data)
		f := file{e.Name(), kind, `"` + hex.EncodeToString(sum[:12]) + `"`, data}
		files["/"+e.Name()] = f
		if e.Name() == "index.html" {
			files["/"] = f
		}
	}
	return files, nil
}
