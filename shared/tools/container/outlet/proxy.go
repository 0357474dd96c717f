package outlet

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Proxy returns the HTTP proxy for the programs in a container. It writes their requests to out, and reads the answers
// from in.
func Proxy(in io.Reader, out io.Writer) (http.Handler, error) {
	dial := func(context.Context, string, string) (net.Conn, error) { return &conn{r: in, w: out}, nil }
	transport := &http.Transport{Protocols: http2(), DialContext: dial}
	to, err := transport.NewClientConn(context.Background(), "http", "countersign:80")
	if err != nil {
		return nil, err
	}
	plain := &httputil.ReverseProxy{Transport: to, FlushInterval: -1, Rewrite: func(*httputil.ProxyRequest) {},
		ErrorLog: silent}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodConnect:
			connect(to, w, r)
		case r.URL.IsAbs():
			plain.ServeHTTP(w, r)
		default:
			http.Error(w, "This is a proxy.", http.StatusBadRequest)
		}
	}), nil
}

// connect opens a tunnel.
func connect(to http.RoundTripper, w http.ResponseWriter, r *http.Request) {
	body, sent := io.Pipe()
	defer func() { _ = sent.Close() }() // it never fails
	answer, err := to.RoundTrip((&http.Request{Method: http.MethodConnect, URL: &url.URL{Scheme: "http", Host: r.Host},
		Host: r.Host, Header: http.Header{}, Body: body, ContentLength: -1}).WithContext(r.Context()))
	if err != nil {
		http.Error(w, "The connection to the outside failed.", http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }() // it ends the tunnel
	if answer.StatusCode != http.StatusOK {
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // the client may have disconnected
		return
	}
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // it may be closed already
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, err := io.Copy(sent, buffered)
		_ = sent.CloseWithError(err) // it never fails
	}()
	_, _ = io.Copy(c, answer.Body) // either side may end first
}
