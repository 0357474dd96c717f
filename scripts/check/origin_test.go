package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestOriginForeign makes pages of three other origins use the chat of the local server (testdata/origin.mjs): the
// origin of the agent, another one in ALLOWED_ORIGINS, and one that is not allowed.
func TestOriginForeign(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	allowed, neighbour, stranger := elsewhere(t, server), elsewhere(t, server), elsewhere(t, server)
	server.env = append(penShop(t, allowed), "ALLOWED_ORIGINS="+allowed+","+neighbour)
	server.start()
	browser.Run("testdata/origin.mjs", allowed, nil,
		"API_URL="+server.url, "NEIGHBOUR_URL="+neighbour, "STRANGER_URL="+stranger)
}

// penShop declares the agent of the pages of the origin, and its action there, and returns the settings for them.
func penShop(t *testing.T, origin string) []string {
	agents, actions := t.TempDir(), t.TempDir()
	write(t, filepath.Join(agents, "pens.agent.yaml"), "name: pens\npage: true\norigins: ["+origin+"]\n"+
		"instruction: You help in a shop for pens.\ntools: [action_submitRating]\n")
	write(t, filepath.Join(actions, "plugin.yaml"), "name: pens\noffered: named\nactions:\n"+
		"  - {name: submitRating, action: ./rate.jay-action}\n")
	write(t, filepath.Join(actions, "rate.jay-action"), `name: submitRating
description: Publish a rating of a product, with 1 to 5 stars.
inputSchema:
  type: object
  properties:
    productId: {type: string, title: Pen}
    stars: {type: integer, title: Stars, minimum: 1, maximum: 5}
  required: [productId, stars]
preview:
  title: Rate {productId} with {stars} of 5 stars
  fields: [{field: productId, names: {pen-blue: Blue Pen}}, {field: stars}]
binding: {url: `+origin+`/ratings}
`)
	return []string{"AGENTS=" + agents, "ACTIONS=" + actions, "ACTION_KEY=" + strings.Repeat("0123456789abcdef", 2)}
}

// otherPage is a page of another site, whose assistant is on the local server.
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
  <p id="rated"></p>
  <gemini-chat heading="Ask the pen shop"></gemini-chat>
</main>
`

const otherScript = `
let pens = 0;
const chat = document.querySelector('gemini-chat');
document.querySelector('button').onclick = () => (document.querySelector('output').textContent = ++pens);
chat.getToken = async () => (await (await fetch('/token')).json()).token;
addEventListener('gemini-chat-action', async ({detail: {name, ok}}) => {
  if (name === 'submitRating' && ok) document.querySelector('#rated').textContent = await (await fetch('/ratings')).text();
});
`

// elsewhere serves that page at a separate origin, with a token for its visitor, and returns the origin.
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
	var mu sync.Mutex
	var rated []string
	mux.HandleFunc("POST /ratings", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ProductID string
			Stars     int
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Countersign-Identity") == "" {
			http.Error(w, "not from the server", http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		rated = append(rated, fmt.Sprintf("%s %d", in.ProductID, in.Stars))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"ok":true}`)
	})
	mux.HandleFunc("GET /ratings", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(w, strings.Join(rated, ", "))
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

// tokenOf signs the visitor in, with a request from one server to the other.
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
