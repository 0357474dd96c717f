package embedded_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
)

func token(context.Context) (string, error) { return "t0ken", nil }

func TestHTTPPushAsPubSub(t *testing.T) {
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	sent := queue.Envelope(queue.Message{RunID: run}, "m1", 2, time.Unix(0, 0))
	if err := embedded.HTTPPush(srv.URL+"/resume", token, srv.Client())(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	if got.Method != http.MethodPost || got.URL.Path != "/resume" ||
		got.Header.Get("Authorization") != "Bearer t0ken" ||
		got.Header.Get("Content-Type") != "application/json" || string(body) != string(sent) {
		t.Errorf("got %s %s %v %s", got.Method, got.URL, got.Header, body)
	}
}

func TestHTTPPushStatuses(t *testing.T) {
	for status, acks := range map[int]bool{200: true, 201: true, 202: true, 204: true, 301: false, 307: false,
		400: false, 401: false, 404: false, 429: false, 500: false, 503: false} {
		var elsewhere bool
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				elsewhere = true
				return
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			io.WriteString(w, strings.Repeat("secret ", 100))
		}))
		err := embedded.HTTPPush(srv.URL, token, srv.Client())(t.Context(), nil)
		srv.Close()
		if (err == nil) != acks || elsewhere {
			t.Errorf("%d: %v, redirect followed: %v", status, err, elsewhere)
		}
		if err != nil && (fault.As(err).Code != "push_refused" || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestHTTPPushErrors(t *testing.T) {
	noToken := errors.New("no key")
	for name, c := range map[string]struct {
		url   string
		token func(context.Context) (string, error)
		cause error
	}{
		"no server": {"http://127.0.0.1:1", token, nil},
		"no token":  {"http://127.0.0.1:1", func(context.Context) (string, error) { return "", noToken }, noToken},
		"not a URL": {"http://a b", token, nil},
	} {
		err := embedded.HTTPPush(c.url, c.token, http.DefaultClient)(t.Context(), nil)
		if err == nil || fault.As(err).Class != fault.Tool || (c.cause != nil && !errors.Is(err, c.cause)) ||
			strings.Contains(err.Error(), "t0ken") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
