package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestAnotherOrigin has pages of two other origins use the chat of the local server (testdata/origin.mjs): one that
// ALLOWED_ORIGINS names, and one that it does not.
func TestAnotherOrigin(t *testing.T) {
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	allowed, stranger := elsewhere(t, server), elsewhere(t, server)
	server.env = []string{"ALLOWED_ORIGINS=" + allowed}
	server.start()
	t.Setenv("API_URL", server.url)
	t.Setenv("STRANGER_URL", stranger)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	browser.Run(ctx, "testdata/origin.mjs", allowed, func() { t.Error("nobody asks for a restart here") })
}

// otherPage is a page of somebody else's, whose assistant is the local server's.
const otherPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The Pen Shop</title>
<link rel="icon" href="data:,">
<script type="module" src="API/widget/gemini-chat.js"></script>
<script type="module" src="/page.js"></script>
<main>
  <h1>Pens</h1>
  <ul data-agent-list="products"><li data-agent-key="pen-blue"><b data-agent-state="name">Blue Pen</b>
    <button data-agent-ref="add-to-cart">Add Blue Pen to cart</button></li></ul>
  <p>In the cart: <output data-agent-state="cart-count">0</output></p>
  <gemini-chat heading="Ask the pen shop"></gemini-chat>
</main>
`

const otherScript = `
let pens = 0;
const chat = document.querySelector('gemini-chat');
document.querySelector('button').onclick = () => (document.querySelector('output').textContent = ++pens);
chat.getToken = async () => (await (await fetch('/token')).json()).token;
`

// elsewhere serves that page at an origin of its own, and the token of its visitor, and returns the origin.
func elsewhere(t *testing.T, server *devServer) string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		policy := "default-src 'none'; img-src data:; script-src 'self' API; connect-src 'self' API; " +
			"require-trusted-types-for 'script'; trusted-types 'none'"
		w.Header().Set("Content-Security-Policy", strings.ReplaceAll(policy, "API", server.url))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, strings.ReplaceAll(otherPage, "API", server.url))
	})
	mux.HandleFunc("GET /page.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		fmt.Fprint(w, otherScript)
	})
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, r *http.Request) {
		token, err := tokenOf(r.Context(), server.url)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintf(w, `{"token":%q}`, token)
	})
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	return site.URL
}

// tokenOf signs the visitor in, from one server to the other.
func tokenOf(ctx context.Context, api string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, api+"/dev/token",
		bytes.NewReader([]byte(`{"uid":"visitor","email":"visitor@example.com"}`)))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var in struct{ Token string }
	return in.Token, json.NewDecoder(res.Body).Decode(&in)
}
