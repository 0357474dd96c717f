package outbound_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/countersign-run/countersign/shared/base/outbound"
)

func TestSecure(t *testing.T) {
	for address, want := range map[string]bool{
		"https://example.com/x":       true,
		"https://127.0.0.1":           true,
		"http://localhost:8080":       true,
		"http://127.9.9.9/":           true,
		"http://[::1]:80/":            true,
		"http://example.com":          false,
		"http://localhost.example":    false,
		"http://127.0.0.1.example":    false,
		"http://0.0.0.0":              false,
		"http://10.0.0.1":             false,
		"https://user@example.com":    false,
		"https://user:pw@example.com": false,
		"https:///path":               false,
		"https://:443":                false,
		"ftp://localhost":             false,
		"example.com":                 false,
		"":                            false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := outbound.Secure(u); got != want {
			t.Errorf("Secure(%q) = %v, want %v", address, got, want)
		}
	}
}

// TestKeptConnections sends requests together twice. The second time, none needs a new connection.
func TestKeptConnections(t *testing.T) {
	const together = 16
	var made atomic.Int64
	arrived := make(chan struct{}, together)
	leave := map[string]chan struct{}{"/first": make(chan struct{}), "/then": make(chan struct{})}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-leave[r.URL.Path]
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	client := &http.Client{Transport: outbound.Transport()}
	for _, path := range []string{"/first", "/then"} {
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				res, err := client.Get(s.URL + path)
				if err == nil {
					err = res.Body.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		for range together {
			<-arrived
		}
		close(leave[path])
		all.Wait()
	}
	if n := made.Load(); n > together {
		t.Errorf("%d connections were made for %d requests at a time", n, together)
	}
}

func TestLimit(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, strings.Repeat("x", 100))
	}))
	defer s.Close()
	for _, base := range []http.RoundTripper{nil, http.DefaultTransport} {
		res, err := (&http.Client{Transport: outbound.Limit(base, 10)}).Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || len(body) != 10 {
			t.Errorf("got %d bytes and %v, want 10", len(body), err)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := (&http.Client{Transport: outbound.Limit(nil, 10)}).Get("http://127.0.0.1:1"); err == nil {
		t.Error("no error where nothing listens")
	}
}

// TestTransportOfProgram replaces the default transport, like a program that traces its calls. All calls use it.
func TestTransportOfProgram(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	if outbound.Default() != http.RoundTripper(outbound.Transport()) {
		t.Error("without one, calls are sent with another transport")
	}
	for _, own := range []http.RoundTripper{&traced{}, &http.Transport{}} {
		http.DefaultTransport = own
		if outbound.Default() != own {
			t.Errorf("calls are not sent with %T", own)
		}
	}
}

type traced struct{ http.RoundTripper }
