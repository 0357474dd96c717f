package netguard

import (
	"net/http"

	"github.com/countersign-run/countersign/shared/base/outbound"
)

// Client returns a client for services that the operator names. They may be in a private network. The client checks
// each address after resolving its name. It follows no redirects, because a request's data is meant for one origin. In
// a deployment, it calls no loopback address.
func Client(deployed bool) *http.Client {
	return client(Options{Private: true, Literal: true, Loopback: !deployed})
}

// Strangers returns a client for services that users name. It calls only public addresses and, outside a deployment,
// addresses that are written as loopback addresses. It follows no redirects.
func Strangers(deployed bool) *http.Client {
	return client(Options{Literal: !deployed})
}

func client(o Options) *http.Client {
	t := outbound.Transport().Clone()
	t.DialContext = New(o).DialContext
	t.MaxResponseHeaderBytes = 64 << 10
	return &http.Client{Transport: t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
