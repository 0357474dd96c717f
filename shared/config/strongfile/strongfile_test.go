package strongfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
	"github.com/countersign-run/countersign/shared/config/strongfile"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const whole = `
alwaysAllow: true
planGrants: true
site: example.com
calls:
  - tool: create_page
  - class: destructive
  - recipientsOutside: [example.com, "*.example.com"]
  - tool: pay_invoice
    amount: {at: /total/value, above: 1000}
`

func TestWholeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "strong.yaml")
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := strongfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !f.Rules.Always || !f.Rules.Grants || f.Site != "example.com" || len(f.Rules.Calls) != 4 {
		t.Fatalf("%+v", f)
	}
	for _, c := range []struct {
		call passkey.Call
		want bool
	}{
		{passkey.Call{Tool: "create_page"}, true},
		{passkey.Call{Tool: "other", Class: tool.ClassDestructive}, true},
		{passkey.Call{Tool: "send_email", Targets: tool.Addresses([]string{"bob@mail.example.com"})}, false},
		{passkey.Call{Tool: "send_email", Targets: tool.Addresses([]string{"bob@example.org"})}, true},
		{passkey.Call{Tool: "pay_invoice", Args: []byte(`{"total":{"value":1000}}`)}, false},
		{passkey.Call{Tool: "pay_invoice", Args: []byte(`{"total":{"value":1000.5}}`)}, true},
	} {
		if got := f.Rules.Need(c.call); got != c.want {
			t.Errorf("%+v: %t, want %t", c.call, got, c.want)
		}
	}
}

// TestMistakes checks that each mistake is named with its line.
func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                      "the file is empty",
		"planGrants: false":                                     "no decision needs a passkey",
		"alwaysallow: true":                                     `strong.yaml:1: the key "alwaysallow" is not known`,
		"alwaysAllow: yes please":                               "true or false was expected",
		"calls: []":                                             "a list of 1 to 100 values",
		"calls:\n  - tools: x":                                  `strong.yaml:2: the key "tools" is not known`,
		"calls:\n  - class: severe":                             "one of read, change",
		"calls:\n  - recipientsOutside: [a b]":                  "domains (example.com)",
		"calls:\n  - recipientsOutside: a.com":                  "a list of 1 to",
		"calls:\n  - amount: {at: /a}":                          "above is missing",
		"calls:\n  - amount: {at: a, above: 1}":                 "a JSON Pointer",
		"calls:\n  - amount: {at: /a, above: x}":                "a number of at least 0",
		"calls:\n  - amount: {at: /a, above: -1}":               "a number of at least 0",
		"calls:\n  - amount: {at: /a, above: 1, currency: EUR}": `the key "currency" is not known`,
	} {
		_, err := strongfile.Parse("strong.yaml", []byte(text))
		var problem *strictyaml.Problem
		if !errors.As(err, &problem) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	_, err := strongfile.Parse("strong.yaml", []byte("a: 1\nb: 2\ncalls:\n  - c: 3"))
	for _, line := range []string{"strong.yaml:1:", "strong.yaml:2:", "strong.yaml:4:"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v lacks %s", err, line)
		}
	}
}
