package docker_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/tools/container/docker"
)

// pair is a certificate with its key.
type pair struct {
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	text, pem string // the certificate and the key, in PEM
}

// sign returns a certificate that by has signed. If by is nil, it returns a self-signed CA certificate.
func sign(t *testing.T, serial int64, by *pair) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	self := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		IsCA: by == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if by == nil {
		by = &pair{cert: self, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, self, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &pair{cert, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}
}

// TestRemoteEngine connects over TCP with client certificates. It checks that the connection fails if the certificate
// of either side is from another CA.
func TestRemoteEngine(t *testing.T) {
	ca, stranger := sign(t, 1, nil), sign(t, 2, nil)
	own, server, theirs := sign(t, 3, ca), sign(t, 4, ca), sign(t, 5, stranger)
	known := x509.NewCertPool()
	known.AddCert(ca.cert)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
	}))
	srv.Config.ErrorLog = nil
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known, MinVersion: tls.VersionTLS12,
		Certificates: []tls.Certificate{{Certificate: [][]byte{server.cert.Raw}, PrivateKey: server.key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	host := strings.Replace(srv.URL, "https:", "tcp:", 1)
	dir := t.TempDir()
	for name, text := range map[string]string{"ca.pem": ca.text, "cert.pem": own.text, "key.pem": own.pem} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		config docker.Config
		ok     bool
	}{
		"by files":                 {docker.Config{CertPath: dir}, true},
		"by a text":                {docker.Config{Certs: ca.text + own.text + own.pem}, true},
		"in another order":         {docker.Config{Certs: own.pem + own.text + "and\n" + ca.text}, true},
		"another CA's client":      {docker.Config{Certs: ca.text + theirs.text + theirs.pem}, false},
		"a server of another CA's": {docker.Config{Certs: stranger.text + own.text + own.pem}, false},
	} {
		tt.config.Host = host
		e, err := docker.Open(tt.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := e.Ping(t.Context()); (err == nil) != tt.ok {
			t.Errorf("%s: %v; want (err == nil) %v", name, err, tt.ok)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, text := range map[string]string{"nothing": "", "no text of that kind": "secret-CANARY",
		"no CA": own.text + own.pem, "no key": ca.text + own.text, "another's key": ca.text + own.text + theirs.pem} {
		if _, err := docker.Open(docker.Config{Host: host, Certs: text}); err == nil ||
			strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
