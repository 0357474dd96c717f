package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/infra"
)

// running is a deployed function.
type running struct {
	Name  string
	Build []struct {
		Entry  string `json:"entry_point"`
		Source []struct {
			Storage []struct{ Object string } `json:"storage_source"`
		}
	} `json:"build_config"`
	Service []struct {
		Address     string                          `json:"uri"`
		Identity    string                          `json:"service_account_email"`
		Ingress     string                          `json:"ingress_settings"`
		Timeout     int                             `json:"timeout_seconds"`
		Concurrency int                             `json:"max_instance_request_concurrency"`
		Most        int                             `json:"max_instance_count"`
		Latest      bool                            `json:"all_traffic_on_latest_revision"`
		Environment map[string]string               `json:"environment_variables"`
		Secrets     []struct{ Key, Version string } `json:"secret_environment_variables"`
	} `json:"service_config"`
}

// listed returns the functions of infra/functions.json by name, with the one that a test adds.
func listed(t testing.TB) map[string]infra.Function {
	t.Helper()
	list, err := infra.Functions()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]infra.Function{}
	for _, f := range list.Functions {
		byName[f.Name] = f
		if f.Rest() { // addResume copies this one
			f.Name, f.EntryPoint = "resume-clerk", "resume-clerk"
			byName[f.Name] = f
		}
	}
	return byName
}

// functionsHold checks each function against infra/functions.json. Each has a separate identity.
func functionsHold(t testing.TB, s state) {
	t.Helper()
	list, edge, owner := listed(t), behindEdge(s), map[string]string{}
	for _, made := range resources[running](t, s, "google_cloudfunctions2_function") {
		name := strings.TrimPrefix(made.Name, "agent-")
		f, known := list[name]
		if !known || len(made.Service) != 1 || len(made.Build) != 1 {
			t.Errorf("%s is not in infra/functions.json", made.Name)
			continue
		}
		service, build := made.Service[0], made.Build[0]
		if service.Timeout != f.TimeoutSeconds || service.Concurrency != f.Concurrency ||
			service.Most != f.MaxInstances {
			t.Errorf("%s is deployed with other limits than infra/functions.json has", made.Name)
		}
		if build.Entry != f.EntryPoint || !strings.HasPrefix(build.Source[0].Storage[0].Object, "functions/"+name+"/") {
			t.Errorf("%s is built from another function: %+v", made.Name, build)
		}
		if other := owner[service.Identity]; other != "" {
			t.Errorf("%s has the identity of %s", made.Name, other)
		}
		owner[service.Identity] = made.Name
		if want := ingress(f, edge); service.Ingress != want {
			t.Errorf("%s accepts requests from %s, want %s", made.Name, service.Ingress, want)
		}
		if !service.Latest {
			t.Errorf("%s sends requests to an older revision", made.Name)
		}
		for _, secret := range service.Secrets {
			if _, err := strconv.Atoi(secret.Version); err != nil {
				t.Errorf("%s reads the version %q of %s, which is not pinned", made.Name, secret.Version, secret.Key)
			}
		}
		environmentAgrees(t, made, f)
	}
}

// environmentAgrees checks the variables that describe the function.
func environmentAgrees(t testing.TB, made running, f infra.Function) {
	t.Helper()
	environment := made.Service[0].Environment
	for variable, want := range map[string]string{"FUNCTION_TIMEOUT": strconv.Itoa(f.TimeoutSeconds) + "s",
		"FUNCTION_CONCURRENCY": strconv.Itoa(f.Concurrency)} {
		if got, given := environment[variable]; given && got != want {
			t.Errorf("%s is given %s=%s, want %s", made.Name, variable, got, want)
		}
	}
	if environment["RELEASE"] == "" {
		t.Errorf("%s is not given its RELEASE", made.Name)
	}
	if verifier := environment["PUSH_VERIFIED_BY"]; (verifier == "platform") == f.Public() {
		t.Errorf("%s takes %q for the verifier of tokens", made.Name, verifier)
	}
}

func behindEdge(s state) bool {
	return len(s.all(func(kind string) bool { return kind == "google_compute_global_forwarding_rule" })) > 0
}

func ingress(f infra.Function, edge bool) string {
	switch {
	case !f.Public():
		return "ALLOW_INTERNAL_ONLY"
	case edge:
		return "ALLOW_INTERNAL_AND_GCLB"
	}
	return "ALLOW_ALL"
}

// callers are the accounts that may call a function, by its callers in infra/functions.json.
var callers = map[string]string{"queue": "agent-push", "events": "agent-push", "scheduler": "agent-scheduler"}

// invokersHold checks that exactly one grant names the callers of each function, and that it names the caller in
// infra/functions.json.
func invokersHold(t testing.TB, s state) {
	t.Helper()
	members := map[string]string{}
	for _, a := range resources[struct {
		ID     string `json:"account_id"`
		Member string
	}](t, s, "google_service_account") {
		members[a.ID] = a.Member
	}
	granted := map[string][]string{}
	for _, m := range resources[member](t, s, "google_cloud_run_v2_service_iam_member") {
		if m.Role != "roles/run.invoker" {
			t.Errorf("%s has %s on %s", m.Member, m.Role, m.Service)
		}
		granted[m.Service] = append(granted[m.Service], m.Member)
	}
	list := listed(t)
	for _, made := range resources[running](t, s, "google_cloudfunctions2_function") {
		want := cmp.Or(members[callers[list[strings.TrimPrefix(made.Name, "agent-")].Callers]], "allUsers")
		if !slices.Equal(granted[made.Name], []string{want}) {
			t.Errorf("%s may be called by %q, want only %s", made.Name, granted[made.Name], want)
		}
		delete(granted, made.Name)
	}
	for service, who := range granted {
		t.Errorf("%q may call %s, which is not deployed", who, service)
	}
}

// tooMuch are roles that no identity of a deployment needs.
var tooMuch = []string{"roles/owner", "roles/editor", "roles/viewer", "roles/iam.securityAdmin", "roles/run.invoker"}

// restricted holds roles that are granted only for a part of the project, by a condition.
var restricted = []string{"roles/datastore.user", "roles/datastore.viewer", "roles/storage.objectViewer",
	"roles/resourcemanager.projectIamAdmin"}

// grantsHold checks all grants except those to the functions' callers. None may be public, a basic role, or valid for
// all databases.
func grantsHold(t testing.TB, s state) {
	t.Helper()
	for _, r := range s.all(func(kind string) bool { return strings.HasSuffix(kind, "_iam_member") }) {
		m := decoded[member](t, r)
		calls := r.Type == "google_cloud_run_v2_service_iam_member"
		if !calls && slices.Contains(tooMuch, m.Role) {
			t.Errorf("%s grants %s", r.Address, m.Role)
		}
		if !calls && strings.HasPrefix(m.Member, "all") {
			t.Errorf("%s grants %s to %s", r.Address, m.Role, m.Member)
		}
		if r.Type == "google_project_iam_member" && len(m.Condition) == 0 && slices.Contains(restricted, m.Role) {
			t.Errorf("%s grants %s on the whole project, without a condition", r.Address, m.Role)
		}
	}
}
