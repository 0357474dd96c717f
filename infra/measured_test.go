package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDashboardMetrics checks that dashboards and alerts use only metrics and attributes that the README of
// shared/telemetry/metrics lists.
func TestDashboardMetrics(t *testing.T) {
	known := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z_]+\\.[a-z_.]+)`").FindAllStringSubmatch(
		string(text(t, "../shared/telemetry/metrics/README.md")), -1) {
		known[name[1]] = true
	}
	for _, file := range []string{"dashboards/runs.json", "../terraform/modules/agent/alerts.tf"} {
		asked := regexp.MustCompile(`\\"((?:countersign|gen_ai|error)\.[a-z_.]+)\\"`).FindAllStringSubmatch(
			string(text(t, file)), -1)
		if len(asked) == 0 {
			t.Errorf("%s uses no metric", file)
		}
		for _, name := range asked {
			part := []string{"", "_count", "_sum", "_bucket"} // the series of a histogram
			if !slices.ContainsFunc(part, func(of string) bool { return known[strings.TrimSuffix(name[1], of)] }) {
				t.Errorf("%s uses %s, which is not measured", file, name[1])
			}
		}
	}
}
