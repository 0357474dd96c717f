package main

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/testkit/readme"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

var (
	update  = flag.Bool("update", false, "write the table of identities in terraform/access.md, and the inventory")
	overlay = flag.String("overlay", "",
		"a list of files to read in the place of others, in the form of go build's -overlay")
)

// TestTerraform runs the command's checks, and examines the states of the modules' tests.
func TestTerraform(t *testing.T) {
	w := open(t)
	t.Run("format", func(t *testing.T) {
		if err := w.format(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("validate", func(t *testing.T) {
		for _, root := range roots {
			if err := w.validate(t.Context(), root); err != nil {
				t.Error(err)
			}
		}
	})
	runs := map[string]run{}
	for _, dir := range tested {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			all, err := w.test(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if r.Status != "pass" {
					t.Errorf("%s %s: %s; want r.Status “pass”", dir, r.Name, r.Status)
				}
				runs[dir+" "+r.Name] = r
				t.Run(r.Name, func(t *testing.T) { holdProperties(t, r.State) })
			}
			switch dir {
			case agentModule:
				twoResumes(t, w)
				findFaults(t, runs[dir+" prod"].State)
				configured := configuredWords(t, w.dir)
				holdInventory(t, inventoryOfProd, runs[dir+" prod"].State, configured)
				if !*update {
					findChanges(t, runs[dir+" prod"].State, configured)
				}
			case "terraform/bootstrap":
				findFaults(t, runs[dir+" everything"].State)
				holdInventory(t, inventoryOfBootstrap, runs[dir+" everything"].State, configuredWords(t, w.dir))
				servicesAreEnabled(t, w, runs[dir+" everything"].State)
				providersArePinned(t, configuration(t, w.dir))
			}
		})
	}
	t.Run(root, func(t *testing.T) {
		for _, environment := range environments {
			t.Run(environment, func(t *testing.T) { plansEnvironment(t, w, environment) })
		}
	})
	const agent = agentModule + " "
	t.Run("each function can start with what it is given", func(t *testing.T) { canStart(t, runs[agent+"prod"].State) })
	t.Run("the kill switch reaches each", func(t *testing.T) { asks(t, runs[agent+"an_hour_of_caution"].State) })
	t.Run("the console finds the API", func(t *testing.T) {
		findsAPI(t, runs[agent+"prod"].State, "")
		findsAPI(t, runs[agent+"without_a_domain"].State, "https://agent-{function}-123456789012.europe-west1.run.app")
	})
	t.Run("chosen functions", func(t *testing.T) {
		for name, chosen := range map[string][]string{"the_core": nil, "the_core_behind_a_domain": {"core"},
			"a_page": {"page"}, "functions_by_name": {"plans", "mcp", "notify", "web"}} {
			selects(t, runs[agent+name].State, chosen)
		}
	})
	t.Run("with a key too", func(t *testing.T) { hasKey(t, runs[agent+"with_a_key_of_gemini"].State) })
	t.Run("what was applied needs nothing more", func(t *testing.T) {
		if p := runs[agent+"nothing_is_left_to_do"].Plan; len(p.Changes) == 0 ||
			len(p.changed("google_cloudfunctions2_function")) != 0 {
			t.Errorf("%d resources, changed %v", len(p.Changes), p.changed("google_cloudfunctions2_function"))
		}
	})
	t.Run("one archive is one function", func(t *testing.T) {
		got := runs[agent+"one_archive_changed"].Plan.changed("google_cloudfunctions2_function")
		if want := []string{`module.function["run"].google_cloudfunctions2_function.this`}; !slices.Equal(got, want) {
			t.Errorf("the archive of run has changed, deployed again are %v", got)
		}
	})
	t.Run("the path of the archives does not matter", func(t *testing.T) {
		p := runs[agent+"the_archives_moved"].Plan
		if got := p.changed("google_storage_bucket_object"); len(p.Changes) == 0 || len(got) > 0 {
			t.Errorf("%d resources, uploaded again are %v", len(p.Changes), got)
		}
	})
	t.Run("planning reads each type that is deployed", func(t *testing.T) { canPlan(t, runs[agent+"prod"].State) })
	t.Run("the page has the roles", func(t *testing.T) {
		holdTable(t, runs["terraform/bootstrap everything"].State, runs[agent+"prod"].State)
	})
}

// plansEnvironment plans the root with an environment's variable file.
func plansEnvironment(t *testing.T, w *workspace, environment string) {
	all, err := w.test(t.Context(), root, w.variableFiles(environment)...)
	if err != nil {
		t.Fatal(err)
	}
	plans := map[string]plan{}
	for _, r := range all {
		plans[r.Name] = r.Plan
	}
	passesOn(t, plans["plan"], plans["declared"])
	obeys(t, plans["plan"], plans["declared"])
	keeps(t, environment, plans["plan"])
}

// open returns a workspace, or skips the test if terraform or a provider is not available.
func open(t *testing.T) *workspace {
	t.Helper()
	realpart.Terraform.Take(t)
	if _, err := exec.LookPath("terraform"); err != nil {
		realpart.Terraform.Absent(t, err.Error())
	}
	if os.Getenv("TERRAFORM_CHECK_DIR") == "" {
		realpart.Terraform.Absent(t, "TERRAFORM_CHECK_DIR, a schema-only provider, is not set")
	}
	w, err := newWorkspace(t.Context(), "../..", t.TempDir())
	if err == nil && *overlay != "" {
		err = replace(w, *overlay)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// replace puts the files of an overlay into the workspace. scripts/prove/mutate tests the rules with it.
func replace(w *workspace, overlay string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		return err
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for real, other := range list.Replace {
		name, err := filepath.Rel(root, real)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(other)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// deployed holds the used fields of a function.
type deployed struct {
	Name    string
	Service []struct {
		Warm        int                             `json:"min_instance_count"`
		Environment map[string]string               `json:"environment_variables"`
		Secrets     []struct{ Key, Version string } `json:"secret_environment_variables"`
	} `json:"service_config"`
}

// environment returns a variable of the function, or "" if it has none.
func (d deployed) environment(variable string) string {
	if len(d.Service) == 0 {
		return ""
	}
	return d.Service[0].Environment[variable]
}

// version returns the pinned version of a secret that the function reads from the variable, or "".
func (d deployed) version(variable string) string {
	for _, service := range d.Service {
		for _, secret := range service.Secrets {
			if secret.Key == variable {
				return secret.Version
			}
		}
	}
	return ""
}

// planned returns the functions of a plan by name.
func planned(t *testing.T, p plan) (byName map[string]deployed) {
	t.Helper()
	byName = map[string]deployed{}
	for _, c := range p.Changes {
		if c.Type != "google_cloudfunctions2_function" {
			continue
		}
		var f deployed
		if err := json.Unmarshal(c.Change.After, &f); err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(f.Name, "-") // the name follows the prefix
		byName[name] = f
	}
	if len(byName) == 0 {
		t.Fatal("the plan has no functions")
	}
	return byName
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

// configurations returns the configuration that each deployed function loads on Cloud Run from its environment.
func configurations(t *testing.T, s state) (byName map[string]config.Config) {
	t.Helper()
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	made := functions(t, s)
	byName = map[string]config.Config{}
	for _, f := range list.Functions {
		service := made[f.Name].Service
		if len(service) != 1 {
			continue
		}
		given := maps.Clone(service[0].Environment)
		given["K_SERVICE"] = "agent-" + f.Name
		for _, secret := range service[0].Secrets {
			given[secret.Key] = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // any valid key
			if secret.Key == "VAPID_KEY" {                                     // it is in base64url
				given[secret.Key] = strings.TrimRight(given[secret.Key], "=")
			}
		}
		if byName[f.Name], err =
			config.Load(func(name string) string { return given[name] }, partsOf(f)...); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	return byName
}

func partsOf(f infra.Function) (parts []config.Part) {
	for _, p := range f.Parts {
		if p == "reading" {
			p = "store"
		}
		parts = append(parts, config.Part(p))
	}
	return parts
}

// twoResumes runs the test of a list in which an agent has its own resume function.
func twoResumes(t *testing.T, w *workspace) {
	t.Helper()
	restore, err := w.addResume("resume-clerk", "clerk")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := w.test(t.Context(), agentModule, "-filter=tests/second.tftest.hcl")
	if err = errors.Join(err, restore()); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Status != "pass" {
			t.Errorf("%s: %s; want r.Status “pass”", r.Name, r.Status)
		}
	}
}

// passesOn checks that an environment's own actions and agents, and the pinned version of a secret, reach each function
// that reads them. In an environment without them, no function may have them.
func passesOn(t *testing.T, without, with plan) {
	t.Helper()
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	const folder = "serverless_function_source_code/"
	bare, declared := planned(t, without), planned(t, with)
	for _, f := range list.Functions {
		for part, variable := range map[string]string{"actions": "ACTIONS", "agents": "AGENTS"} {
			want := ""
			if slices.Contains(f.Parts, part) {
				want = folder + part
			}
			if got := declared[f.Name].environment(variable); got != want {
				t.Errorf("%s is given %s=%q, want %q", f.Name, variable, got, want)
			}
			if got := bare[f.Name].environment(variable); got != "" {
				t.Errorf("without any, %s is given %s=%q", f.Name, variable, got)
			}
		}
		want := ""
		if slices.Contains(f.Parts, "actions") {
			want = "7"
		}
		if got := declared[f.Name].version("ACTION_KEY"); got != want || bare[f.Name].version("ACTION_KEY") != "" {
			t.Errorf("%s reads version %q of the actions' key, want %q", f.Name, got, want)
		}
	}
}

// operators holds the values that the run "declared" of root.tftest.hcl sets, by the environment variable of the
// functions that read them.
var operators = map[string]string{"SIDE_EFFECTS": "off", "RETENTION": "91", "AUDIT_RETENTION": "401",
	"MAX_MODEL_CALLS": "7", "ALLOWED_ORIGINS": "https://shop.acme.com", "GEMINI_MODEL": "gemini-of-acme",
	"GEMINI_FALLBACK_MODELS": "gemini-b,gemini-c", "GEMINI_MODELS": "gemini-d,gemini-e",
	"GMAIL_SEARCH": "on", "GMAIL_MODIFY": "on",
	"GMAIL_SEND_MODE": "direct", "MCP_ISSUER": "https://issuer.acme.com"}

// everyone lists the variables of operators that every function gets.
var everyone = []string{"SIDE_EFFECTS", "RETENTION", "AUDIT_RETENTION", "MAX_MODEL_CALLS"}

// obeys checks that the operator's settings reach the other resources and each function that reads them. The
// environment without settings shows which functions read a variable.
func obeys(t *testing.T, without, with plan) {
	t.Helper()
	bare, declared := planned(t, without), planned(t, with)
	for variable, want := range operators {
		reached := 0
		for name, f := range declared {
			got := f.environment(variable)
			concerned := slices.Contains(everyone, variable) || bare[name].environment(variable) != ""
			if strings.Contains(got, want) {
				reached++
			} else if concerned {
				t.Errorf("%s is given %s=%q, want %q", name, variable, got, want)
			}
		}
		if reached == 0 {
			t.Errorf("no function is given %s=%q", variable, want)
		}
	}
	var all strings.Builder
	throttled := false // needs the operator's own host name
	for _, c := range with.Changes {
		all.Write(c.Change.After)
		throttled = throttled || c.Type == "google_compute_security_policy"
	}
	if strings.Contains(all.String(), `"count":123`) != throttled {
		t.Errorf("requests_per_minute does not reach the throttle: %t", throttled)
	}
	for _, want := range []string{`"location":"europe-north1"`, `"location_id":"nam5"`, `"name":"acme-run"`,
		`"runtime":"go127"`, `"vpc_connector":"projects/acme-agent/locations/europe-north1/connectors/out"`,
		`"worker_pool":"projects/acme-ci/locations/europe-north1/workerPools/private"`,
		`"binary_authorization_policy":"projects/acme-agent/platforms/cloudRun/signed"`,
		`"all_traffic_on_latest_revision":false`, `"name":"acme-restored"`, `"retention_days":999`, `"team":"trust"`} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("nothing that is planned has %s", want)
		}
	}
}

// canStart checks that every function starts, and knows its release.
func canStart(t *testing.T, s state) {
	for name, cfg := range configurations(t, s) {
		if !strings.HasPrefix(cfg.Release, "v1.2.3-") {
			t.Errorf("%s runs the release %q", name, cfg.Release)
		}
	}
}

// selects checks that the deployed functions are those that infra selects for the same choice, and that each can start.
func selects(t *testing.T, s state, chosen []string) {
	t.Helper()
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	want, err := list.Select(chosen)
	if err != nil {
		t.Fatal(err)
	}
	deployed := configurations(t, s)
	for _, f := range want {
		if _, ok := deployed[f.Name]; !ok {
			t.Errorf("%q: %s is not deployed", chosen, f.Name)
		}
	}
	if len(deployed) != len(want) {
		t.Errorf("%q: %d functions are deployed, want %d", chosen, len(deployed), len(want))
	}
}

// asks checks that every function asks about all side effects, because SIDE_EFFECTS is ask.
func asks(t *testing.T, s state) {
	for name, cfg := range configurations(t, s) {
		if !cfg.Rules.AskSideEffects {
			t.Errorf("%s does not ask about side effects", name)
		}
	}
}

// findsAPI checks the API's URL in the console's configuration. An empty URL means the console's own host.
func findsAPI(t *testing.T, s state, want string) {
	t.Helper()
	web := functions(t, s)["web"]
	if len(web.Service) != 1 || web.Service[0].Environment["WEB_API_URL"] != want {
		t.Errorf("web is %+v, want its WEB_API_URL %q", web, want)
	}
}

// canPlan compares the types that the identity of plans may read with the types of an environment.
func canPlan(t *testing.T, s state) {
	text, err := os.ReadFile("../../infra/plan-permissions.json")
	if err != nil {
		t.Fatal(err)
	}
	var permissions map[string][]string
	if err := json.Unmarshal(text, &permissions); err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, r := range s.all(func(string) bool { return true }) {
		made[r.Type] = true
		if _, ok := permissions[r.Type]; !ok {
			t.Errorf("infra/plan-permissions.json does not say what reading a %s takes", r.Type)
		}
	}
	for kind := range permissions {
		if !made[kind] {
			t.Errorf("infra/plan-permissions.json names %s, which no environment has", kind)
		}
	}
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

// holdTable compares the page's table with the actual grants.
func holdTable(t *testing.T, states ...state) {
	var all []grant
	for _, s := range states {
		g, err := grants(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g...)
	}
	readme.Section(t, "../../terraform/access.md", begin, end, table(all), *update)
}
