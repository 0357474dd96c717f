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
// addresses in their states: Terraform destroys a resource whose address disappears without a moved block.
func keeps(t *testing.T, environment string, p plan) {
	t.Helper()
	file := "testdata/addresses.txt"
	if environment == "dev" { // has no domain
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

// TestState checks that a plan with another environment's state fails. terraform init writes the file that selects it.
func TestState(t *testing.T) {
	w := open(t)
	if err := w.init(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.dir, root, ".terraform", "terraform.tfstate")
	for prefix, refused := range map[string]bool{`"agent/dev"`: false, `"agent/prod"`: true, `null`: true} {
		text := `{"version": 3, "backend": {"type": "gcs", "config": {"prefix": ` + prefix + `}}}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := w.test(t.Context(), root, w.variableFiles("dev")...)
		if got := err != nil && strings.Contains(err.Error(), "-backend-config=prefix=agent/dev"); got != refused {
			t.Errorf("dev with the state %s is refused: %t, want %t: %v", prefix, got, refused, err)
		}
	}
}
