package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/config"
)

var update = flag.Bool("update", false, "write the table of identities and roles into terraform/README.md")

// TestTerraform does what the command does, and looks into what the modules' tests made.
func TestTerraform(t *testing.T) {
	w := open(t)
	if err := w.format(t.Context()); err != nil {
		t.Error(err)
	}
	for _, root := range roots {
		if err := w.validate(t.Context(), root); err != nil {
			t.Error(err)
		}
	}
	runs := map[string]run{}
	for _, dir := range modules {
		all, err := w.test(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			if r.Status != "pass" {
				t.Errorf("%s %s: %s", dir, r.Name, r.Status)
			}
			runs[dir+" "+r.Name] = r
		}
	}
	const agent = "terraform/modules/agent "
	t.Run("each function can start with what it is given", func(t *testing.T) { canStart(t, runs[agent+"prod"].State) })
	t.Run("with a key too", func(t *testing.T) { hasKey(t, runs[agent+"with_a_key_of_gemini"].State) })
	t.Run("what was applied needs nothing more", func(t *testing.T) {
		if p := runs[agent+"nothing_is_left_to_do"].Plan; len(p.Changes) == 0 || len(p.changed("google_cloudfunctions2_function")) != 0 {
			t.Errorf("%d resources, changed %v", len(p.Changes), p.changed("google_cloudfunctions2_function"))
		}
	})
	t.Run("one archive is one function", func(t *testing.T) {
		got := runs[agent+"one_archive_changed"].Plan.changed("google_cloudfunctions2_function")
		if want := []string{`module.function["run"].google_cloudfunctions2_function.this`}; !slices.Equal(got, want) {
			t.Errorf("the archive of run has changed, deployed again are %v", got)
		}
	})
	t.Run("README has the roles", func(t *testing.T) {
		holdTable(t, runs["terraform/bootstrap everything"].State, runs[agent+"prod"].State)
	})
}

// open gives a workspace, or skips where terraform, or a provider for it, is not to be had.
func open(t *testing.T) *workspace {
	t.Helper()
	absent := func(what string) {
		t.Helper()
		if os.Getenv("REQUIRE_ALL") == "1" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	if _, err := exec.LookPath("terraform"); err != nil {
		absent("terraform is not installed")
	}
	if os.Getenv("TERRAFORM_CHECK_DIR") == "" {
		absent("TERRAFORM_CHECK_DIR, a schema-only provider, is not set; go run ./scripts/terraform checks with the real one")
	}
	w, err := newWorkspace(t.Context(), "../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// deployed is what is looked at of a function.
type deployed struct {
	Name    string
	Service []struct {
		Environment map[string]string `json:"environment_variables"`
		Secrets     []struct{ Key, Version string }
	} `json:"service_config"`
}

func functions(t *testing.T, s state) (byName map[string]deployed) {
	t.Helper()
	all, err := read[deployed](s, "google_cloudfunctions2_function")
	if err != nil {
		t.Fatal(err)
	}
	byName = map[string]deployed{}
	for _, f := range all {
		byName[strings.TrimPrefix(f.Name, "agent-")] = f
	}
	return byName
}

// canStart reads each function's environment as the function does when it starts, on Cloud Run.
func canStart(t *testing.T, s state) {
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	made := functions(t, s)
	for _, f := range list.Functions {
		service := made[f.Name].Service
		if len(service) != 1 {
			t.Errorf("%s is not deployed", f.Name)
			continue
		}
		given := map[string]string{"K_SERVICE": "agent-" + f.Name}
		for name, value := range service[0].Environment {
			given[name] = value
		}
		for variable := range secretsOf(list, f) {
			given[variable] = "value-of-the-secret"
		}
		var parts []config.Part
		for _, p := range f.Parts {
			if p == "reading" {
				p = "store"
			}
			parts = append(parts, config.Part(p))
		}
		cfg, err := config.Load(func(name string) string { return given[name] }, parts...)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if !strings.HasPrefix(cfg.Release, "untagged-") {
			t.Errorf("%s runs the release %q", f.Name, cfg.Release)
		}
	}
}

func secretsOf(list infra.List, f infra.Function) map[string]string {
	out := map[string]string{}
	for _, p := range f.Parts {
		for variable, secret := range list.Parts[p].Secrets {
			out[variable] = secret
		}
	}
	return out
}

func hasKey(t *testing.T, s state) {
	text, err := json.Marshal(functions(t, s)["run"])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "VERTEX_AI") || !strings.Contains(string(text), `"GEMINI_MODEL"`) {
		t.Errorf("run is given %s", text)
	}
}

const begin, end = "<!-- roles, written by go test ./scripts/terraform -update -->\n", "<!-- end of roles -->\n"

// holdTable compares README's table with the grants that were made.
func holdTable(t *testing.T, states ...state) {
	var all []grant
	for _, s := range states {
		g, err := grants(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g...)
	}
	const file = "../../terraform/README.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the roles: %s%s", file, begin, end)
	}
	want := table(all)
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s has\n%s\nthe plan has\n%s", file, got, want)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
