package outlet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"
)

// Limits of one container: the bytes that it sends and receives, and the refused hosts that are recorded.
const (
	MaxSent     = 64 << 20
	MaxReceived = 1 << 30
	maxRefused  = 10
)

// server passes on the requests of one container.
type server struct {
	Hosts
	forward httputil.ReverseProxy

	mu      sync.Mutex
	refused []string
}

// Serve passes on the requests that arrive at in, until in ends. It returns the hosts that were refused.
func (h Hosts) Serve(ctx context.Context, in io.Reader, out io.Writer) (refused []string) {
	if h.Dial == nil {
		h.Dial = (&net.Dialer{Timeout: 30 * time.Second}).DialContext
	}
	s := &server{Hosts: h}
	transport := &http.Transport{DialContext: h.Dial, ResponseHeaderTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	s.forward = httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", r.In.Host, r.In.Host
	}, ErrorLog: silent}
	c := &conn{r: io.LimitReader(in, MaxSent), w: &limited{w: out, left: MaxReceived}}
	l := &single{conn: c, ended: make(chan struct{})}
	srv := &http.Server{Handler: s, Protocols: http2(), ErrorLog: silent, ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				_ = l.Close() // it never fails
			}
		}}
	_ = srv.Serve(l) // it ends with the connection
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// ServeHTTP implements [http.Handler].
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect && s.tunnels[withPort(r.Host, "443")]:
		s.tunnel(w, r)
	case (r.Method == http.MethodGet || r.Method == http.MethodHead) && s.plain[withPort(r.Host, "80")]:
		s.forward.ServeHTTP(w, r)
	default:
		s.refuse(r.Host)
		http.Error(w, "Countersign: this host cannot be reached from here.", http.StatusForbidden)
	}
}

func (s *server) refuse(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) < maxRefused && len(host) <= 253+len(":65535") && !slices.Contains(s.refused, host) {
		s.refused = append(s.refused, host)
	}
}

// tunnel connects the request's body and the response to the host.
func (s *server) tunnel(w http.ResponseWriter, r *http.Request) {
	to, err := s.Dial(r.Context(), "tcp", withPort(r.Host, "443"))
	if err != nil {
		http.Error(w, "Countersign: the host does not answer.", http.StatusBadGateway)
		return
	}
	defer func() { _ = to.Close() }() // it may be closed already
	stop := context.AfterFunc(r.Context(), func() { _ = to.Close() })
	defer stop()
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	if flush.Flush() != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, r.Body) // either side may end first
		if tcp, ok := to.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}()
	_, _ = io.Copy(flushing{w, flush}, to)
}

// flushing flushes after each write.
type flushing struct {
	io.Writer
	*http.ResponseController
}

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	return n, errors.Join(err, f.Flush())
}
