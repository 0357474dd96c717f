package auth_test

import (
	"bufio"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// hostileCase is one line of testdata/hostile.jsonl, the hostile inputs of the categories auth and jwt.
type hostileCase struct {
	ID     string `json:"id"`
	Target string `json:"target"`
	Input  struct {
		Token   json.RawMessage   `json:"token"`
		Query   string            `json:"query"`
		Headers map[string]string `json:"headers"`
	} `json:"input"`
	Expect struct {
		Class string `json:"class"`
		HTTP  int    `json:"http"`
		Note  string `json:"note"`
	} `json:"expect"`
}

// elsewhere lists the cases whose attack comes after authentication. Here, their user only has to be accepted.
var elsewhere = map[string]string{
	"AU-010": "the unknown field uid is shared/api's to refuse",
	"AU-011": "the method is shared/api's to judge",
	"AU-014": "the user is disabled in the store, which shared/api looks at",
}

// linkedAccounts lists the cases about OAuth grants, which shared/accounts/google tests.
var linkedAccounts = map[string]bool{"AU-016": true, "AU-017": true}

func TestHostileCases(t *testing.T) {
	file, err := os.Open("testdata/hostile.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var c hostileCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if linkedAccounts[c.ID] {
			continue
		}
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
	}
}

func (c hostileCase) run(t *testing.T) {
	w := newInternet(t)
	req := httptest.NewRequest(http.MethodPost,
		"/api/agent/run?"+strings.NewReplacer(" ", "%20").Replace(w.fixtures(t, c.Input.Query)), nil)
	for name, value := range c.Input.Headers {
		req.Header[name] = []string{w.fixtures(t, value)}
	}
	if c.Input.Token != nil {
		req.Header["Authorization"] = []string{"Bearer " + w.token(t, c.Target, c.Input.Token)}
	}

	var err error
	want := c.Expect.HTTP
	switch {
	case strings.HasPrefix(c.Target, "push:"):
		err = w.push(t, nil).Check(req)
		if want == http.StatusNoContent { // the resume function's answer to a delivery that it has accepted
			want = http.StatusOK
		}
	default:
		_, err = w.verifier(t, nil).User(req)
		if elsewhere[c.ID] != "" {
			want = http.StatusOK
		}
	}
	if got := status(err); got != want {
		t.Errorf("%s: got %d (%v), want %d", c.Expect.Note, got, err, want)
	}
	for address := range w.requests {
		if !strings.HasPrefix(address, firebase+"/") && !strings.HasPrefix(address, google+"/") {
			t.Errorf("%s: something was fetched from %s", c.Expect.Note, address)
		}
	}
}

// fixtures substitutes real tokens for a case's placeholders.
func (w *internet) fixtures(t *testing.T, s string) string {
	t.Helper()
	user, disabled := w.userClaims(), w.userClaims()
	disabled["sub"] = "disabledUser"
	return strings.NewReplacer(
		"$JWT(userA)", w.sign(t, w.users, user),
		"$JWT(disabledUser)", w.sign(t, w.users, disabled),
		"$PUSHJWT(valid)", w.sign(t, w.pushers, w.pushClaims()),
	).Replace(s)
}

// token evaluates the notation of the cases: {"$jwt"}, {"$rep"}, {"$cat"}.
func (w *internet) token(t *testing.T, target string, raw json.RawMessage) string {
	t.Helper()
	var n struct {
		JWT *struct {
			Header map[string]any `json:"header"`
			Claims map[string]any `json:"claims"`
			Key    string         `json:"key"`
			Sig    *string        `json:"sig"`
		} `json:"$jwt"`
		Rep []any    `json:"$rep"`
		Cat []string `json:"$cat"`
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		t.Fatal(err)
	}
	switch {
	case n.Rep != nil:
		return strings.Repeat(n.Rep[0].(string), int(n.Rep[1].(float64)))
	case n.Cat != nil:
		return w.fixtures(t, strings.Join(n.Cat, ""))
	case n.JWT == nil:
		t.Fatalf("a notation that is not known: %s", raw)
	}
	claims := w.userClaims()
	if strings.HasPrefix(target, "push:") {
		claims = w.pushClaims()
	}
	for name, value := range n.JWT.Claims {
		claims[name] = w.value(value)
		if value == nil {
			delete(claims, name)
		}
	}
	header := maps.Clone(n.JWT.Header)
	if header["kid"] == "k1" {
		header["kid"] = issuer.KeyID(keys()["good"])
	}
	return forge(t, header, claims, keys()[n.JWT.Key], n.JWT.Sig)
}

func (w *internet) value(v any) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "$PROJECT", project)
	case map[string]any:
		if offset, ok := v["$now"].(float64); ok {
			return w.now.Unix() + int64(offset)
		}
	}
	return v
}

// forge returns a token with any header, signed with the key as RS256 unless a signature is passed.
func forge(t testing.TB, header, claims map[string]any, key *rsa.PrivateKey, signature *string) string {
	t.Helper()
	var parts [2][]byte
	for i, part := range []any{header, claims} {
		var err error
		if parts[i], err = json.Marshal(part); err != nil {
			t.Fatal(err)
		}
	}
	return forgeText(t, parts[0], parts[1], key, signature)
}

// forgeText returns a token with any header and any claims, which need not be JSON.
func forgeText(t testing.TB, header, claims []byte, key *rsa.PrivateKey, signature *string) string {
	t.Helper()
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	if signature != nil {
		return signed + "." + *signature
	}
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}
