package outlet_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/tools/container/outlet"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// way is the proxy in a container, connected to a server with these hosts.
type way struct {
	proxy   *url.URL
	refused chan []string
	close   func()
}

func open(t *testing.T, hosts ...string) way {
	t.Helper()
	allowed, err := outlet.Parse(hosts)
	if err != nil {
		t.Fatal(err)
	}
	asked, ask := io.Pipe()
	answered, answer := io.Pipe()
	w := way{refused: make(chan []string, 1), close: func() {
		_ = ask.Close()
		_ = answer.Close()
	}}
	go func() { w.refused <- allowed.Serve(t.Context(), asked, answer) }()
	handler, err := outlet.Proxy(answered, ask)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		w.close()
	})
	if w.proxy, err = url.Parse(srv.URL); err != nil {
		t.Fatal(err)
	}
	return w
}

// get returns the status and the body of an answer through the proxy.
func (w way) get(t *testing.T, of *httptest.Server, method, address string) string {
	t.Helper()
	transport := of.Client().Transport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(w.proxy)
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return fmt.Sprint(res.StatusCode, " ", len(body), " ", string(body[:min(len(body), 40)]), err)
}

// TestOutletHosts requests allowed and other hosts, with TLS and without.
func TestOutletHosts(t *testing.T) {
	long := strings.Repeat("a long answer, ", 200_000)
	serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			_, _ = io.WriteString(w, long)
			return
		}
		_, _ = io.WriteString(w, r.Method+" "+r.Host+r.URL.String())
	})
	secure, plain, other := httptest.NewTLSServer(serve), httptest.NewServer(serve), httptest.NewTLSServer(serve)
	for _, s := range []*httptest.Server{secure, plain, other} {
		t.Cleanup(s.Close)
	}
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	w := open(t, at(secure), "npm="+plain.URL+"/registry")
	for _, c := range []struct {
		of              *httptest.Server
		method, address string
		want            string
	}{
		{secure, "GET", secure.URL + "/a?b=c", "200 25 GET " + at(secure) + "/a?b=c<nil>"},
		{secure, "GET", secure.URL + "/long", fmt.Sprint("200 ", len(long), " ", long[:40], "<nil>")},
		{plain, "GET", plain.URL + "/a", "200 21 GET " + at(plain) + "/a<nil>"},
		{plain, "GET", plain.URL + "/long", fmt.Sprint("200 ", len(long), " ", long[:40], "<nil>")},
		{plain, "POST", plain.URL + "/a", "403 52 Countersign: this host cannot be reached<nil>"},
		{other, "GET", other.URL, "Forbidden"},
		{plain, "GET", "http://" + at(secure), "403 52 Countersign: this host cannot be reached<nil>"},
		{secure, "GET", "https://" + at(plain), "Forbidden"},
		{plain, "GET", "http://169.254.169.254/x", "403 52 Countersign: this host cannot be reached<nil>"},
	} {
		got := w.get(t, c.of, c.method, c.address)
		if strings.ReplaceAll(got, "\n", "") != c.want {
			t.Errorf("%s %s: %q; want %q", c.method, c.address, got, c.want)
		}
	}
	w.close()
	if got := <-w.refused; !reflect.DeepEqual(got, []string{at(plain), at(other), at(secure), "169.254.169.254"}) {
		t.Errorf("refused: %q", got)
	}
}

// TestOutletHostList checks that an entry that names no host is refused.
func TestOutletHostList(t *testing.T) {
	for _, one := range []string{"", "http://a.example", "a.example/path", "u:p@a.example", "maven=https://a.example",
		"go=ftp://a.example", "a.example?x", "go="} {
		if h, err := outlet.Parse([]string{one}); err == nil {
			t.Errorf("%q: %+v; want an error", one, h)
		}
	}
	h, err := outlet.Parse([]string{"proxy.golang.org", "b.example:8443", "[::1]:9", "go=https://A.example/x"})
	if err != nil || h.Registry("go") != "https://A.example/x" || h.Registry("npm") != "" || len(h.Names()) != 4 {
		t.Errorf("%+v, %v; want h.Registry(\"go\") “https://A.example/x”, h.Registry(\"npm\") empty, len(h.Names()) 4",
			h, err)
	}
}
