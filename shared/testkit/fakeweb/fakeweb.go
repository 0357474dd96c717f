// Package fakeweb simulates the public internet for the tool web_fetch: a test defines the names, and one handler
// serves every public address, with and without TLS.
package fakeweb

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/fakedns"
	"github.com/countersign-run/countersign/shared/tools/fetch"
)

// Public is a public address for the names of a test.
const Public = "93.184.216.34"

// Web is a simulated internet.
type Web struct {
	resolver *net.Resolver
	roots    *x509.CertPool
	servers  map[string]net.Listener // by port
	closers  []func() error

	mu      sync.Mutex
	reached []string
}

// New returns a Web for a test.
func New(t testing.TB, names map[string][]string, h http.Handler) *Web {
	t.Helper()
	w, err := Open(names, h)
	return cleanup.Close(t, w, err)
}

// Open returns a Web, and needs no test. The names are those of [fakedns.Resolver]. h answers at the ports 80 and 443
// of every address.
func Open(names map[string][]string, h http.Handler) (*Web, error) {
	resolver, end, err := fakedns.Open(names)
	if err != nil {
		return nil, err
	}
	w := &Web{resolver: resolver, servers: map[string]net.Listener{},
		closers: []func() error{func() error { end(); return nil }}}
	cert, err := w.certificate(names)
	if err == nil {
		err = errors.Join(w.serve("80", h, nil), w.serve("443", h, &tls.Config{Certificates: []tls.Certificate{cert}}))
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// certificate creates one certificate for all names.
func (w *Web) certificate(names map[string][]string) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	for name := range names {
		of.DNSNames = append(of.DNSNames, strings.TrimSuffix(name, "."))
	}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		return c, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return c, err
	}
	w.roots = x509.NewCertPool()
	w.roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func (w *Web) serve(port string, h http.Handler, t *tls.Config) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, TLSConfig: t,
		ErrorLog: log.New(io.Discard, "", 0)} // clients that disconnect are not reported
	w.servers[port] = ln
	if t != nil {
		ln = tls.NewListener(ln, t)
	}
	go func() { _ = s.Serve(ln) }() // it ends with Close
	w.closers = append(w.closers, s.Close)
	return nil
}

// Options returns the options with which a client can fetch only from here.
func (w *Web) Options() fetch.Options {
	return fetch.Options{Roots: w.roots, Guard: netguard.Options{Resolver: w.resolver, Connect: w.connect}}
}

func (w *Web) connect(ctx context.Context, _, address string) (net.Conn, error) {
	w.mu.Lock()
	w.reached = append(w.reached, address)
	w.mu.Unlock()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ln := w.servers[port]
	if ln == nil {
		return nil, errors.New("fakeweb: no server listens on the port")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
}

// Reached returns the addresses, with their ports, to which a client connected.
func (w *Web) Reached() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reached)
}

// Close ends the servers.
func (w *Web) Close() error {
	var errs []error
	for _, end := range w.closers {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
