// Package localweb is the web of the local server, for the tools web_fetch and google_web_search: a few documents, and
// pages that try to mislead their reader. It listens on loopback, and only an option of the program permits fetching
// pages from there.
package localweb

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

//go:embed pages
var embedded embed.FS

// Handler serves the documents and two redirects: one to a document, and one to the metadata address of cloud machines.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(pages()))
	mux.Handle("GET /moved", http.RedirectHandler("/harbour.html", http.StatusFound))
	mux.Handle("GET /metadata", http.RedirectHandler("http://169.254.169.254/computeMetadata/v1/", http.StatusFound))
	return mux
}

func pages() fs.FS {
	sub, err := fs.Sub(embedded, "pages")
	if err != nil {
		panic(err) // unreachable: the folder is embedded
	}
	return sub
}

// documents are the results of searches. A document is found by one word in the query.
var documents = []struct{ word, path, title, text string }{
	{"harbour", "harbour.html", "The harbour",
		"The harbour opens at six in the morning and closes at ten in the evening."},
	{"ferry", "ferry.txt", "The ferry's timetable", "The ferry leaves at seven, noon and five."},
	{"prize", "prize.html", "You have won", "A page says that a prize is waiting."},
}

// Searching returns a model that answers searches from the documents at the base, a URL without a trailing slash.
func Searching(model fakegemini.ModelFunc, base string) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		if !r.Search || len(r.Tools) > 0 {
			return model(r)
		}
		return find(strings.ToLower(r.User()), base)
	}
}

func find(query, base string) (t fakegemini.Turn) {
	var said []string
	for _, d := range documents {
		if strings.Contains(query, d.word) {
			said = append(said, d.text)
			t.Sources = append(t.Sources, fakegemini.Source{Title: d.title, URI: base + "/" + d.path})
		}
	}
	if t.Text = strings.Join(said, " "); t.Text == "" {
		t.Text = "Nothing was found. The local web has pages about the harbour, the ferry and a prize."
	}
	return t
}
