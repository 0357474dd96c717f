package lazyregexp_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

func TestRegexp(t *testing.T) {
	r := lazyregexp.New(`([a-z])([0-9])`)
	if got := r.ReplaceAllString("a1 b2", "$2$1"); got != "1a 2b" || !r.MatchString("x9") || r.MatchString("9x") ||
		r.String() != `([a-z])([0-9])` || len(r.FindAllString("a1 b2", 1)) != 1 ||
		r.FindStringSubmatch("-c3")[2] != "3" || len(r.FindAllStringSubmatch("a1 b2", -1)) != 2 ||
		len(r.Split("-a1-b2-", -1)) != 3 || r.ReplaceAllStringFunc("a1", strings.ToUpper) != "A1" {
		t.Errorf("replaced to %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a pattern that cannot be compiled is no panic in a test")
		}
	}()
	lazyregexp.New(`(`)
}

// TestNoneIsCompiledAtStart looks for regular expressions that a function's program would compile before it does
// anything.
func TestNoneIsCompiledAtStart(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testkit" || d.Name() == "widget") {
			return fs.SkipDir // which no function but web has
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(path) == "lazyregexp.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "regexp.MustCompile(") {
			t.Errorf("%s compiles a regular expression; shared/base/lazyregexp does when it is used", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
