package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// recorder records errors instead of failing the test.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

// plantedFaults change the values of all resources of a type. want is a part of the error that the fault must cause.
var plantedFaults = []struct{ kind, old, new, want string }{
	{"google_pubsub_subscription", `"ack_deadline_seconds":\d+`, `"ack_deadline_seconds":10`, "waits 10 s"},
	{"google_pubsub_subscription", `"ttl":""`, `"ttl":"2678400s"`, "expires"},
	{"google_pubsub_subscription", `"604800s"`, `"3600s"`, "keeps messages for 3600s"},
	{"google_pubsub_subscription", `"audience":"`, `"audience":"other`, "with the audience other"},
	{"google_pubsub_subscription", `"push_endpoint":"`, `"push_endpoint":"other`, "pushes to other"},
	{"google_pubsub_subscription", `"oidc_token":\[[^]]*\]`, `"oidc_token":[]`, "pushes without a token"},
	{"google_pubsub_subscription", `"retry_policy":\[[^]]*\]`, `"retry_policy":[]`, "retries at once"},
	{"google_pubsub_subscription", `"dead_letter_policy":\[[^]]*\]`, `"dead_letter_policy":[]`, "has no dead letters"},
	{"google_pubsub_subscription", `"dead_letter_topic":"`, `"dead_letter_topic":"other`, "topic has no subscription"},
	{"google_pubsub_topic_iam_member", `gcp-sa-pubsub`, `gcp-sa-other`, "cannot publish the dead letters"},
	{"google_pubsub_subscription_iam_member", `roles/pubsub.subscriber`, `roles/pubsub.viewer`, "cannot acknowledge"},
	{"google_cloud_scheduler_job", `"attempt_deadline":"\d+s"`, `"attempt_deadline":"60s"`, "waits 60s"},
	{"google_cloud_scheduler_job", `"uri":"`, `"uri":"other`, "calls other"},
	{"google_cloud_scheduler_job", `"oidc_token":\[[^]]*\]`, `"oidc_token":[]`, "calls without a token"},
	{"google_monitoring_alert_policy", `oldest_unacked_message_age`, `oldest_message_age`, "not a metric of Google's"},
	{"google_monitoring_dashboard", `run.googleapis.com/request_count`, `run.googleapis.com/requests`, "not a metric"},
	{"google_cloudfunctions2_function", `"europe-west1"`, `"us-central1"`, "is in us-central1"},
	{"google_pubsub_topic", `"europe-west1"`, `"us-central1"`, "is in us-central1"},
	{"google_firestore_database", `"eur3"`, `"nam5"`, "is in nam5"},
	{"google_compute_ssl_policy", `"TLS_1_2"`, `"TLS_1_0"`, "accepts TLS before 1.2"},
	{"google_compute_target_https_proxy", `"ssl_policy":"[^"]*"`, `"ssl_policy":null`, "accepts TLS before 1.2"},
	{"google_billing_budget", `"projects":\[[^]]*\]`, `"projects":[]`, "the budget counts"},
	{"google_billing_budget", `"monitoring_notification_channels":\[[^]]*\]`, `"monitoring_notification_channels":[]`,
		"reach no channel"},
	{"google_cloudfunctions2_function", `"timeout_seconds":300`, `"timeout_seconds":3600`, "with other limits"},
	{"google_cloudfunctions2_function", `"max_instance_count":\d+`, `"max_instance_count":1000`, "with other limits"},
	{"google_cloudfunctions2_function", `"max_instance_request_concurrency":\d+`,
		`"max_instance_request_concurrency":1`, "with other limits"},
	{"google_cloudfunctions2_function", `"entry_point":"[^"]*"`, `"entry_point":"run"`, "built from another function"},
	{"google_cloudfunctions2_function", `"object":"functions/[a-z-]+/`, `"object":"functions/run/`,
		"built from another function"},
	{"google_cloudfunctions2_function", `"service_account_email":"[^"]*"`, `"service_account_email":"one"`,
		"has the identity of"},
	{"google_cloudfunctions2_function", `"ALLOW_INTERNAL_ONLY"`, `"ALLOW_ALL"`, "accepts requests from ALLOW_ALL"},
	{"google_cloudfunctions2_function", `"ALLOW_INTERNAL_AND_GCLB"`, `"ALLOW_ALL"`, "accepts requests from ALLOW_ALL"},
	{"google_cloudfunctions2_function", `"all_traffic_on_latest_revision":true`,
		`"all_traffic_on_latest_revision":false`, "an older revision"},
	{"google_cloudfunctions2_function", `"version":"1"`, `"version":"latest"`, "is not pinned"},
	{"google_cloudfunctions2_function", `"FUNCTION_TIMEOUT":"\d+s"`, `"FUNCTION_TIMEOUT":"1h"`,
		"FUNCTION_TIMEOUT=1h"},
	{"google_cloudfunctions2_function", `"FUNCTION_CONCURRENCY":"\d+"`, `"FUNCTION_CONCURRENCY":"1000"`,
		"FUNCTION_CONCURRENCY=1000"},
	{"google_cloudfunctions2_function", `"RELEASE":`, `"RELEASES":`, "not given its RELEASE"},
	{"google_cloudfunctions2_function", `"PUSH_VERIFIED_BY":"platform"`, `"PUSH_VERIFIED_BY":"token"`, "the verifier"},
	{"google_cloud_run_v2_service_iam_member", `"member":"serviceAccount:[^"]*"`, `"member":"allUsers"`,
		`called by ["allUsers"]`},
	{"google_cloud_run_v2_service_iam_member", `"member":"allUsers"`, `"member":"allAuthenticatedUsers"`,
		"want only allUsers"},
	{"google_cloud_run_v2_service_iam_member", `"name":"agent-[a-z-]+"`, `"name":"agent-run"`, "called by []"},
	{"google_cloud_run_v2_service_iam_member", `roles/run.invoker`, `roles/run.admin`, "has roles/run.admin on"},
	{"google_project_iam_member", `"role":"roles/[^"]*"`, `"role":"roles/editor"`, "grants roles/editor"},
	{"google_project_iam_member", `"condition":\[\{.*?\}\]`, `"condition":[]`, "without a condition"},
	{"google_secret_manager_secret_iam_member", `"member":"[^"]*"`, `"member":"allUsers"`, "to allUsers"},
	{"google_logging_project_sink", `severity(>|\\u003e)=INFO`, `severity>=WARNING`,
		"drops lines of the severity INFO"},
	{"google_logging_project_sink", `\(actions\|`, `(`, "drops the lines of agent-actions"},
	{"google_logging_project_sink", `"exclusions":\[\]`, `"exclusions":[{"filter":"true"}]`, "leaves lines out"},
	{"google_logging_project_sink", `googleapis.com/data_access`, `googleapis.com/policy`, "the audit log data_access"},
	{"google_logging_project_sink", `"unique_writer_identity":true`, `"unique_writer_identity":false`, "no writer"},
	{"google_logging_project_exclusion", `severity=INFO`, `severity>=INFO`, "that an alert looks for"},
	{"google_logging_project_exclusion", `gserviceaccount.com`, ``, "that an alert looks for"},
	{"google_logging_project_exclusion", `\(actions\|`, `(`, "lines that no sink keeps"},
	{"google_logging_project_bucket_config", `"retention_days":\d+`, `"retention_days":30`, "lines for 30 days"},
	{"google_project_iam_audit_config", `DATA_READ`, `ADMIN_READ`, "does not record every DATA_READ"},
	{"google_project_iam_audit_config", `"exempted_members":null`, `"exempted_members":["user:a@acme.com"]`,
		"does not record every"},
	{"google_storage_bucket", `"enforced"`, `"inherited"`, "can be made public"},
	{"google_storage_bucket", `"versioning":\[\{"enabled":true`, `"versioning":[{"enabled":false`, "no older objects"},
	{"google_kms_crypto_key", `"7776000s"`, `"31536000s"`, "is rotated after 31536000s"},
	{"google_kms_crypto_key", `"2592000s"`, `"86400s"`, "is lost 86400s after"},
	{"google_kms_crypto_key", `"EC_SIGN_ED25519"`, `"EC_SIGN_SECP256K1_SHA256"`, "does not sign with Ed25519"},
	{"google_firestore_database", `RECOVERY_ENABLED`, `RECOVERY_DISABLED`, "to a point in time"},
	{"google_firestore_database", `"ABANDON"`, `"DELETE"`, "alone"},
	{"google_firestore_backup_schedule", `"retention":"\d+s"`, `"retention":"86400s"`, "has 0 schedules of backups"},
	{"google_firebaserules_release", `cloud.firestore/agent-store`, `cloud.firestore`, "keep clients out"},
	{"google_firebaserules_ruleset", `if false`, `if request.auth != null`, "lets clients in"},
	{"google_monitoring_alert_policy", `"notification_channels":\[[^]]*\]`, `"notification_channels":[]`,
		"reaches nobody"},
	{"google_monitoring_alert_policy", `"content":"(\\.|[^"\\])*"`, `"content":""`, "has no runbook"},
	{"google_monitoring_alert_policy", `"notification_rate_limit":\[[^]]*\]`, `"notification_rate_limit":[]`,
		"has no rate limit"},
	{"google_monitoring_alert_policy", `agent-resume-dead`, `agent-dead`, "watches agent-dead"},
	{"google_monitoring_alert_policy", `,\\"agent-events-dead\\"`, ``,
		"no alert watches the subscription agent-events-dead"},
	{"google_monitoring_alert_policy", `,\\"agent-sweep-push\\"`, ``,
		"no alert watches the subscription agent-sweep-push"},
	{"google_monitoring_alert_policy", `\|BatchWrite`, ``, "Firestore.BatchWrite of ken@acme.com"},
	{"google_monitoring_alert_policy", `\(\?i\)`, ``, "SetIamPolicy of ken@acme.com"},
	{"google_monitoring_alert_policy", `agent-tf-apply@`, `.*@`, "SetIamPolicy of ken@acme.com"},
	{"google_monitoring_alert_policy", `AsymmetricSign`, `AsymmetricVerify`,
		"AsymmetricSign of ken@acme.com"},
	{"google_monitoring_alert_policy", `DestroyCryptoKey`, `CreateCryptoKey`,
		"DestroyCryptoKeyVersion of ken@acme.com"},
	{"google_monitoring_uptime_check_config", `"validate_ssl":true`, `"validate_ssl":false`, "through TLS"},
	{"google_compute_backend_service", `"security_policy":"[^"]*"`, `"security_policy":null`, "or no throttle"},
	{"google_compute_backend_service", `"enable":true`, `"enable":false`, "logs nothing"},
	{"google_compute_backend_service", `"group":"[^"]*"`, `"group":"other"`, "leads to another function"},
	{"google_compute_backend_service", `"EXTERNAL_MANAGED"`, `"EXTERNAL"`, "has the scheme EXTERNAL,"},
	{"google_compute_security_policy", `"preview":null`, `"preview":true`, "or no throttle"},
	{"google_compute_url_map", `"https_redirect":true`, `"https_redirect":false`, "does not redirect"},
	{"google_iam_workload_identity_pool_provider", `'pull_request_target'`, `'pull_request'`,
		"workflows of others"},
	{"google_service_account_iam_member", `"member":"[^"]*"`, `"member":"principalSet://pool/*"`, "can act as"},
	{"google_project_service", `"disable_on_destroy":false`, `"disable_on_destroy":true`, "for the whole project"},
}

// findFaults plants the faults in a state, one at a time, and checks that the properties notice each.
func findFaults(t *testing.T, s state) {
	for _, f := range plantedFaults {
		old, present, planted := regexp.MustCompile(f.old), false, false
		changed := state{Root: change(s.Root, func(r resource) resource {
			present = present || r.Type == f.kind
			if r.Type == f.kind && old.Match(r.Values) {
				planted = true
				r.Values = json.RawMessage(old.ReplaceAllString(string(r.Values), f.new))
			}
			return r
		})}
		if !present {
			continue
		}
		if !planted {
			t.Errorf("no %s has %s", f.kind, f.old)
		}
		seen := &recorder{TB: t}
		holdProperties(seen, changed)
		if !strings.Contains(strings.Join(seen.errors, "\n"), f.want) {
			t.Errorf("%s with %s: the properties report %q, want %q", f.kind, f.new, seen.errors, f.want)
		}
	}
}

// change returns a copy of a module in which every resource is changed.
func change(m module, each func(resource) resource) (changed module) {
	for _, r := range m.Resources {
		changed.Resources = append(changed.Resources, each(r))
	}
	for _, child := range m.Children {
		changed.Children = append(changed.Children, change(child, each))
	}
	return changed
}
