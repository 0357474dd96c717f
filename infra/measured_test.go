package infra_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsMeasuredIsThere checks that dashboards and alerts ask for metrics and attributes that the page of
// shared/telemetry/metrics has.
func TestWhatIsMeasuredIsThere(t *testing.T) {
	known := map[string]bool{}
	for _, name := range regexp.MustCompile("`([a-z_]+\\.[a-z_.]+)`").FindAllStringSubmatch(
		string(text(t, "../shared/telemetry/metrics/README.md")), -1) {
		known[name[1]] = true
	}
	for _, file := range []string{"dashboards/runs.json", "../terraform/modules/agent/alerts.tf"} {
		asked := regexp.MustCompile(`\\"((?:countersign|gen_ai|error)\.[a-z_.]+)\\"`).FindAllStringSubmatch(
			string(text(t, file)), -1)
		if len(asked) == 0 {
			t.Errorf("%s asks for nothing", file)
		}
		for _, name := range asked {
			part := []string{"", "_count", "_sum", "_bucket"} // of a histogram
			if !slices.ContainsFunc(part, func(of string) bool { return known[strings.TrimSuffix(name[1], of)] }) {
				t.Errorf("%s asks for %s, which is not measured", file, name[1])
			}
		}
	}
}
