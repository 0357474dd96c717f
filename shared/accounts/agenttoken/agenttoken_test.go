package agenttoken_test

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/agenttoken"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var now = time.Date(2027, 1, 5, 10, 0, 0, 0, time.UTC)

func add(t *testing.T, u *run.User, name string) (string, run.AgentToken) {
	t.Helper()
	token, kept, err := agenttoken.Add(u, name, rand.Reader, now)
	if err != nil {
		t.Fatal(err)
	}
	return token, kept
}

// TestFind checks that a token is found only among its user's tokens, and not if one of its bytes is changed.
func TestFind(t *testing.T) {
	u := &run.User{UID: "auth0|ana@example.com"}
	add(t, u, "first")
	token, kept := add(t, u, "second")
	c, ok := agenttoken.Parse(token)
	if found := c.Find(u); !ok || c.UID != u.UID || found == nil || found.ID != kept.ID || found.Name != "second" {
		t.Errorf("%v of %q, found %+v", ok, c.UID, found)
	}
	for i := range token {
		changed := token[:i] + string(token[i]^1) + token[i+1:]
		if c, ok := agenttoken.Parse(changed); ok && c.Find(u) != nil {
			t.Errorf("it is found with byte %d changed", i)
		}
	}
	bob := &run.User{UID: "bob", Tokens: u.Tokens}
	if c.Find(bob) != nil {
		t.Error("it is another user's")
	}
}

// TestUse checks that a use is recorded at most once in an hour.
func TestUse(t *testing.T) {
	k := &run.AgentToken{}
	for _, c := range []struct {
		after time.Duration
		noted bool
	}{{0, true}, {time.Minute, false}, {time.Hour, true}, {2*time.Hour - 1, false}} {
		if got := agenttoken.Use(k, now.Add(c.after)); got != c.noted {
			t.Errorf("after %v: %v", c.after, got)
		}
	}
}

// FuzzParse checks that every accepted token names a user whose document can be read.
func FuzzParse(f *testing.F) {
	token, _, err := agenttoken.Add(&run.User{UID: "ana"}, "x", rand.Reader, now)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{token, "", agenttoken.Prefix, agenttoken.Prefix + "..",
		agenttoken.Prefix + "Li4vYS9i" + token[strings.Index(token, "."):], strings.Repeat("x", 600)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, ok := agenttoken.Parse(s)
		if !ok {
			return
		}
		path := document.UserPath(c.UID)
		if len(s) > 512 || store.ValidPath(path) != nil || strings.Count(path, "/") != 1 {
			t.Errorf("%q is taken for a token of %q", s, c.UID)
		}
	})
}
