package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// holdProperties checks properties that all resources of a type must have, whatever their names.
func holdProperties(t testing.TB, s state) {
	t.Helper()
	pushesHold(t, s)
	jobsHold(t, s)
	metricsExist(t, s)
	placesAgree(t, s)
	encryptionHolds(t, s)
	budgetsHold(t, s)
	functionsHold(t, s)
	invokersHold(t, s)
	grantsHold(t, s)
	auditKept(t, s)
	bucketsHold(t, s)
	keysHold(t, s)
	databaseHolds(t, s)
	alertsReach(t, s)
	edgeHolds(t, s)
	workflowsHold(t, s)
}

// resources reads all resources of one type.
func resources[T any](t testing.TB, s state, kind string) []T {
	t.Helper()
	all, err := read[T](s, kind)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// token is the identity and the audience of a request from Google.
type token struct {
	Audience string
	Email    string `json:"service_account_email"`
}

// timeouts returns the maximum duration of each function in seconds, by the function's address.
func timeouts(t testing.TB, s state) map[string]int {
	t.Helper()
	byAddress := map[string]int{}
	for _, f := range resources[struct {
		Service []struct {
			Address string `json:"uri"`
			Timeout int    `json:"timeout_seconds"`
		} `json:"service_config"`
	}](t, s, "google_cloudfunctions2_function") {
		byAddress[f.Service[0].Address] = f.Service[0].Timeout
	}
	return byAddress
}

// seconds parses a duration of the provider, such as "600s".
func seconds(text string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
	if err != nil {
		return -1
	}
	return n
}

type subscription struct {
	Name       string
	Wait       int                    `json:"ack_deadline_seconds"`
	Retention  string                 `json:"message_retention_duration"`
	Expiration []struct{ TTL string } `json:"expiration_policy"`
	Retry      []struct {
		Minimum string `json:"minimum_backoff"`
	} `json:"retry_policy"`
	Dead []struct {
		Topic string `json:"dead_letter_topic"`
	} `json:"dead_letter_policy"`
	Push []struct {
		Endpoint string  `json:"push_endpoint"`
		Tokens   []token `json:"oidc_token"`
	} `json:"push_config"`
}

// pushesHold checks every subscription. The next sweep replaces a lost message of the sweep, so that subscription needs
// no dead letters and no long retention.
func pushesHold(t testing.TB, s state) {
	t.Helper()
	limit := timeouts(t, s)
	for _, sub := range resources[subscription](t, s, "google_pubsub_subscription") {
		if len(sub.Expiration) != 1 || sub.Expiration[0].TTL != "" {
			t.Errorf("%s expires when no message comes", sub.Name)
		}
		replaced := strings.HasSuffix(sub.Name, "-sweep-push")
		if !replaced && seconds(sub.Retention) < 24*60*60 {
			t.Errorf("%s keeps messages for %s", sub.Name, sub.Retention)
		}
		if len(sub.Push) == 0 {
			continue
		}
		push := sub.Push[0]
		if len(push.Tokens) != 1 || push.Tokens[0].Email == "" {
			t.Errorf("%s pushes without a token", sub.Name)
			continue
		}
		audience := push.Tokens[0].Audience
		timeout, known := limit[audience]
		if path, _ := strings.CutPrefix(push.Endpoint, audience); !known || path != "" && path[0] != '/' {
			t.Errorf("%s pushes to %s with the audience %s", sub.Name, push.Endpoint, audience)
		}
		if sub.Wait < timeout {
			t.Errorf("%s waits %d s for a function that runs %d s", sub.Name, sub.Wait, timeout)
		}
		if len(sub.Retry) != 1 || seconds(sub.Retry[0].Minimum) < 1 {
			t.Errorf("%s retries at once", sub.Name)
		}
		if !replaced {
			deadLettersMove(t, s, sub)
		}
	}
}

// deadLettersMove checks that Pub/Sub itself has the two grants that move a subscription's dead letters, and that their
// topic has a subscription.
func deadLettersMove(t testing.TB, s state, sub subscription) {
	t.Helper()
	if len(sub.Dead) != 1 {
		t.Errorf("%s has no dead letters", sub.Name)
		return
	}
	name := ""
	for _, topic := range resources[struct{ ID, Name string }](t, s, "google_pubsub_topic") {
		if topic.ID == sub.Dead[0].Topic {
			name = topic.Name
		}
	}
	if !slices.ContainsFunc(resources[member](t, s, "google_pubsub_topic_iam_member"), func(m member) bool {
		return m.Topic == name && m.Role == "roles/pubsub.publisher" && isPubSub(m)
	}) {
		t.Errorf("Pub/Sub cannot publish the dead letters of %s to %q", sub.Name, name)
	}
	subscribers := resources[member](t, s, "google_pubsub_subscription_iam_member")
	if !slices.ContainsFunc(subscribers, func(m member) bool {
		return m.Subscription == sub.Name && m.Role == "roles/pubsub.subscriber" && isPubSub(m)
	}) {
		t.Errorf("Pub/Sub cannot acknowledge the dead letters of %s", sub.Name)
	}
	if !slices.ContainsFunc(resources[struct{ Topic string }](t, s, "google_pubsub_subscription"),
		func(reader struct{ Topic string }) bool { return reader.Topic == sub.Dead[0].Topic }) {
		t.Errorf("the dead letters of %s are lost: their topic has no subscription", sub.Name)
	}
}

func isPubSub(m member) bool { return name(nil, m.Member) == "Pub/Sub itself" }

// jobsHold checks that every scheduled job calls a function with a token for it, and that its deadline is at least the
// function's timeout.
func jobsHold(t testing.TB, s state) {
	t.Helper()
	limit := timeouts(t, s)
	for _, job := range resources[struct {
		Name     string
		Deadline string `json:"attempt_deadline"`
		Target   []struct {
			URI    string
			Tokens []token `json:"oidc_token"`
		} `json:"http_target"`
	}](t, s, "google_cloud_scheduler_job") {
		if len(job.Target) != 1 || len(job.Target[0].Tokens) != 1 || job.Target[0].Tokens[0].Email == "" {
			t.Errorf("%s calls without a token", job.Name)
			continue
		}
		timeout, known := limit[job.Target[0].Tokens[0].Audience]
		if audience := job.Target[0].Tokens[0].Audience; !known || audience != job.Target[0].URI {
			t.Errorf("%s calls %s with a token for %s", job.Name, job.Target[0].URI, audience)
		}
		if seconds(job.Deadline) < timeout {
			t.Errorf("%s waits %s for a function that runs %d s", job.Name, job.Deadline, timeout)
		}
	}
}

// googleMetrics holds Google's metrics that alerts, objectives and dashboards use. Google reports no error for a filter
// with an unknown metric, and its alert never fires.
var googleMetrics = []string{"run.googleapis.com/request_count", "run.googleapis.com/request_latencies",
	"run.googleapis.com/container/instance_count", "pubsub.googleapis.com/subscription/num_undelivered_messages",
	"pubsub.googleapis.com/subscription/oldest_unacked_message_age",
	"monitoring.googleapis.com/uptime_check/check_passed"}

var metricType = regexp.MustCompile(`metric\.type ?= ?\\*"([^"\\]*)`)

func metricsExist(t testing.TB, s state) {
	t.Helper()
	for _, r := range s.all(func(kind string) bool { return strings.HasPrefix(kind, "google_monitoring_") }) {
		for _, m := range metricType.FindAllStringSubmatch(string(r.Values), -1) {
			if !slices.Contains(googleMetrics, m[1]) {
				t.Errorf("%s uses %q, which is not a metric of Google's", r.Address, m[1])
			}
		}
	}
}

// placesAgree checks that everything is in the region, and the database in its location. The tests set no region.
func placesAgree(t testing.TB, s state) {
	t.Helper()
	for _, r := range s.all(func(string) bool { return true }) {
		var values any
		if err := json.Unmarshal(r.Values, &values); err != nil {
			t.Fatal(err)
		}
		for _, place := range places(values) {
			if place != "europe-west1" && (place != "eur3" || r.Type != "google_firestore_database") {
				t.Errorf("%s is in %s", r.Address, place)
			}
		}
	}
}

// places returns the locations in a resource's values, at any depth.
func places(values any) (found []string) {
	switch v := values.(type) {
	case []any:
		for _, item := range v {
			found = append(found, places(item)...)
		}
	case map[string]any:
		for name, item := range v {
			switch text, isText := item.(string); {
			case isText && slices.Contains([]string{"location", "region", "location_id"}, name):
				found = append(found, text)
			case name == "allowed_persistence_regions":
				regions, _ := item.([]any)
				for _, region := range regions {
					text, _ := region.(string)
					found = append(found, text)
				}
			default:
				found = append(found, places(item)...)
			}
		}
	}
	return found
}

// encryptionHolds checks that every HTTPS proxy has a policy that refuses TLS before 1.2.
func encryptionHolds(t testing.TB, s state) {
	t.Helper()
	modern := map[string]bool{}
	for _, p := range resources[struct {
		ID      string
		Minimum string `json:"min_tls_version"`
	}](t, s, "google_compute_ssl_policy") {
		modern[p.ID] = p.Minimum == "TLS_1_2" || p.Minimum == "TLS_1_3"
	}
	for _, proxy := range resources[struct {
		Name   string
		Policy string `json:"ssl_policy"`
	}](t, s, "google_compute_target_https_proxy") {
		if !modern[proxy.Policy] {
			t.Errorf("the proxy %s accepts TLS before 1.2", proxy.Name)
		}
	}
}

// budgetsHold checks that every budget counts only its project, and sends its warnings to a channel.
func budgetsHold(t testing.TB, s state) {
	t.Helper()
	for _, b := range resources[struct {
		Filter []struct{ Projects []string } `json:"budget_filter"`
		Rule   []struct {
			Channels []string `json:"monitoring_notification_channels"`
		} `json:"all_updates_rule"`
	}](t, s, "google_billing_budget") {
		if len(b.Filter) != 1 || !slices.Equal(b.Filter[0].Projects, []string{"projects/acme-prod"}) {
			t.Errorf("the budget counts %+v", b.Filter)
		}
		if len(b.Rule) != 1 || len(b.Rule[0].Channels) == 0 {
			t.Errorf("the budget's warnings reach no channel: %+v", b.Rule)
		}
	}
}
