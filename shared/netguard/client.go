package netguard

import (
	"net/http"

	"github.com/countersign-run/countersign/shared/outbound"
)

// Client returns a client for services that the operator names: they may be in a private network, and what their names
// resolve to is still judged when it is dialled. It follows no redirect: what a request carries is for one origin, and
// a redirect may change it. Where it is deployed, no name that resolves to a loopback address is called.
func Client(deployed bool) *http.Client {
	return client(Options{Private: true, Literal: true, Loopback: !deployed})
}

// Strangers returns a client for services that users name: it calls public addresses alone, and where it is not
// deployed loopback ones that are named as such. It follows no redirect either.
func Strangers(deployed bool) *http.Client {
	return client(Options{Literal: true, Loopback: !deployed})
}

func client(o Options) *http.Client {
	t := outbound.Transport().Clone()
	t.DialContext = New(o).DialContext
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
