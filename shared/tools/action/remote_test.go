package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

var (
	key = []byte("0123456789abcdef0123456789abcdef")
	now = time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)
)

// boundTo returns the tool of an action that is bound to url.
func boundTo(t *testing.T, url, more string) *tool.Tool {
	t.Helper()
	text := strings.Replace(whole, "https://shop.example/search", url, 1) + more
	_, m, err := ParseMetadata("search.jay-action", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New([]Action{{Name: "search", Metadata: m}},
		Options{Keys: [][]byte{key}, Issuer: "https://agent.example", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return r.Tool("search")
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

var aCall = tool.Call{UID: "ana", ActionID: "action-1", Args: json.RawMessage(`{"query":"CANARY"}`)}

const outputOK = `outputSchema:
  type: object
  required: [ok]
  properties: {ok: {type: boolean}}
`

// TestBusyEndpointRetryAfter checks that an error has the wait that a busy endpoint asks for.
func TestBusyEndpointRetryAfter(t *testing.T) {
	for asked, want := range map[string]time.Duration{"600": 10 * time.Minute,
		now.Add(time.Hour).Format(http.TimeFormat): time.Hour, "": 0} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil // the time then counts from this machine's clock
			w.Header().Set("Retry-After", asked)
			w.WriteHeader(http.StatusTooManyRequests)
		})
		_, err := boundTo(t, url, outputOK).Execute(t.Context(), aCall)
		if got := fault.As(err).RetryAfter; got != want || !tool.IsTransient(err) {
			t.Errorf("%q: %v, after %s", asked, err, got)
		}
	}
}

// TestOutcomes lists the answers of an endpoint, each with the outcome that it proves. The endpoint that does not
// answer ends the call itself, because a time limit could end the call before it reaches the endpoint.
func TestOutcomes(t *testing.T) {
	answer := func(status int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const ok, unread, clean, again, unclear = "done", "done, unread", "failed", "transient", "unanswered"
	leave := make(chan context.CancelFunc, 1) // ends the current call
	tests := map[string]struct {
		h                        http.HandlerFunc
		effect, idempotent, read string // the known outcome, by kind of action
	}{
		"done": {answer(200, "", `{"ok":true}`), ok, ok, ok},
		"made": {answer(201, "Content-Type: application/problem+json; charset=utf-8", `{"ok":true}`), ok,
			ok, ok},
		"bad request":     {answer(400, "", `{"error":"CANARY"}`), clean, clean, clean},
		"not allowed":     {answer(403, "", `CANARY`), clean, clean, clean},
		"timed out":       {answer(408, "", `CANARY`), unclear, unclear, clean},
		"conflict":        {answer(409, "", ``), unclear, unclear, clean},
		"too early":       {answer(425, "", ``), unclear, unclear, clean},
		"hung up":         {answer(499, "", ``), unclear, unclear, clean},
		"refused as said": {answer(422, "", ``), clean, clean, clean},
		"too many":        {answer(429, "", ``), again, again, again},
		"busy until":      {answer(503, "Retry-After: 1", ``), again, again, again},
		"busy":            {answer(503, "", ``), unclear, unclear, again},
		"failed":          {answer(500, "", `CANARY`), unclear, unclear, clean},
		"gateway":         {answer(502, "", ``), unclear, unclear, clean},
		"redirect":        {answer(302, "Location: https://evil.example/", ``), unclear, unclear, clean},
		"permanent":       {answer(308, "Location: https://evil.example/", ``), unclear, unclear, clean},
		"a page":          {answer(200, "Content-Type: text/html", `{"ok":true}`), unread, unread, clean},
		"broken JSON":     {answer(200, "", `{"ok":`), unread, unread, clean},
		"too large": {answer(200, "", `{"ok":true,"x":"`+strings.Repeat("x", 70<<10)+`"}`), unread, unread,
			clean},
		"another schema":   {answer(200, "", `{"ok":"CANARY"}`), unread, unread, clean},
		"nothing, not fit": {answer(204, "", ``), unread, unread, clean},
		"one field more":   {answer(200, "", `{"ok":true,"more":1}`), ok, ok, ok},
		"a lost connection": {func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = c.Close()
			}
		}, unclear, unclear, clean},
		"no answer in time": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			(<-leave)()
			<-r.Context().Done()
		}, unclear, unclear, clean},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"ok":true}`)
		}, unread, unread, clean},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url := serve(t, tt.h)
			for more, want := range map[string]string{"": tt.effect, "  idempotent: true\n": tt.idempotent,
				"  maxResponseBytes: 65536\nsideEffect: false\n": tt.read} {
				ctx, cancel := context.WithCancel(t.Context())
				leave <- cancel
				result, err := boundTo(t, url, "  timeout: 30s\n"+more+outputOK).Execute(ctx, aCall)
				if cancel(); len(leave) > 0 {
					<-leave
				}
				got := known(err)
				if got == ok && strings.HasPrefix(string(result),
					`{"answer":"It was done. The answer could not be read: `) {
					got = unread
				}
				if got != want {
					t.Errorf("%q: %s (%v, %s); want %s", more, got, err, result, want)
				}
				if got == ok && !strings.HasPrefix(string(result), `{"ok":true`) ||
					strings.Contains(string(result), "CANARY") {
					t.Errorf("the result is %s", result)
				}
				if err != nil && strings.Contains(err.Error()+fault.As(err).Error(), "CANARY") {
					t.Errorf("the endpoint's answer, or an argument, is told: %v", err)
				}
			}
		})
	}
}

func known(err error) string {
	switch {
	case err == nil:
		return "done"
	case tool.IsUnanswered(err):
		return "unanswered"
	case tool.IsAmbiguous(err):
		return "ambiguous"
	case tool.IsTransient(err):
		return "transient"
	case fault.As(err).Class == fault.Tool && fault.As(err).Code != fault.CodeInternal:
		return "failed"
	}
	return fmt.Sprint(err)
}

func TestRemoteWithoutListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // accepts connections and never speaks TLS
	const refused = "127.0.0.1:1"
	for _, url := range []string{"http://" + refused, "https://" + refused, "https://" + l.Addr().String()} {
		_, err := boundTo(t, url+"/x", "  timeout: 200ms\n").Execute(t.Context(), aCall)
		if known(err) != "transient" || strings.Contains(fmt.Sprint(err, fault.As(err).Err), "CANARY") {
			t.Errorf("%s: %v; want a transient error, for nothing was sent", url, err)
		}
	}
}

// TestRemoteAddressRefused declares endpoints at addresses that cannot be a service of the operator. Nothing is sent,
// and the call is not repeated.
func TestRemoteAddressRefused(t *testing.T) {
	for _, url := range []string{"https://169.254.169.254/x", "https://[fe80::1]/x", "https://[64:ff9b::a9fe:a9fe]/x",
		"https://0.0.0.0/x", "https://224.0.0.1/x"} {
		_, err := boundTo(t, url, outputOK).Execute(t.Context(), aCall)
		if !fault.Is(err, fault.Tool, "address_denied") || tool.IsTransient(err) || tool.IsAmbiguous(err) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestRemoteNoSilentRetry checks that a request is not repeated when a kept connection breaks. With an Idempotency-Key,
// net/http would resend it by itself, and the effect would happen twice.
func TestRemoteNoSilentRetry(t *testing.T) {
	var n atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	})
	tl := boundTo(t, url, "")
	if _, err := tl.Execute(t.Context(), aCall); err != nil {
		t.Fatal(err)
	}
	if _, err := tl.Execute(t.Context(), aCall); known(err) != "unanswered" || n.Load() != 2 {
		t.Errorf("%v after %d requests; want an unclear outcome after 2", err, n.Load())
	}
}

func TestRemoteRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	})
	if _, err := boundTo(t, url+"/api/cart", "").Execute(t.Context(), aCall); err != nil {
		t.Fatal(err)
	}
	if got.Method != "POST" || got.URL.String() != "/api/cart" || string(body) != string(aCall.Args) ||
		got.Header.Get("Idempotency-Key") != "action-1" || got.ContentLength != int64(len(body)) {
		t.Errorf("the request is %s %s %s %v", got.Method, got.URL, body, got.Header)
	}
	id := claims(t, got.Header.Get(Header))
	if id.Issuer != "https://agent.example" || id.Subject != "ana" || id.ID != "action-1" || id.Action != "search" ||
		len(id.Audience) != 1 || id.Audience[0] != url {
		t.Errorf("the identity is %+v", id)
	}
	if !id.IssuedAt.Time().Equal(now) || !id.Expiry.Time().Equal(now.Add(time.Minute)) {
		t.Errorf("it is good from %v to %v", id.IssuedAt.Time(), id.Expiry.Time())
	}
	if id.BodyHash != sha(string(body)) {
		t.Errorf("the body's hash is %s", id.BodyHash)
	}
}

// TestRemoteDerivedKey checks that a call to an endpoint with its own key is signed with that key, and not with the
// operator's.
func TestRemoteDerivedKey(t *testing.T) {
	var header string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Get(Header)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	})
	text := strings.NewReplacer("https://shop.example/search", url, "binding:",
		"binding:\n  key: derived").Replace(whole)
	_, m, err := ParseMetadata("search.jay-action", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a := Action{Name: "search", Metadata: m}
	r, err := New([]Action{a},
		Options{Keys: [][]byte{key, []byte("another-another-another-another-")}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tool("search").Execute(t.Context(), aCall); err != nil {
		t.Fatal(err)
	}
	own, err := DeriveKey(key, a)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := jwt.ParseSigned(header, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		t.Fatal(err)
	}
	if err := signed.Claims([]byte(own), &identity{}); err != nil {
		t.Errorf("its own key: %v", err)
	}
	if err := signed.Claims(key, &identity{}); err == nil {
		t.Error("the operator's key verifies it")
	}
}

// TestRemoteQuery checks that the arguments of a GET become the query, whatever they contain.
func TestRemoteQuery(t *testing.T) {
	var got *http.Request
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	})
	tl := boundTo(t, url+"/api/search", "  method: GET\nsideEffect: false\n")
	call := aCall
	call.Args = json.RawMessage(`{"query":"a&b=c#/../x?\n","n":1,"yes":true,"list":["a",2],"deep":{"x":"y"}}`)
	if _, err := tl.Execute(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	const want = "deep=%7B%22x%22%3A%22y%22%7D&list=a&list=2&n=1&query=a%26b%3Dc%23%2F..%2Fx%3F%0A&yes=true"
	if got.URL.Path != "/api/search" || got.URL.RawQuery != want {
		t.Errorf("the address is %s", got.URL)
	}
	if id := claims(t, got.Header.Get(Header)); id.BodyHash != sha(want) {
		t.Errorf("the hash is %s", id.BodyHash)
	}
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func claims(t *testing.T, token string) identity {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		t.Fatal(err)
	}
	var id identity
	if err := parsed.Claims(key, &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestReconcile checks that a request to an idempotent endpoint may be repeated, and that the outcome at any other
// endpoint is unknown.
func TestReconcile(t *testing.T) {
	for more, want := range map[string]tool.Verdict{"": tool.Unknown, "  idempotent: true\n": tool.NotDone} {
		o, err := boundTo(t, "https://shop.example/x", more).Reconcile(context.Background(), aCall)
		if err != nil || o.Verdict != want || (o.Reason == "") != (want == tool.NotDone) {
			t.Errorf("%q: %+v, %v", more, o, err)
		}
	}
}
