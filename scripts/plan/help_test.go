package main

import (
	"errors"
	"flag"
	"strings"
	"testing"
)

// TestHelp checks that each command's help has the usage, the flags and an example, and exits with success.
func TestHelp(t *testing.T) {
	none := func(string) string { return "" }
	for _, name := range []string{"start", "refine", "confirm", "watch", "approve", "reject", "show", "log",
		"cancel"} {
		var out, errs strings.Builder
		err := execute(t.Context(), []string{name, "-h"}, none, strings.NewReader(""), &out, &errs)
		if !errors.Is(err, flag.ErrHelp) || errs.Len() > 0 {
			t.Errorf("%s: %v %s", name, err, errs.String())
		}
		for _, want := range []string{"usage: go run ./scripts/plan " + name + " [flags] ", "-base string",
			"examples:\n  go run ./scripts/plan " + name + " "} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s -h does not say %q:\n%s", name, want, out.String())
			}
		}
	}
}
