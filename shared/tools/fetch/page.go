package fetch

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// read reads the whole body, decompressed.
func read(ctx context.Context, res *http.Response) ([]byte, error) {
	if coding := res.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return nil, unusable("The page comes in a coding that was not asked for.")
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, MaxBody+1))
	switch {
	case len(body) > MaxBody:
		return nil, fault.New(fault.Tool, "too_large", "The page is larger than %d MiB.", MaxBody>>20)
	case err != nil:
		return nil, failure(ctx, err)
	}
	return body, nil
}

func unusable(why string) *fault.Error { return fault.New(fault.Tool, "unusable_page", "%s", why) }

// pageOf returns the page in a site's answer.
func pageOf(ctx context.Context, u *url.URL, contentType string, body []byte) (web.Page, error) {
	p := web.Page{URL: u.String()}
	if contentType == "" {
		contentType = http.DetectContentType(body)
	}
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(contentType), ";") // a parameter is malformed
	}
	kind = strings.TrimSpace(kind)
	text, err := decode(contentType, body)
	if err != nil {
		return p, err
	}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml":
		err = markdown(ctx, u, text, &p)
		return p, err
	case plain(kind):
		p.Text = text
		return p, nil
	}
	return p, unusable("The address leads to no page: only HTML, text and JSON can be read.")
}

// plain reports whether a content type is text that needs no conversion.
func plain(kind string) bool {
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "+json") ||
		kind == "application/xml" || strings.HasSuffix(kind, "+xml") && kind != "image/svg+xml"
}

// decode returns a body as text. It determines the encoding from the byte order mark, the content type's charset, the
// page's own declaration, or the bytes (WHATWG Encoding). Invalid bytes become replacement characters.
func decode(contentType string, body []byte) (string, error) {
	if strings.Contains(contentType, "json") && !strings.Contains(contentType, "charset") {
		contentType = "application/json; charset=utf-8" // RFC 8259 §8.1
	}
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(r, 2*MaxBody))
	}
	if err != nil {
		return "", unusable("The page's characters cannot be read.")
	}
	return strings.TrimPrefix(strings.ToValidUTF8(string(body), "\uFFFD"), "\uFEFF"), nil
}
