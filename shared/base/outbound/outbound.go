// Package outbound has what all calls to other services share: the transport, the limit on the size of a response, and
// the wait that a service asks for.
package outbound

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
)

// Loopback reports whether the host, without port and brackets, is this machine: localhost, or a loopback address.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Secure reports whether a response from the URL can be trusted to come from its host: the scheme is https, or http on
// a loopback address. A URL without a host or with credentials is not secure.
func Secure(u *url.URL) bool {
	return u.Hostname() != "" && u.User == nil &&
		(u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname()))
}

// keptPerHost is the maximum number of idle connections to one host: as many as [http.DefaultTransport] keeps in total.
const keptPerHost = 100

// standard is [http.DefaultTransport] as it was when the program started.
var standard, _ = http.DefaultTransport.(*http.Transport)

// Transport returns a transport with the settings of [http.DefaultTransport] and more idle connections for each host.
// The default keeps 2, so that further requests to a service without HTTP/2 would each open a new connection.
var Transport = sync.OnceValue(func() *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if standard != nil {
		t = standard.Clone()
	}
	t.MaxIdleConnsPerHost = keptPerHost
	return t
})

// Default returns the transport for calls: [Transport], or [http.DefaultTransport] if the program has replaced it, for
// example to trace or record calls.
func Default() http.RoundTripper {
	if t, ok := http.DefaultTransport.(*http.Transport); ok && t == standard {
		return Transport()
	}
	return http.DefaultTransport
}

// Limit returns a transport that sends with base, or with [Default] if base is nil. It reads only the first max bytes
// of each response, as if they were all.
func Limit(base http.RoundTripper, max int64) http.RoundTripper {
	if base == nil {
		base = Default()
	}
	return limited{base, max}
}

type limited struct {
	base http.RoundTripper
	max  int64
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, l.max), res.Body}
	return res, nil
}
