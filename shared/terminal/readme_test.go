package terminal_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/readme"
)

// TestReadme holds README.md to the items of seed 002, each of which has a row, and to tests that are there.
func TestReadme(t *testing.T) {
	text := readme.Check(t)
	for item := 1; item <= 15; item++ {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| 002-%02d \|.*$`, item)).FindString(text)
		if !readme.NamesTest(row) {
			t.Errorf("002-%02d has no test: %q", item, row)
		}
	}
}
