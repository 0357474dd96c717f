package docker

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/docker/go-connections/tlsconfig"
)

// certificates returns the TLS configuration for an engine at a tcp address, from files or from one text.
func certificates(c Config) (*tls.Config, error) {
	if c.Certs != "" {
		return fromText(c.Certs)
	}
	file := func(name string) string { return filepath.Join(c.CertPath, name) }
	return tlsconfig.Client(tlsconfig.Options{CAFile: file("ca.pem"), CertFile: file("cert.pem"),
		KeyFile: file("key.pem"), ExclusiveRootPools: true, MinVersion: tls.VersionTLS12})
}

// errCerts does not quote the input, which contains a private key.
var errCerts = errors.New("required in PEM: a CA certificate, a client certificate and its private key")

// fromText recognises the parts of the text: certificates of CAs, certificates of the client, and the client's key.
func fromText(text string) (*tls.Config, error) {
	roots := x509.NewCertPool()
	var own, key []byte
	authorities := 0
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			key = append(key, pem.EncodeToMemory(block)...)
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			return nil, errCerts
		case cert.IsCA:
			roots.AddCert(cert)
			authorities++
		default:
			own = append(own, pem.EncodeToMemory(block)...)
		}
	}
	pair, err := tls.X509KeyPair(own, key)
	if err != nil || authorities == 0 {
		return nil, fmt.Errorf("docker: %w", errCerts)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
