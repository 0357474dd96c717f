package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestPage compares README.md with the names and units of the instruments.
func TestPage(t *testing.T) {
	found := func(file, pattern string) (all []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1]+" "+m[2])
		}
		return all
	}
	const instrument = `metrics\.Instrument\{[^"]*Name: "([^"]+)",\s+Unit: "([^"]+)"`
	var code []string
	for _, file := range []string{"engine/observe/measure.go", "engine/loop/measure.go",
		"receipts/translog/publish.go"} {
		code = append(code, found("../../"+file, instrument)...)
	}
	page := found("README.md", "(?m)^\\| `([a-z_.]+)` \\| (\\S+) \\|")
	slices.Sort(code)
	slices.Sort(page)
	if len(code) == 0 || !slices.Equal(code, page) {
		t.Errorf("the page has\n%q\nand the code\n%q", page, code)
	}
}
