package main

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// TestListedCounts compares the counts of -list with a file. A line that lists less than before needs a reason.
func TestListedCounts(t *testing.T) {
	var out, errs strings.Builder
	if code := proof.Main([]string{"-list"}, &out, &errs, proofs...); code != proof.Proven {
		t.Fatal(errs.String())
	}
	const file = "testdata/list.txt"
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		t.Errorf("go run ./scripts/prove -list prints\n%s\nbut %s has\n%s", got, file, want)
	}
}

// TestHelpOfEachProof checks that each proof's help describes what it tries, how long it takes, and the common flags.
func TestHelpOfEachProof(t *testing.T) {
	for _, p := range proofs {
		var out, errs strings.Builder
		if code := proof.Main([]string{p.Name, "-h"}, &out, &errs, proofs...); code != proof.Proven {
			t.Errorf("%s -h: exit code %d", p.Name, code)
		}
		for _, want := range []string{"usage: go run ./scripts/prove " + p.Name + " [flags]", p.Tries,
			"It takes " + p.Takes, "-json", "-report file", "-list", "examples:\n  go run ./scripts/prove " + p.Name} {
			if !strings.Contains(errs.String(), want) {
				t.Errorf("%s -h does not contain %q:\n%s", p.Name, want, errs.String())
			}
		}
	}
}
