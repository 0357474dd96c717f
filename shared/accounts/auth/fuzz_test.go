package auth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/accounts/auth"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// FuzzAuthorization checks that no header makes the verifier panic, that every refusal is an AuthError, and that the
// only token accepted is the one that was signed, byte for byte.
func FuzzAuthorization(f *testing.F) {
	w := newInternet(f)
	user, push := w.sign(f, w.users, w.userClaims()), w.sign(f, w.pushers, w.pushClaims())
	none := ""
	for _, seed := range []string{
		"", "Bearer ", "Bearer a.b.c", "Bearer ...", "Basic dXNlcjpwYXNz", "Bearer " + user, "bearer " + push,
		"Bearer " + user + "\n",
		"Bearer " + forge(f, claimSet{"alg": "none"}, w.userClaims(), nil, &none),
		"Bearer " + forge(f, claimSet{"alg": "RS256", "kid": "x"}, w.pushClaims(), nil, &none),
		"Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6ImlhcDEifQ.e30.AAAA", `Bearer {"payload":"e30","signatures":[]}`,
	} {
		f.Add(seed)
	}
	users, pushers := w.verifier(f, nil), w.push(f, nil)
	platform := w.push(f, func(c *auth.PushConfig) { c.VerifiedBy, c.OnCloudRun = auth.ByPlatform, true })
	f.Fuzz(func(t *testing.T, header string) {
		token := header[min(len("Bearer "), len(header)):]
		if id, err := users.User(request(header)); err == nil && (token != user || id.UID != "userA") {
			t.Errorf("%q is let in as %+v", header, id)
		} else {
			refusal(t, err)
		}
		err := pushers.Check(request(header))
		if err == nil && token != push {
			t.Errorf("%q is let in as a push", header)
		}
		refusal(t, err)
		refusal(t, platform.Check(request(header)))
	})
}

// FuzzClaims checks that a token with a valid signature is accepted only if the standard library also reads a user in
// its claims, for this service and now, and then as that user.
func FuzzClaims(f *testing.F) {
	w := newInternet(f)
	at := w.now.Unix()
	for _, change := range []claimSet{
		{}, {"sub": 1}, {"aud": []string{project, "other"}, "azp": project}, {"exp": at + 86461}, {"exp": 1e300},
		{"iat": -1.5}, {"nbf": at + 60},
		{"email": "A@X.GSERVICEACCOUNT.COM"}, {"firebase": claimSet{"tenant": "t"}}, {"email_verified": "true"},
		{"sub": strings.Repeat("u", 129)},
	} {
		claims := w.userClaims()
		maps.Copy(claims, change)
		seed, err := json.Marshal(claims)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(seed))
	}
	whole := fmt.Sprintf(`"iss":%q,"aud":%q,"iat":%d,"exp":%d`, firebase, project, at, at+60)
	for _, seed := range []string{
		"", "null", "{}", "[]", `{` + whole + `,"sub":"userA","Sub":"userB"}`,
		`{` + whole + `,"sub":"userA","sub":"userB"}`, `{` + whole + `,"s\u0075b":"userA"}`,
		`{` + whole + `,"sub":"userA"}{}`, "\ufeff{" + whole + `,"sub":"userA"}`, `{` + whole + `,"sub":"user\ud800"}`,
		`{` + whole + `,"ſub":"userA"}`,
	} {
		f.Add(seed)
	}
	users, good := w.verifier(f, nil), keys()["good"]
	header := fmt.Appendf(nil, `{"alg":"RS256","kid":%q}`, issuer.KeyID(good))
	f.Fuzz(func(t *testing.T, claims string) {
		id, err := users.User(request("Bearer " + forgeText(t, header, []byte(claims), good, nil)))
		if err != nil {
			refusal(t, err)
			if id != (auth.Identity{}) {
				t.Errorf("an identity comes with the error: %+v", id)
			}
			return
		}
		var read map[string]any
		if err := json.Unmarshal([]byte(claims), &read); err != nil {
			t.Fatalf("%q is let in as %+v: %v", claims, id, err)
		}
		exp, _ := read["exp"].(float64)
		iat, dated := read["iat"].(float64)
		now := float64(at)
		if read["iss"] != firebase || read["sub"] != id.UID || id.UID == "" || !forUs(read["aud"]) || !dated ||
			exp <= now || exp > now+86460 || iat > now+60 {
			t.Fatalf("%q is let in as %+v", claims, id)
		}
		if email, _ := read["email"].(string); id.Email != email ||
			id.EmailVerified != (read["email_verified"] == true) || id.Issuer != firebase {
			t.Fatalf("%q is let in as %+v", claims, id)
		}
	})
}

// forUs reports whether an aud claim, in either form, names this service.
func forUs(aud any) bool {
	if list, ok := aud.([]any); ok {
		return slices.Contains(list, any(project))
	}
	return aud == project
}

func refusal(t *testing.T, err error) {
	t.Helper()
	var e *fault.Error
	if err != nil && (!errors.As(err, &e) || e.Class != fault.Auth || strings.TrimSpace(e.Message) == "") {
		t.Errorf("the refusal is %v", err)
	}
}
