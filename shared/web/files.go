package web

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// types maps file extensions to media types. The machine's own table may differ.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8", ".txt": "text/plain; charset=utf-8", ".svg": "image/svg+xml",
	".ts":   "text/plain; charset=utf-8", // type declarations
	".json": "application/json; charset=utf-8", ".png": "image/png", ".webmanifest": "application/manifest+json",
}

// files maps exact paths to the served files.
type files map[string]file

type file struct {
	name, kind, version string
	data                []byte
	packed              func() []byte // returns the data in gzip; nil if that is not smaller
}

// load reads all files in from, and prefixes their paths. An index.html also answers for its directory.
func load(from fs.FS, prefix string) (files, error) {
	all := files{}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		f, err := newFile(path.Base(name), data)
		if err != nil {
			return err
		}
		all[prefix+name] = f
		if f.name == "index.html" {
			all[prefix+name[:len(name)-len(f.name)]] = f
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, all.date()
}

// versioned matches a URL in a page that must carry its file's version.
var versioned = lazyregexp.New(`"/[^"?]+\?v=\{v\}"`)

// date writes the versions of the files into the pages that load them.
func (f files) date() (err error) {
	for at, page := range f {
		if !page.page() {
			continue
		}
		page.data = []byte(versioned.ReplaceAllStringFunc(string(page.data), func(address string) string {
			name := strings.Trim(strings.TrimSuffix(address, `?v={v}"`), `"`)
			if _, ok := f[name]; !ok {
				err = fmt.Errorf("web: %s loads %s, which does not exist", at, name)
			}
			return strings.Replace(address, "{v}", f[name].version, 1)
		}))
		f[at] = page
	}
	return err
}

func newFile(name string, data []byte) (file, error) {
	kind := types[path.Ext(name)]
	if kind == "" {
		return file{}, fmt.Errorf("web: %s has an unknown file type", name)
	}
	sum := sha256.Sum256(data)
	return file{name, kind, hex.EncodeToString(sum[:12]), data, packer(kind, data)}, nil
}

// page reports whether the file is an HTML page.
func (f file) page() bool { return f.kind == types[".html"] }

// serve sends the file, or answers that the browser's copy is current. Browsers revalidate a file each time, so they
// show a new release at once. If the URL has the file's version, they keep the file. A page is always sent, because its
// policy can change while the file does not.
func (f file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	data, etag := f.data, f.version
	if f.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(r.Header) {
			h.Set("Content-Encoding", "gzip")
			data, etag = f.packed(), f.version+"-gzip"
		}
	}
	switch {
	case f.page():
		h.Set("Cache-Control", "no-store")
	case r.URL.RawQuery == "v="+f.version:
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("ETag", `"`+etag+`"`)
	default:
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", `"`+etag+`"`)
	}
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(data))
}

// nonceMark is replaced by the response's nonce in a page.
const nonceMark = "{nonce}"

// withNonce returns the page with a new nonce in it, and the nonce. Other files are unchanged.
func (f file) withNonce() (file, string) {
	if !f.page() {
		return f, ""
	}
	nonce := rand.Text()
	f.data = bytes.ReplaceAll(f.data, []byte(nonceMark), []byte(nonce))
	return f, nonce
}
