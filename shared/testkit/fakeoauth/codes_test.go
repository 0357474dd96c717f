package fakeoauth_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
)

func TestCodeUse(t *testing.T) {
	// RFC 7636, appendix B
	const verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
		"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	now := time.Now()
	var codes fakeoauth.Codes[string]
	for name, try := range map[string]struct {
		verifier string
		later    time.Duration
		ok       bool
	}{"in time": {verifier, 0, true}, "another verifier": {verifier + "x", 0, false},
		"late": {verifier, fakeoauth.CodeLifetime, false}} {
		code := codes.Give("ana", challenge, now)
		if got, ok := codes.Take(code, try.verifier, now.Add(try.later)); ok != try.ok || ok && got != "ana" {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
		if _, ok := codes.Take(code, verifier, now); ok {
			t.Errorf("%s: the code is good twice", name)
		}
	}
}
