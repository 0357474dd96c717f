package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// canary occurs in every text that the user Ana writes.
const canary = "cinnamon-tern-4411"

// deployment is a running Countersign with a user, and the environment of an operator.
type deployment struct {
	*testkit.Deployment
	t   *testing.T
	env map[string]string
}

// onBothStores runs a test on both stores.
func onBothStores(t *testing.T, test func(*deployment)) {
	t.Run("embedded", func(t *testing.T) { test(newDeployment(t)) })
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		test(newDeployment(t, "STORE=firestore", "QUEUE=embedded",
			"GOOGLE_CLOUD_PROJECT=demo-"+strings.ToLower(rand.Text()[:12])))
	})
}

func newDeployment(t *testing.T, settings ...string) *deployment {
	t.Helper()
	dir := t.TempDir()
	env := map[string]string{"STORE": "embedded", "DATA_DIR": dir}
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		env[name] = value
	}
	w := testkit.Open(t, testkit.Options{Dir: dir, Settings: settings})
	return &deployment{w, t, env}
}

// ops runs the command with the operator's environment.
func (w *deployment) ops(args ...string) (out, errs string, err error) {
	var o, e strings.Builder
	err = execute(w.t.Context(), args, func(name string) string { return w.env[name] }, &o, &e)
	return o.String(), e.String(), err
}

// prints runs a command, which must succeed and print every text in want. It returns the output.
func (w *deployment) prints(want []string, args ...string) string {
	w.t.Helper()
	out, errs, err := w.ops(args...)
	if err != nil {
		w.t.Fatalf("%v: %v\n%s%s", args, err, out, errs)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			w.t.Errorf("%v does not say %q:\n%s", args, text, out)
		}
	}
	return out
}

// mail makes Ana's run request an e-mail. If approve is set, Ana approves it and it is sent.
func (w *deployment) mail(approve bool) (runID string) {
	w.t.Helper()
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", canary, canary)))
	r, err := w.Ask(w.t.Context(), "ana", "mail "+canary)
	if err != nil || len(r.Approvals) != 1 {
		w.t.Fatalf("%v: %s", err, r.Body)
	}
	if !approve {
		return r.RunID
	}
	if _, err := w.Resolve(w.t.Context(), "ana", r.Approvals[0], "approve_once"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Deliver(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return r.RunID
}
