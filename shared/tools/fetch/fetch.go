// Package fetch gets one page of the public web for the tool web_fetch. The dialled address decides whether a request
// is allowed (netguard), again for each redirect. No proxy, cookie or credential is used. An HTML page becomes Markdown
// with the text that a reader would see. Text that a page hides with its style sheet, colours or positions is not
// recognised as hidden.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Limits of one page.
const (
	MaxRedirects = 5
	MaxBody      = 2 << 20 // bytes, after decompression
	maxHeader    = 64 << 10
)

// Options change which pages may be fetched, and from where. No operator setting changes them. They are for
// scripts/dev, which serves pages on loopback, and for tests.
type Options struct {
	Guard   netguard.Options // its ports are always 80 and 443
	Roots   *x509.CertPool   // trusted CAs; nil: those of the machine
	Timeout time.Duration    // of one page; zero: [web.FetchTimeout]
}

// Client fetches pages. It is safe for concurrent use.
type Client struct {
	guard   *netguard.Guard
	http    *http.Client
	timeout time.Duration
}

// New returns a Client.
func New(o Options) *Client {
	o.Guard.Ports = []int{80, 443}
	if o.Timeout == 0 {
		o.Timeout = web.FetchTimeout
	}
	guard := netguard.New(o.Guard)
	return &Client{guard, &http.Client{
		Transport: &http.Transport{DialContext: guard.DialContext, DisableKeepAlives: true,
			MaxResponseHeaderBytes: maxHeader, TLSHandshakeTimeout: 10 * time.Second,
			TLSClientConfig: &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, o.Timeout}
}

// Fetch implements [web.Fetcher].
func (c *Client) Fetch(ctx context.Context, address string) (web.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	u, err := web.Address(address)
	if err != nil {
		return web.Page{}, err
	}
	for range MaxRedirects + 1 {
		page, next, err := c.get(ctx, u)
		if err != nil || next == nil {
			return page, err
		}
		u = next
	}
	return web.Page{}, fault.New(fault.Tool, "redirects", "The page redirects more than %d times.", MaxRedirects)
}

// get gets one address. It returns the page, or the address that it redirects to.
func (c *Client) get(ctx context.Context, u *url.URL) (page web.Page, next *url.URL, err error) {
	if err := c.judge(u); err != nil {
		return page, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return page, nil, unreachable(err)
	}
	req.Header.Set("User-Agent", "Countersign")
	req.Header.Set("Accept", "text/html, application/xhtml+xml, text/plain, application/json, */*;q=0.1")
	res, err := c.http.Do(req)
	if err != nil {
		return page, nil, failure(ctx, err)
	}
	defer res.Body.Close()
	if location := res.Header.Get("Location"); res.StatusCode/100 == 3 && location != "" {
		next, err = follow(u, location)
		return page, next, err
	}
	if res.StatusCode != http.StatusOK {
		return page, nil, fault.New(fault.Tool, "status", "The site returned the status %d.", res.StatusCode)
	}
	body, err := read(ctx, res)
	if err != nil {
		return page, nil, err
	}
	page, err = pageOf(ctx, u, res.Header.Get("Content-Type"), body)
	return page, nil, err
}

// follow returns the target of a redirect. A target that is not a web address is a PolicyError, because the caller did
// not choose it.
func follow(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err == nil {
		to, err = web.Address(to.String())
	}
	if err != nil {
		return nil, fault.New(fault.Policy, "redirect_denied",
			"The page redirects to something that is not a web address, so the redirect is not followed.").Because(err)
	}
	return to, nil
}

// judge rejects forbidden addresses by their text. The address that a name resolves to is checked when it is dialled.
func (c *Client) judge(u *url.URL) error {
	host, port := u.Hostname(), portOf(u)
	if !c.guard.PortOpen(host, port) {
		return denied("Only the ports 80 and 443 of a site are used.")
	}
	if c.guard.Refuses(host, port) || ours(host) {
		return denied("The address is of this machine or of a private network, which pages are not read from.")
	}
	return nil
}

func portOf(u *url.URL) int {
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return port
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// inside lists the suffixes of names outside the public internet (RFC 6761, 6762, 8375; ICANN for internal).
var inside = []string{".localhost", ".local", ".localdomain", ".internal", ".home.arpa", ".intranet", ".private",
	".corp", ".home", ".lan"}

// ours reports whether a host name belongs to a machine or a private network: it has a single label, a suffix in
// inside, or a number as its last label, which some resolvers treat as an address.
func ours(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() != ""
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == host || numeric(last) {
		return true
	}
	for _, end := range inside {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// numeric reports whether a label is a number in one of the forms of inet_aton.
func numeric(label string) bool {
	_, err := strconv.ParseUint(label, 0, 64)
	digits := strings.Trim(label, "0123456789") == ""
	return err == nil || digits || strings.HasPrefix(label, "0x")
}

func denied(why string) error {
	e := fault.New(fault.Policy, "address_denied", "%s", why+" Nothing was sent there.")
	e.Field = "url"
	return e
}

func unreachable(err error) error {
	return fault.New(fault.Tool, "unreachable", "The site cannot be reached.").Because(err)
}

// failure returns the error for a request without a response.
func failure(ctx context.Context, err error) error {
	var stopped net.Error
	switch {
	case errors.Is(err, netguard.ErrDenied):
		return denied("The name leads to an address that pages are not read from.")
	case ctx.Err() != nil, errors.As(err, &stopped) && stopped.Timeout():
		return fault.New(fault.Tool, "timeout", "The site took too long to answer.")
	}
	return unreachable(cause(err))
}

// cause returns the error without the address, which may contain private data of the user.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
