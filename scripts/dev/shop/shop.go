// Package shop is the example shop of the local server: an ordinary web page that works without an agent, with
// attributes for the chat widget (data-agent-…), and three declared actions on its server. It shows that a page needs
// only the attributes, one script tag and <gemini-chat>.
package shop

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"

	"github.com/countersign-run/countersign/scripts/dev/static"
)

//go:embed site
var site embed.FS

var files = static.Files{FS: site, Policy: static.Policy}

var page = template.Must(template.ParseFS(site, "site/index.html"))

// Handler returns a handler for the page at /shop and its files below.
func (s *Shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /shop", s.index)
	mux.HandleFunc("GET /shop/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/shop", http.StatusMovedPermanently)
	})
	mux.HandleFunc("GET /shop/ratings", s.allRatings)
	mux.HandleFunc("GET /shop/{file...}", func(w http.ResponseWriter, r *http.Request) {
		files.ServeFile(w, r, "site/"+r.PathValue("file"))
	})
	return mux
}

// shown is a product on the page, with its ratings as text. Products that do not match the search are hidden rather
// than left out, because the cart needs their names.
type shown struct {
	Product
	Rating string
	Hidden bool
}

func (s *Shop) index(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get("q") // without scripts, the search is a form
	if len(query) > 200 {
		http.Error(w, "q takes at most 200 characters", http.StatusBadRequest)
		return
	}
	found := search(query)
	var all []shown
	for _, p := range products {
		all = append(all, shown{p, s.rating(p.ID), !slices.Contains(found, p)})
	}
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{"Products": all, "Found": len(found), "Query": query,
		"Agent": s.Agent}); err != nil {
		http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
		return
	}
	files.Headers(w.Header(), "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = b.WriteTo(w) // a disconnected client is not an error
}

// allRatings serves the ratings as text, by product, for an open page.
func (s *Shop) allRatings(w http.ResponseWriter, _ *http.Request) {
	all := map[string]string{}
	for _, p := range products {
		all[p.ID] = s.rating(p.ID)
	}
	files.Headers(w.Header(), "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(all) // a disconnected client is not an error
}

func (s *Shop) rating(id string) string {
	stars, n := s.Stars(id)
	switch n {
	case 0:
		return "not rated yet"
	case 1:
		return fmt.Sprintf("%.1f of 5 stars, 1 rating", stars)
	}
	return fmt.Sprintf("%.1f of 5 stars, %d ratings", stars, n)
}
