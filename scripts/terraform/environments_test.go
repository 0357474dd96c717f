package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var instance = regexp.MustCompile(`\["[^"]*"\]`)

// keeps checks the addresses that an environment plans, and the values of its variable file. Deployments have these
// addresses in their states. If an address disappears without a moved block, Terraform destroys its resource.
func keeps(t *testing.T, environment string, p plan) {
	t.Helper()
	file := "testdata/addresses.txt"
	if environment == "dev" { // dev has no domain
		file = "testdata/addresses-dev.txt"
	}
	var addresses []string
	for _, c := range p.Changes {
		addresses = append(addresses, instance.ReplaceAllString(c.Address, ""))
	}
	slices.Sort(addresses)
	got := strings.Join(slices.Compact(addresses), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := contents(t, file); got != want {
		t.Errorf("%s plans\n%swant\n%s-update writes it", environment, got, want)
	}
	if got, want := protected(t, p), environment != "dev"; got != want {
		t.Errorf("the database of %s is protected from deletion: %t, want %t", environment, got, want)
	}
	for name, f := range planned(t, p) {
		warm := environment == "prod" && slices.Contains([]string{"run", "stream", "chat"}, name)
		if got := f.Service[0].Warm; got != map[bool]int{true: 1}[warm] {
			t.Errorf("%s keeps %d instances of %s warm", environment, got, name)
		}
		if !strings.HasSuffix(f.environment("OTEL_RESOURCE_ATTRIBUTES"), "deployment.environment.name="+environment) &&
			f.environment("OTEL_RESOURCE_ATTRIBUTES") != "" {
			t.Errorf("%s in %s reports %q", name, environment, f.environment("OTEL_RESOURCE_ATTRIBUTES"))
		}
	}
}

// protected reports whether Google refuses to delete the planned database.
func protected(t *testing.T, p plan) bool {
	t.Helper()
	for _, c := range p.Changes {
		if c.Type == "google_firestore_database" {
			var database struct {
				Protection string `json:"delete_protection_state"`
			}
			if err := json.Unmarshal(c.Change.After, &database); err != nil {
				t.Fatal(err)
			}
			return database.Protection == "DELETE_PROTECTION_ENABLED"
		}
	}
	t.Fatal("the plan has no database")
	return false
}

// TestState checks that a plan with the state of another environment or another prefix fails. terraform init writes the
// file that selects the state. The test plans only the validation, which is fast.
func TestState(t *testing.T) {
	w := open(t)
	dir := w.onlyEnvironment(t, map[string]string{"tests/plan.tftest.hcl": "run \"plan\" {\n  command = plan\n}\n"})
	if err := w.init(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir, dir, ".terraform"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, dir, ".terraform", "terraform.tfstate")
	for _, c := range []struct {
		prefix, state string
		refused       bool
	}{
		{"agent", `"agent/dev"`, false}, {"agent", `"agent/prod"`, true}, {"agent", `null`, true},
		{"agent", `"second/dev"`, true}, {"second", `"second/dev"`, false}, {"second", `"second/prod"`, true},
		{"second", `"agent/dev"`, false}, // as the documentation said earlier, whatever the prefix
	} {
		text := `{"version": 3, "backend": {"type": "gcs", "config": {"prefix": ` + c.state + `}}}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := w.test(t.Context(), dir, "-var=environment=dev", "-var=prefix="+c.prefix)
		want := "-backend-config=prefix=" + c.prefix + "/dev"
		if got := err != nil && strings.Contains(err.Error(), want); got != c.refused || (err != nil) != c.refused {
			t.Errorf("dev of %s with the state %s is refused: %t, want %t: %v", c.prefix, c.state, got, c.refused, err)
		}
	}
}

// onlyEnvironment makes a directory with the root's variables environment and prefix, and with more files.
func (w *workspace) onlyEnvironment(t *testing.T, files map[string]string) (name string) {
	t.Helper()
	dir, err := os.MkdirTemp(w.dir, "environment-")
	if err != nil {
		t.Fatal(err)
	}
	main := contents(t, filepath.Join(w.dir, root, "main.tf"))
	all := contents(t, filepath.Join(w.dir, root, "variables.tf"))
	part := func(text, begin string) string {
		return regexp.MustCompile(`(?ms)^` + begin + ` \{$.*?^\}\n`).FindString(text)
	}
	files["main.tf"] = regexp.MustCompile(`(?m)^  backend .*$`).ReplaceAllString(part(main, "terraform"), "") +
		part(main, `variable "environment"`) + part(main, "locals") + part(all, `variable "prefix"`)
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Base(dir)
}
