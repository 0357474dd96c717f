package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
)

const maxToken = 8 << 10 // bytes; tokens of Google and Firebase have 1 to 2 KiB

// Bearer returns the one token of the Authorization header (RFC 6750 §2.1). It does not check the token's form. The
// error is AuthError unauthenticated.
func Bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", unauthenticated("Please sign in: an Authorization header with a bearer token is required.")
	}
	if len(values) > 1 {
		return "", unauthenticated("There is more than one Authorization header.")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", unauthenticated("The Authorization header must hold a bearer token: Bearer <ID token>.")
	}
	return token, nil
}

// checkLength returns an AuthError if the token is too long.
func checkLength(token string) error {
	if len(token) > maxToken {
		return unauthenticated("The bearer token is too long.")
	}
	return nil
}

// split splits a token in compact form (RFC 7515 §3.1) and decodes its parts. It is stricter than the parsers that
// follow. Those skip newlines, accept several spellings of the same bytes, and also accept a JSON form with many
// signatures.
func split(token string) (header, payload, signature []byte, ok bool) {
	if strings.Count(token, ".") != 2 || strings.ContainsAny(token, "\r\n") {
		return nil, nil, nil, false
	}
	var parts [3][]byte
	for n, part := range strings.Split(token, ".") {
		decoded, err := base64.RawURLEncoding.Strict().DecodeString(part)
		if err != nil {
			return nil, nil, nil, false
		}
		parts[n] = decoded
	}
	return parts[0], parts[1], parts[2], true
}
