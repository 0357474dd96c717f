package main

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
)

// TestLoadTest puts load on a deployment with two users. All runs end, the e-mail that a model requests is rejected,
// and no conversation is left. A failed run makes the command fail.
func TestLoadTest(t *testing.T) {
	w := newDeployment(t, testkit.Unlimited...)
	w.SetModel(testkit.Says("ok"))
	var tokens []string
	for _, uid := range []string{"ana", "bob"} {
		token, err := w.SignIn(t.Context(), uid)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	flags := []string{"-token", strings.Join(tokens, ",")}
	w.prints([]string{"    12  completed", "a run took ", "0 requests were refused", " 0 calls were rejected"},
		append([]string{"loadtest", w.Base, "-runs", "12", "-at-once", "4"}, flags...)...)
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", canary, canary)))
	w.prints([]string{"     2  completed", " 2 calls were rejected"},
		append([]string{"loadtest", w.Base, "-runs", "2", "-at-once", "1"}, flags...)...)
	if n := len(w.Effects()); n != 0 {
		t.Errorf("%d effects; want none", n)
	}
	for _, uid := range []string{"ana", "bob"} {
		if a, err := w.Call(t.Context(), uid, "GET", "/api/agent/threads", ""); err != nil ||
			strings.Contains(string(a.Body), `"threadId"`) {
			t.Errorf("%v, conversations of %s are left: %s", err, uid, a.Body)
		}
	}
	w.SetModel(testkit.Says(""))
	if code, out, _ := exec(t, w.env, append([]string{"loadtest", w.Base, "-runs", "1"}, flags...)...); code != 1 {
		t.Errorf("status %d of a load test with a failed run; want 1:\n%s", code, out)
	}
	for _, args := range [][]string{{"localhost:1"}, {w.Base}, {w.Base, "-token", "x", "-runs", "0"}} {
		if code, out, _ := exec(t, nil, append([]string{"loadtest"}, args...)...); code != 2 {
			t.Errorf("loadtest %q: status %d; want 2:\n%s", args, code, out)
		}
	}
}
