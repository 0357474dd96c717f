package fakeoauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// Sign returns a token with the content, which begins with the prefix.
func (s *Server) Sign(prefix string, content any) string {
	body, err := json.Marshal(content)
	if err != nil {
		panic(err) // plain values can be encoded
	}
	text := prefix + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(s.mac(text))
}

// Read decodes the content of a token with the prefix. It reports whether Sign made the token; the caller checks the
// content.
func (s *Server) Read(prefix, token string, content any) bool {
	text, sum, _ := strings.Cut(token, ".")
	given, err := base64.RawURLEncoding.DecodeString(sum)
	encoded, prefixed := strings.CutPrefix(text, prefix)
	if err != nil || !prefixed || !hmac.Equal(given, s.mac(text)) {
		return false
	}
	body, err := base64.RawURLEncoding.DecodeString(encoded)
	return err == nil && json.Unmarshal(body, content) == nil
}

func (s *Server) mac(text string) []byte {
	h := hmac.New(sha256.New, s.Key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
