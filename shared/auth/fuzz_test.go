package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/auth"
	"github.com/countersign-run/countersign/shared/fault"
)

// FuzzAuthorization: whatever stands in the header, nothing panics, every refusal is an AuthError, and the one token
// that is let in is the one that was signed, to the byte.
func FuzzAuthorization(f *testing.F) {
	w := newWorld(f)
	user, push := w.sign(f, w.users, w.userClaims()), w.sign(f, w.pushers, w.pushClaims())
	none := ""
	for _, seed := range []string{
		"", "Bearer ", "Bearer a.b.c", "Bearer ...", "Basic dXNlcjpwYXNz", "Bearer " + user, "bearer " + push, "Bearer " + user + "\n",
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

func refusal(t *testing.T, err error) {
	t.Helper()
	var e *fault.Error
	if err != nil && (!errors.As(err, &e) || e.Class != fault.Auth || strings.TrimSpace(e.Message) == "") {
		t.Errorf("the refusal is %v", err)
	}
}
