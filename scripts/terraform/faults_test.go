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

// plantedFaults change the values of all resources of a type. Each has a part of the error that it must cause.
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
