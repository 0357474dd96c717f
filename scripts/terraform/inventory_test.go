package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These files have every value of the environment prod, and of the bootstrap with everything enabled, by the type and
// attribute of the resources. In a review they show the effect of a change of the configuration. go test
// ./scripts/terraform -update writes them.
const (
	inventoryOfProd      = "testdata/inventory.txt"
	inventoryOfBootstrap = "testdata/inventory-bootstrap.txt"
)

var (
	digest   = regexp.MustCompile(`[0-9a-f]{32,}|\bv1\.2\.3-[0-9a-z]+`) // hashes of archives
	computed = regexp.MustCompile(`\b[a-z0-9]{8}\b`)                    // the form of the values that the mock provider computes
	longText = regexp.MustCompile(`^(documentation\.content|dashboard_json|source\.files\.content)$`)
)

// inventory returns the number of resources of each type, and the sorted values of each of their attributes. A value
// that another resource computed is written as that resource and attribute. configured is the text of the
// configuration, whose words are not computed.
func inventory(t testing.TB, s state, configured string) string {
	t.Helper()
	all := s.all(func(string) bool { return true })
	from := map[string]string{}
	values := map[string]map[string]bool{}
	each := func(add func(r resource, attribute, value string)) {
		for _, r := range all {
			var v any
			if err := json.Unmarshal(r.Values, &v); err != nil {
				t.Fatal(err)
			}
			leaves("", v, func(attribute, value string) { add(r, attribute, value) })
		}
	}
	each(func(r resource, attribute, value string) {
		if computed.FindString(value) != value || strings.Contains(configured, value) {
			return
		}
		origin := slices.Contains([]string{"id", "name", "member", "email", "service_config.uri"}, attribute)
		if place := "{" + r.Address + "." + attribute + "}"; from[value] == "" || origin {
			from[value] = place
		}
	})
	each(func(r resource, attribute, value string) {
		value = computed.ReplaceAllStringFunc(digest.ReplaceAllString(value, "…"), func(word string) string {
			if place := from[word]; place != "" {
				return place
			}
			return word
		})
		switch own := value == "{"+r.Address+"."+attribute+"}"; {
		case longText.MatchString(attribute), own && !strings.Contains(attribute, "."):
			return
		case own:
			value = "(computed)"
		}
		name := r.Type + " " + attribute
		if values[name] == nil {
			values[name] = map[string]bool{}
		}
		values[name][value] = true
	})
	count := map[string]int{}
	for _, r := range all {
		count[r.Type]++
	}
	for kind, n := range count {
		values[kind] = map[string]bool{fmt.Sprint(n): true}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "%s\n", name)
		for _, value := range slices.Sorted(maps.Keys(values[name])) {
			fmt.Fprintf(&b, "    %s\n", value)
		}
	}
	return b.String()
}

// leaves calls add for each value of a resource that is set, with its attribute.
func leaves(attribute string, v any, add func(attribute, value string)) {
	switch v := v.(type) {
	case map[string]any:
		if !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(item any) bool { return item != nil }) {
			add(attribute, "{}")
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			leaves(strings.TrimPrefix(attribute+"."+name, "."), v[name], add)
		}
	case []any:
		for _, item := range v {
			leaves(attribute, item, add)
		}
	case nil:
	default:
		if text := strings.ReplaceAll(fmt.Sprint(v), "\n", `\n`); text != "" {
			add(attribute, text)
		}
	}
}

// configuredWords returns the text of the configuration and of infra/functions.json.
func configuredWords(t testing.TB, repository string) string {
	t.Helper()
	var all strings.Builder
	for _, text := range configuration(t, repository) {
		all.WriteString(text)
	}
	list, err := os.ReadFile("../../infra/functions.json")
	if err != nil {
		t.Fatal(err)
	}
	all.Write(list)
	return all.String()
}

// holdInventory compares the values of a state with its file.
func holdInventory(t testing.TB, inventoryFile string, s state, configured string) {
	t.Helper()
	got := inventory(t, s, configured)
	if *update {
		if err := os.WriteFile(inventoryFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(inventoryFile)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(want), "\n")
	for _, line := range strings.Split(got, "\n") {
		if !slices.Contains(lines, line) {
			t.Errorf("a value is not in %s (-update writes it): %s", inventoryFile, line)
		}
	}
	if got != string(want) {
		t.Errorf("%s is not what is deployed; -update writes it", inventoryFile)
	}
}

// changedValues are faults that the inventory of prod must show: the type of the resources, a value, and its
// replacement.
var changedValues = [][3]string{
	// IAM
	{"google_project_iam_member", `"expression":"resource.name == '[^']*'"`, `"expression":"true"`},
	{"google_project_iam_member", `"role":"roles/datastore.user"`, `"role":"roles/datastore.owner"`},
	{"google_kms_crypto_key_iam_member", `"role":"[^"]*"`, `"role":"roles/cloudkms.admin"`},
	{"google_kms_crypto_key_iam_member", `"member":"[^"]*"`,
		`"member":"serviceAccount:other@example.iam.gserviceaccount.com"`},
	{"google_secret_manager_secret_iam_member", `"role":"[^"]*"`, `"role":"roles/secretmanager.admin"`},
	{"google_secret_manager_secret_iam_member", `"secret_id":"[^"]*"`, `"secret_id":"agent-smtp-url"`},
	{"google_storage_bucket_iam_member", `"role":"[^"]*"`, `"role":"roles/storage.admin"`},
	{"google_pubsub_topic_iam_member", `"role":"roles/pubsub.publisher"`, `"role":"roles/pubsub.admin"`},
	{"google_service_account_iam_member", `"role":"[^"]*"`, `"role":"roles/iam.serviceAccountUser"`},
	{"google_artifact_registry_repository_iam_member", `"role":"[^"]*"`, `"role":"roles/artifactregistry.reader"`},
	// Pub/Sub
	{"google_pubsub_subscription", `"max_delivery_attempts":10`, `"max_delivery_attempts":5`},
	{"google_pubsub_subscription", `"minimum_backoff":"10s"`, `"minimum_backoff":"0s"`},
	{"google_pubsub_subscription", `"filter":null`, `"filter":"attributes.x"`},
	{"google_pubsub_subscription", `"filter":"NOT[^}]*?",`, `"filter":null,`},
	{"google_pubsub_subscription", `"enable_message_ordering":false`, `"enable_message_ordering":true`},
	{"google_pubsub_topic", `"message_storage_policy":\[[^\]]*\][^\]]*\]`, `"message_storage_policy":[]`},
	{"google_pubsub_subscription", `"service_account_email":"agent-push`, `"service_account_email":"agent-run`},
	// scheduler
	{"google_cloud_scheduler_job", `"schedule":"[^"]*"`, `"schedule":"0 * * * *"`},
	{"google_cloud_scheduler_job", `"paused":null`, `"paused":true`},
	{"google_cloud_scheduler_job", `"http_method":"POST"`, `"http_method":"GET"`},
	{"google_cloud_scheduler_job", `"service_account_email":"[^"]*"`,
		`"service_account_email":"agent-push@acme-prod.iam.gserviceaccount.com"`},
	// alerts
	{"google_monitoring_alert_policy", `"combiner":"AND"`, `"combiner":"OR"`},
	{"google_monitoring_alert_policy", `"threshold_value":300`, `"threshold_value":300000`},
	{"google_monitoring_alert_policy", `"duration":"900s"`, `"duration":"86400s"`},
	{"google_monitoring_alert_policy", `COMPARISON_GT`, `COMPARISON_LT`},
	{"google_monitoring_alert_policy", `response_code_class=\\"5xx\\"`, `response_code_class=\"4xx\"`},
	{"google_monitoring_alert_policy", `jsonPayload.counter=\\"run_aside\\"`, `jsonPayload.counter=\"run_asides\"`},
	{"google_monitoring_alert_policy", `agent-sweep\\" AND`, `agent-run\" AND`},
	{"google_monitoring_notification_channel", `"enabled":null`, `"enabled":false`},
	{"google_monitoring_notification_channel", `"email_address":"[^"]*"`, `"email_address":""`},
	{"google_monitoring_slo", `"goal":0.995`, `"goal":0.5`},
	// log sinks
	{"google_logging_project_sink", `AND severity`, `AND jsonPayload.kind=x AND severity`},
	{"google_logging_project_sink", `cloud_run_revision`, `cloud_function`},
	{"google_logging_project_bucket_config", `"enable_analytics":true`, `"enable_analytics":false`},
	// KMS
	{"google_kms_crypto_key", `"protection_level":"SOFTWARE"`, `"protection_level":"EXTERNAL"`},
	{"google_kms_crypto_key", `"import_only":null`, `"import_only":true`},
	// LB
	{"google_compute_backend_service", `"sample_rate":1`, `"sample_rate":0.01`},
	{"google_compute_backend_service", `"protocol":"HTTPS"`, `"protocol":"HTTP"`},
	{"google_compute_global_forwarding_rule", `"port_range":"443"`, `"port_range":"80"`},
	{"google_compute_url_map", `"strip_query":false`, `"strip_query":true`},
	{"google_compute_managed_ssl_certificate", `"agent.acme.com"`, `"other.acme.com"`},
	{"google_compute_url_map", `"hosts":\["agent.acme.com"\]`, `"hosts":["other.acme.com"]`},
	{"google_compute_security_policy", `"enforce_on_key":"IP"`, `"enforce_on_key":"ALL"`},
	{"google_compute_security_policy", `"exceed_action":"[^"]*"`, `"exceed_action":"allow"`},
	{"google_compute_security_policy", `"priority":1000`, `"priority":2147483646`},
	{"google_compute_ssl_policy", `"MODERN"`, `"COMPATIBLE"`},
	{"google_monitoring_uptime_check_config", `"status_value":401`, `"status_value":404`},
	{"google_monitoring_uptime_check_config", `"host":"agent.acme.com"`, `"host":"example.com"`},
	// env
	{"google_cloudfunctions2_function", `"FIRESTORE_DATABASE":"[^"]*"`, `"FIRESTORE_DATABASE":"(default)"`},
	{"google_cloudfunctions2_function", `"AUTH_ISSUER":"[^"]*"`, `"AUTH_ISSUER":"https://issuer.example.com"`},
	{"google_cloudfunctions2_function", `"RESUME_TOPIC":"[^"]*"`, `"RESUME_TOPIC":"other"`},
	{"google_cloudfunctions2_function", `"ALLOWED_ORIGINS":"[^"]*"`, `"ALLOWED_ORIGINS":"*"`},
	{"google_cloudfunctions2_function", `"PUBLIC_URL":"[^"]*"`, `"PUBLIC_URL":"https://other.example.com"`},
	{"google_cloudfunctions2_function", `"TOKEN_KMS_KEY":"[^"]*"`, `"TOKEN_KMS_KEY":"other"`},
	{"google_cloudfunctions2_function", `"GOOGLE_CLOUD_PROJECT":"[^"]*"`, `"GOOGLE_CLOUD_PROJECT":"other-project"`},
	{"google_cloudfunctions2_function", `"secret":"agent-chat-key"`, `"secret":"agent-oauth-client-secret"`},
	{"google_cloudfunctions2_function", `"available_memory":"[^"]*"`, `"available_memory":"128Mi"`},
	{"google_cloudfunctions2_function", `agent-build@`, `agent-run@`},
	// store
	{"google_firestore_field", `"ttl_config":\[\{[^}]*\}\]`, `"ttl_config":[]`},
	{"google_firestore_index", `"DESCENDING"`, `"ASCENDING"`},
	{"google_storage_bucket", `"force_destroy":false`, `"force_destroy":true`},
	{"google_firebaserules_release", `"ruleset_name":"[^"]*"`, `"ruleset_name":"other"`},
	{"google_firestore_database", `"FIRESTORE_NATIVE"`, `"DATASTORE_MODE"`},
	{"google_firestore_database", `"DELETE_PROTECTION_ENABLED"`, `"DELETE_PROTECTION_DISABLED"`},
}

// findChanges plants the faults in prod, one at a time, and checks that the inventory shows each.
func findChanges(t *testing.T, s state, configured string) {
	for _, f := range changedValues {
		old, planted := regexp.MustCompile(f[1]), false
		changed := state{Root: change(s.Root, func(r resource) resource {
			if r.Type == f[0] && old.Match(r.Values) {
				planted = true
				r.Values = json.RawMessage(old.ReplaceAllString(string(r.Values), f[2]))
			}
			return r
		})}
		if seen := (&recorder{TB: t}); planted {
			holdInventory(seen, inventoryOfProd, changed, configured)
			if len(seen.errors) == 0 {
				t.Errorf("%s with %s: the inventory shows nothing", f[0], f[2])
			}
			continue
		}
		t.Errorf("no %s has %s", f[0], f[1])
	}
}
