package main

import (
	"regexp"
	"strings"
	"testing"
)

var (
	namedIn = regexp.MustCompile(`(?:subscription_id|service_name)=(?:one_of\(([^)]+)\)|("[^"]+"))`)
	quoted  = regexp.MustCompile(`"([^"]+)"`)
)

// alertsReach checks that every alert has its runbook, watches something that exists, and notifies somebody if there is
// a channel.
func alertsReach(t testing.TB, s state) {
	t.Helper()
	there, watched := map[string]bool{}, map[string]bool{}
	for _, kind := range []string{"google_cloudfunctions2_function", "google_pubsub_subscription"} {
		for _, r := range resources[struct{ Name string }](t, s, kind) {
			there[r.Name] = true
		}
	}
	somebody := len(resources[struct{}](t, s, "google_monitoring_notification_channel")) > 0
	for _, r := range s.all(func(kind string) bool { return kind == "google_monitoring_alert_policy" }) {
		a := decoded[struct {
			Name          string `json:"display_name"`
			Enabled       *bool
			Channels      []string `json:"notification_channels"`
			Documentation []struct{ Content string }
			Conditions    []struct {
				Log []any `json:"condition_matched_log"`
			}
			Strategy []struct {
				Limit []struct{ Period string } `json:"notification_rate_limit"`
			} `json:"alert_strategy"`
		}](t, r)
		if silent := somebody && len(a.Channels) == 0; silent || a.Enabled != nil && !*a.Enabled {
			t.Errorf("the alert %q reaches nobody", a.Name)
		}
		if len(a.Documentation) != 1 || len(a.Documentation[0].Content) < 100 {
			t.Errorf("the alert %q has no runbook", a.Name)
		}
		if len(a.Conditions) == 0 {
			t.Errorf("the alert %q watches nothing", a.Name)
		} else if len(a.Conditions[0].Log) > 0 && (len(a.Strategy) != 1 || len(a.Strategy[0].Limit) != 1) {
			t.Errorf("Google refuses the alert %q: it is on a log and has no rate limit", a.Name)
		}
		for _, m := range namedIn.FindAllStringSubmatch(strings.ReplaceAll(string(r.Values), `\"`, `"`), -1) {
			for _, name := range quoted.FindAllStringSubmatch(m[1]+m[2], -1) {
				if !there[name[1]] {
					t.Errorf("the alert %q watches %s, which is not deployed", a.Name, name[1])
				}
				watched[name[1]] = true
			}
		}
	}
	for _, sub := range resources[subscription](t, s, "google_pubsub_subscription") {
		if !watched[sub.Name] {
			t.Errorf("no alert watches the subscription %s", sub.Name)
		}
	}
	looksHold(t, s)
	changesAreSeen(t, s)
}

// looksHold checks that uptime checks run each minute, and accept no invalid certificate.
func looksHold(t testing.TB, s state) {
	t.Helper()
	for _, u := range resources[struct {
		Name   string `json:"display_name"`
		Period string
		HTTP   []struct {
			TLS   bool `json:"use_ssl"`
			Valid bool `json:"validate_ssl"`
		} `json:"http_check"`
	}](t, s, "google_monitoring_uptime_check_config") {
		if len(u.HTTP) != 1 || !u.HTTP[0].TLS || !u.HTTP[0].Valid || seconds(u.Period) > 60 {
			t.Errorf("the uptime check %q does not look each minute through TLS", u.Name)
		}
	}
}

// edgeHolds checks that every public function is behind the load balancer, if there is one, and has the load balancer's
// throttle.
func edgeHolds(t testing.TB, s state) {
	t.Helper()
	if !behindEdge(s) {
		return
	}
	groups := map[string]string{}
	for _, g := range resources[struct {
		ID  string
		Run []struct{ Service string } `json:"cloud_run"`
	}](t, s, "google_compute_region_network_endpoint_group") {
		groups[g.ID] = g.Run[0].Service
	}
	behind, policies := map[string]bool{}, throttles(t, s)
	for _, b := range resources[struct {
		Name    string
		Scheme  string `json:"load_balancing_scheme"`
		Policy  string `json:"security_policy"`
		Backend []struct{ Group string }
		Log     []struct {
			Enable bool
			Rate   float64 `json:"sample_rate"`
		} `json:"log_config"`
	}](t, s, "google_compute_backend_service") {
		if b.Scheme != "EXTERNAL_MANAGED" || !policies[b.Policy] {
			t.Errorf("the backend %s has the scheme %s, or no throttle", b.Name, b.Scheme)
		}
		if len(b.Log) != 1 || !b.Log[0].Enable {
			t.Errorf("the backend %s logs nothing", b.Name)
		}
		if len(b.Backend) != 1 || groups[b.Backend[0].Group] != b.Name {
			t.Errorf("the backend %s leads to another function", b.Name)
		}
		behind[b.Name] = true
	}
	list := listed(t)
	for _, f := range resources[running](t, s, "google_cloudfunctions2_function") {
		if public := list[strings.TrimPrefix(f.Name, "agent-")].Public(); public != behind[f.Name] {
			t.Errorf("%s is behind the load balancer: %t, want %t", f.Name, behind[f.Name], public)
		}
	}
	redirects(t, s)
}

// throttles returns the IDs of the policies that limit the requests from one address.
func throttles(t testing.TB, s state) map[string]bool {
	t.Helper()
	is := map[string]bool{}
	for _, p := range resources[struct {
		ID   string
		Rule []struct {
			Action  string
			Preview *bool
		}
	}](t, s, "google_compute_security_policy") {
		for _, r := range p.Rule {
			is[p.ID] = is[p.ID] || r.Action == "throttle" && (r.Preview == nil || !*r.Preview)
		}
	}
	return is
}

// redirects checks that port 80 only sends clients to port 443.
func redirects(t testing.TB, s state) {
	t.Helper()
	sends := map[string]bool{}
	for _, m := range resources[struct {
		ID       string
		Redirect []struct {
			HTTPS bool `json:"https_redirect"`
		} `json:"default_url_redirect"`
	}](t, s, "google_compute_url_map") {
		sends[m.ID] = len(m.Redirect) == 1 && m.Redirect[0].HTTPS
	}
	for _, p := range resources[struct {
		Map string `json:"url_map"`
	}](t, s, "google_compute_target_http_proxy") {
		if !sends[p.Map] {
			t.Error("port 80 does not redirect to HTTPS")
		}
	}
}

// workflowsHold checks that only the repository's own workflows get an identity. It also checks that
// terraform destroy disables no Google service, because that would affect the whole project.
func workflowsHold(t testing.TB, s state) {
	t.Helper()
	for _, p := range resources[struct {
		Condition string `json:"attribute_condition"`
	}](t, s, "google_iam_workload_identity_pool_provider") {
		for _, part := range []string{"assertion.repository_owner_id == '", "assertion.repository_id == '",
			"assertion.event_name != 'pull_request_target'"} {
			if !strings.Contains(p.Condition, part) || strings.Contains(p.Condition, "||") {
				t.Errorf("workflows of others get an identity: %s", p.Condition)
			}
		}
	}
	for _, m := range resources[member](t, s, "google_service_account_iam_member") {
		repository := strings.Contains(m.Member, "/attribute.environment/") ||
			strings.Contains(m.Member, "/attribute.repository_id/")
		if !isPubSub(m) && (m.Role != "roles/iam.workloadIdentityUser" || !repository) {
			t.Errorf("%s can act as %s", m.Member, m.Account)
		}
	}
	for _, p := range resources[struct {
		Service string
		Disable *bool `json:"disable_on_destroy"`
	}](t, s, "google_project_service") {
		if p.Disable == nil || *p.Disable {
			t.Errorf("a destroy turns %s off for the whole project", p.Service)
		}
	}
}
