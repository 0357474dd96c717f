package terminal_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/readme"
)

// TestReadme checks that README.md has a row for each item of seed 002, and that the tests named there exist.
func TestReadme(t *testing.T) {
	text := readme.Check(t)
	for item := 1; item <= 15; item++ {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| 002-%02d \|.*$`, item)).FindString(text)
		if !readme.NamesTest(row) {
			t.Errorf("002-%02d has no test: %q", item, row)
		}
	}
}
