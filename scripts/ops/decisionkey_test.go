package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/testkit/fakekms"
)

// TestRotateDecisionKey prints the first public key, adds a version to another one, and retires the other one.
func TestRotateDecisionKey(t *testing.T) {
	service, err := fakekms.Start(bytes.Repeat([]byte("n"), 32))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	text := func(seed string) string {
		k, err := decision.NewKey([]byte(strings.Repeat(seed, 32)))
		if err != nil {
			t.Fatal(err)
		}
		line, err := decision.FormatKey(k.Public())
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	fresh, old := text("n"), text("o")
	for name, c := range map[string]struct {
		version, held string
		retire        bool
		want, wrong   string
	}{
		"the first":       {fakekms.Version, "", false, fresh, ""},
		"a new version":   {fakekms.Version, old, false, fresh + "," + old, ""},
		"it is listed":    {fakekms.Version, old + "," + fresh, false, fresh + "," + old, ""},
		"retired":         {fakekms.Version, fresh + "," + old, true, fresh, ""},
		"retired early":   {fakekms.Version, old, true, "", "rotate first"},
		"no version":      {"", old, false, "", "DECISION_KMS_KEY is not set"},
		"another version": {strings.TrimSuffix(fakekms.Version, "1") + "2", old, false, "", "no such key"},
		"damaged":         {fakekms.Version, "CANARY", false, "", "DECISION_PUBLIC_KEYS"},
	} {
		env := map[string]string{"DECISION_KMS_KEY": c.version, "DECISION_PUBLIC_KEYS": c.held}
		got, err := signingKeys["decision-key"].next(t.Context(), func(n string) string { return env[n] }, c.retire,
			service.Client()...)
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q %v, want %q %q", name, got, err, c.want, c.wrong)
		}
	}
}
