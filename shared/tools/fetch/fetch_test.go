package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakeweb"
	"github.com/countersign-run/countersign/shared/testkit/fields"
	"github.com/countersign-run/countersign/shared/tools/fetch"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// names are the host names of these tests. All names that end in ok.test belong to one site.
var names = map[string][]string{
	"ok.test.": {fakeweb.Public}, "mixed.test.": {"10.0.0.5", fakeweb.Public}, "private.test.": {"10.0.0.5"},
	"rebind.test.": {fakeweb.Public + "|127.0.0.1"}, "metadata.test.": {"169.254.169.254"},
	"alias.test.": {"cname:private.test."}, "xn--bcher-kva.test.": {fakeweb.Public},
}

// page responds with a content type and a body.
func page(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
	}
}

func to(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	}
}

// class returns the class of an error of package fault.
func class(t *testing.T, err error) fault.Class {
	t.Helper()
	var f *fault.Error
	if err == nil {
		return ""
	}
	if !errors.As(err, &f) {
		t.Fatalf("%v is of no class", err)
	}
	return f.Class
}

// TestRefused fetches addresses that are refused, and checks that no connection was made.
func TestRefused(t *testing.T) {
	w := fakeweb.New(t, names, page("text/plain", "x"))
	c := fetch.New(w.Options())
	for _, u := range []string{"http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
		"http://0177.0.0.1/", "http://0x7f.1/", "http://0/", "http://0.0.0.0/", "http://0.0.0.0:8080/",
		"http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://a.localhost/", "http://[::]/",
		"http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/",
		"http://[2002:a9fe:a9fe::]/", "http://[fe80::1%25eth0]/", "http://169.254.169.254/latest/",
		"http://metadata.google.internal/", "http://METADATA.GOOGLE.INTERNAL./", "http://metadata/", "http://router/",
		"http://printer.local/", "http://10.0.0.1/", "http://192.168.0.1/", "http://172.16.0.1/", "http://100.64.0.1/",
		"http://192.0.2.1/", "http://198.18.0.1/", "http://255.255.255.255/", "http://224.0.0.1/",
		"http://[2001:db8::1]/", "http://[100::1]/", "http://[fd00::1]/", "http://127.0.0.1#@ok.test/",
		"http://①②⑦.⓪.⓪.①/", "http://ok.test:22/", "http://ok.test:8080/", "https://ok.test:65535/",
		"http://private.test/", "http://metadata.test/", "http://alias.test/"} {
		_, err := c.Fetch(t.Context(), u)
		if got := class(t, err); got != fault.Policy {
			t.Errorf("%s: %v; want got %v", u, err, fault.Policy)
		}
		if err != nil && strings.Contains(err.Error(), "test/") {
			t.Errorf("the error names the address: %v", err)
		}
	}
	if got := w.Reached(); len(got) > 0 {
		t.Errorf("%v were reached", got)
	}
}

// TestNamesThatChange resolves a name to a public address and later to another address, and one name to several
// addresses.
func TestNamesThatChange(t *testing.T) {
	w := fakeweb.New(t, names, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "rebind.test" {
			to("/again")(w, r)
			return
		}
		page("text/plain", "here")(w, r)
	}))
	c := fetch.New(w.Options())
	if _, err := c.Fetch(t.Context(), "http://rebind.test/"); class(t, err) != fault.Policy {
		t.Errorf("a name that changed: %v", err)
	}
	p, err := c.Fetch(t.Context(), "http://mixed.test/")
	if err != nil || p.Text != "here" {
		t.Errorf("%+v, %v; want p.Text “here”", p, err)
	}
	for _, at := range w.Reached() {
		if at != fakeweb.Public+":80" {
			t.Errorf("%s was reached", at)
		}
	}
}

// TestRedirects checks that up to five redirects on the web are followed, that each target is checked, and that no
// others are followed.
func TestRedirects(t *testing.T) {
	mux := http.NewServeMux()
	for i := range 60 {
		mux.HandleFunc(fmt.Sprintf("/n/%d", i+1), to(fmt.Sprintf("/n/%d", i)))
	}
	mux.HandleFunc("/n/0", page("text/plain", "the end"))
	for name, location := range map[string]string{"file": "file:///etc/passwd", "loopback": "http://127.0.0.1/",
		"metadata": "http://169.254.169.254/", "named": "http://private.test/", "port": "http://ok.test:22/",
		"user": "http://a:b@ok.test/", "data": "data:text/html,x", "other": "//10.0.0.5/x", "odd": "http://0x7f.1/"} {
		mux.HandleFunc("/to/"+name, to(location))
	}
	mux.HandleFunc("/down", to("http://ok.test/n/0"))
	mux.HandleFunc("/loop", to("/loop"))
	w := fakeweb.New(t, names, mux)
	c := fetch.New(w.Options())
	p, err := c.Fetch(t.Context(), "https://ok.test/n/5")
	if err != nil {
		t.Fatal(err)
	}
	fields.Check(t, p, web.Page{URL: "https://ok.test/n/0", Text: "the end"})
	if p, err = c.Fetch(t.Context(), "https://ok.test/down"); err != nil || p.URL != "http://ok.test/n/0" {
		t.Errorf("to http: %+v, %v", p, err)
	}
	for _, path := range []string{"n/6", "n/50", "loop"} {
		if _, err := c.Fetch(t.Context(), "https://ok.test/"+path); class(t, err) != fault.Tool {
			t.Errorf("%s: %v; want class(t, err) %v", path, err, fault.Tool)
		}
	}
	before := len(w.Reached())
	for _, name := range []string{"file", "loopback", "metadata", "named", "port", "user", "data", "other", "odd"} {
		if _, err := c.Fetch(t.Context(), "http://ok.test/to/"+name); class(t, err) != fault.Policy {
			t.Errorf("to %s: %v", name, err)
		}
	}
	if n := len(w.Reached()) - before; n != 9 {
		t.Errorf("%d connections were made for 9 redirects that are not followed", n)
	}
}

// TestFetchWithoutCookiesOrProxy makes a site set a cookie and redirect, in an environment with a proxy, and checks the
// sent requests.
func TestFetchWithoutCookiesOrProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	var seen []http.Header
	w := fakeweb.New(t, names, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Clone())
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/" {
			to("/next")(w, r)
			return
		}
		page("text/plain", "x")(w, r)
	}))
	if _, err := fetch.New(w.Options()).Fetch(t.Context(), "https://ok.test/?q=secret"); err != nil {
		t.Fatal(err)
	}
	for _, h := range seen {
		for name := range h {
			if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding", "Connection"}, name) {
				t.Errorf("%s goes along", name)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d requests", len(seen))
	}
}

// zipped returns n zero bytes, compressed.
func zipped(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.CopyN(z, zeros{}, n); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestBodies responds with bodies that are too large, too slow or unreadable.
func TestBodies(t *testing.T) {
	coded := func(coding string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", coding)
			_, _ = w.Write(body)
		}
	}
	status := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(n) }
	}
	full, bomb := zipped(t, fetch.MaxBody), zipped(t, 64<<20)
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	huge := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("A", strings.Repeat("a", 1<<20)) }
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		code fault.Code // the error's code; empty: no error
	}{
		"as large as may be": {coded("gzip", full), ""},
		"a bomb":             {coded("gzip", bomb), "too_large"},
		"no gzip":            {coded("gzip", []byte("plain")), "unreachable"},
		"half a gzip":        {coded("gzip", full[:len(full)/2]), "unreachable"},
		"gzip in gzip":       {coded("gzip, gzip", full), "unusable_page"},
		"another coding":     {coded("br", []byte("x")), "unusable_page"},
		"endless":            {endless, "too_large"},
		"slow":               {slow, "timeout"},
		"never":              {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "timeout"},
		"huge headers":       {huge, "unreachable"},
		"a picture":          {page("image/png", "\x89PNG"), "unusable_page"},
		"a drawing":          {page("image/svg+xml", "<svg/>"), "unusable_page"},
		"a file":             {page("application/octet-stream", "x"), "unusable_page"},
		"a picture untold":   {page("", "\x89PNG\r\n\x1a\n"), "unusable_page"},
		"missing":            {status(404), "status"},
		"not modified":       {status(304), "status"},
		"failing":            {status(503), "status"},
		"nested without end": {page("text/html", strings.Repeat("<div>", 100_000)), "unusable_page"},
		"hung up": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"unreachable"},
		"an unlikely charset": {page("text/plain; charset=moon", "x"), ""},
		"a malformed type":    {page("text/plain; =", "x"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakeweb.New(t, names, c.h)
			o := w.Options()
			o.Timeout = await.Most
			if c.code == "timeout" {
				o.Timeout = 50 * time.Millisecond
			}
			_, err := fetch.New(o).Fetch(t.Context(), "http://ok.test/")
			if c.code == "" && err != nil || c.code != "" && !fault.Is(err, fault.Tool, c.code) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestTexts reads texts in several charsets and types.
func TestTexts(t *testing.T) {
	for name, c := range map[string]struct{ kind, body, want string }{
		"plain":            {"text/plain", "a <b>\r\nc", "a <b>\r\nc"},
		"json":             {"application/json", `{"a":"ü"}`, `{"a":"ü"}`},
		"problem":          {"application/problem+json", `{}`, `{}`},
		"markdown":         {"text/markdown", "# a", "# a"},
		"latin":            {"text/plain; charset=iso-8859-1", "gr\xfc\xdfe", "grüße"},
		"cyrillic":         {"text/plain; charset=windows-1251", "\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		"japanese":         {"text/plain; charset=shift_jis", "\x93\xfa\x96\x7b", "日本"},
		"utf-16":           {"text/plain", "\xff\xfea\x00\xfc\x00", "aü"},
		"untold":           {"", "words of a text", "words of a text"},
		"no character":     {"text/plain; charset=utf-8", "a\xffb", "a\uFFFDb"},
		"html's own":       {"text/html", `<meta charset=windows-1252><p>gr` + "\xfc\xdf" + `e`, "grüße"},
		"html, by a type":  {"text/html; charset=utf-8", "<meta charset=windows-1252><p>grüße", "grüße"},
		"xhtml":            {"application/xhtml+xml; charset=utf-8", "<html><body><p>x</p></body></html>", "x"},
		"an unclosed word": {"text/html", "<p>x<b", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakeweb.New(t, names, page(c.kind, c.body))
			p, err := fetch.New(w.Options()).Fetch(t.Context(), "http://ok.test/")
			if err != nil || p.Text != c.want {
				t.Errorf("%q, %v; want p.Text %v", p.Text, err, c.want)
			}
		})
	}
}

// TestFetchOpenedLoopback checks that an opening permits one server on this machine and no other.
func TestFetchOpenedLoopback(t *testing.T) {
	open, closed := httptest.NewServer(page("text/plain", "open")), httptest.NewServer(page("text/plain", "closed"))
	defer open.Close()
	defer closed.Close()
	o, err := netguard.Parse(strings.TrimPrefix(open.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c := fetch.New(fetch.Options{Guard: netguard.Options{Open: []netguard.Opening{o}}})
	if p, err := c.Fetch(t.Context(), open.URL); err != nil || p.Text != "open" {
		t.Errorf("%+v, %v; want p.Text “open”", p, err)
	}
	if _, err := c.Fetch(t.Context(), closed.URL); class(t, err) != fault.Policy {
		t.Errorf("%v; want class(t, err) %v", err, fault.Policy)
	}
}

// TestCancelled checks that a fetch ends when its caller cancels it.
func TestCancelled(t *testing.T) {
	began := make(chan struct{})
	w := fakeweb.New(t, names, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := fetch.New(w.Options()).Fetch(ctx, "http://ok.test/"); class(t, err) != fault.Tool {
		t.Errorf("%v; want class(t, err) %v", err, fault.Tool)
	}
}

// TestUnreachable checks names that do not resolve and certificates that are not trusted.
func TestUnreachable(t *testing.T) {
	w := fakeweb.New(t, names, page("text/plain", "x"))
	o := w.Options()
	if _, err := fetch.New(o).Fetch(t.Context(), "http://nowhere.test/"); !fault.Is(err, fault.Tool, "unreachable") {
		t.Errorf("%v; want error %v unreachable", err, fault.Tool)
	}
	o.Roots = nil
	if _, err := fetch.New(o).Fetch(t.Context(), "https://ok.test/"); !fault.Is(err, fault.Tool, "unreachable") {
		t.Errorf("an unknown certificate: %v", err)
	}
	var refused net.Error
	if _, err := fetch.New(o).Fetch(t.Context(), "http://ok.test/"); errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
}

var _ web.Fetcher = (*fetch.Client)(nil)
