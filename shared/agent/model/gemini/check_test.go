package gemini_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

func saying(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func TestCheck(t *testing.T) {
	const badKey = `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT",
		"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`
	for name, c := range map[string]struct {
		handler http.Handler
		want    string
	}{
		"accepted": {fakegemini.New(nil), ""},
		"bad key":  {saying(400, badKey), "Gemini did not accept the key of this service."},
		"forbidden": {saying(403, fakegemini.ErrorBody(403, "no")),
			"Gemini did not accept the key or the account of this service."},
		"unknown model": {saying(404, fakegemini.ErrorBody(404, "no")),
			"Gemini does not know the model that this service asks for, or the address is wrong."},
		"overloaded":  {saying(503, "down"), "Gemini is overloaded or out of order. Please try again in a moment."},
		"other shape": {saying(200, "null"), "The model's answer could not be read."},
		"no JSON":     {saying(200, "<html>"), "The model's answer could not be read."},
	} {
		t.Run(name, func(t *testing.T) {
			err := newRig(t, c.handler, nil).Check(t.Context())
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("vertex", func(t *testing.T) {
		if err := newRig(t, fakegemini.New(nil),
			func(c *gemini.Config) { c.VertexProject = "p" }).Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
