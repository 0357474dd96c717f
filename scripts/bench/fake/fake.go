// Package fake is the Gemini of all contestants. It answers at once, and refuses what the service refuses.
package fake

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Handler serves both generations of Gemini, by the rules of the model that a request names.
func Handler(reply fakegemini.ModelFunc) http.Handler {
	newest, older := fakegemini.New(reply), fakegemini.New(reply)
	older.Generation = fakegemini.Gemini2 // whose rules each framework keeps
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.URL.Path, "/gemini-2") {
			newest.ServeHTTP(w, r)
			return
		}
		if err := knownRoles(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		older.ServeHTTP(w, r)
	})
}

// knownRoles changes roles that some frameworks invent to the user's role. The fake is stricter than the service here.
func knownRoles(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, fakegemini.MaxBody))
	for _, role := range []string{"tool", "function"} {
		body = bytes.ReplaceAll(body, []byte(`"role":"`+role+`"`), []byte(`"role":"user"`))
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return err
}
