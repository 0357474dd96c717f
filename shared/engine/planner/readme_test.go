package planner_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/readme"
)

// TestReadme checks that README.md has a row for each item of seed 004, and names only existing tests and scenarios.
func TestReadme(t *testing.T) {
	text := readme.Check(t)
	rows := []string{"action JSON", "dotenv"}
	for item := 1; item <= 23; item++ {
		rows = append(rows, fmt.Sprintf("004-%02d", item))
	}
	for _, name := range rows {
		row := regexp.MustCompile(`(?m)^\| ` + name + ` \|.*$`).FindString(text)
		if !readme.NamesTest(row) {
			t.Errorf("%s has no test: %q", name, row)
		}
	}
	named := regexp.MustCompile("`TestScenarios` \\(([a-z, -]+)\\)").FindAllStringSubmatch(text, -1)
	if len(named) == 0 {
		t.Error("README.md names no scenario")
	}
	for _, those := range named {
		for _, name := range strings.Split(those[1], ", ") {
			if _, err := os.Stat("../loop/testdata/scenarios/" + name + ".txt"); err != nil {
				t.Errorf("scenario %q: %v", name, err)
			}
		}
	}
}
