package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// written holds the variables of the module that the root's main.tf declares or sets by hand.
var written = map[string]bool{"environment": true, "archives": true}

var validation = regexp.MustCompile(`(?ms)^\n?  validation \{\n.*?^  \}\n`)

// TestVariables checks that the root declares every variable of the module with its type, default and description, and
// passes its value to the module. Only the module validates values.
func TestVariables(t *testing.T) {
	files, err := filepath.Glob("../../terraform/modules/agent/variables*.tf")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	want := "# Written by `go test ./scripts/terraform -run Variables -update`: the variables of modules/agent, which" +
		" validates them.\n"
	main := contents(t, "../../terraform/main.tf")
	for _, file := range files {
		for _, b := range block.FindAllStringSubmatch(contents(t, file), -1) {
			name := b[2]
			if !written[name] {
				want += "\n" + validation.ReplaceAllString(b[0], "")
			}
			if name != "archives" && !regexp.MustCompile(`(?m)^  `+name+` += .*\bvar\.`+name+`\b`).MatchString(main) {
				t.Errorf("terraform/main.tf does not pass %s on", name)
			}
		}
	}
	const generated = "../../terraform/variables.tf"
	if *update {
		if err := os.WriteFile(generated, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := contents(t, generated); got != want {
		t.Errorf("%s is not what -update writes: %d bytes, want %d", generated, len(got), len(want))
	}
}

// TestUndeclared adds values that the root does not declare to a variable file. Terraform itself accepts all of them.
func TestUndeclared(t *testing.T) {
	w := open(t)
	refusesUndeclared(t, w)
	if err := w.undeclared(t.Context(), "dev"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, root, "dev.tfvars")
	before := contents(t, file)
	for given, want := range map[string]string{
		"regoin = \"europe-north1\"":                          "regoin",
		"retention = { days = 90, audit_day = 400 }":          "retention.audit_day",
		"audit_log = { lock = true }":                         "audit_log.lock",
		"model = { name = \"a\", temperature = 1 }":           "model.temperature",
		"settings = { MAX_MODEL_CALLS = \"5\" }\nSETTING = 1": "SETTING",
	} {
		if err := os.WriteFile(file, []byte(before+"\n"+given+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want = "terraform/dev.tfvars: " + want + " is not declared in terraform/variables.tf"
		if err := w.undeclared(t.Context(), "dev"); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", given, err, want)
		}
	}
}

// refusesUndeclared plans only the validation of the root's variable files, which is fast.
func refusesUndeclared(t *testing.T, w *workspace) {
	t.Helper()
	for given, want := range map[string]string{"": "", "regoin = 1\nzoen = 2\n": "does not declare regoin, zoen."} {
		for _, file := range []string{"dev.tfvars", "some.auto.tfvars"} {
			dir := w.onlyEnvironment(t, map[string]string{file: "environment = \"dev\"\n" + given})
			if err := w.init(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			_, err := w.terraform(t.Context(), dir, "plan", "-no-color", "-var-file="+file)
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %q: %v; want %q", file, given, err, want)
			}
		}
	}
}
