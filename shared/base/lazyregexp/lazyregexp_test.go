package lazyregexp_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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

// TestLazyRegexps looks for regular expressions that a function or the local server would compile before it
// does anything.
func TestLazyRegexps(t *testing.T) {
	for _, root := range []string{"../..", "../../testkit/fakegemini", "../../testkit/fakegithub",
		"../../testkit/fakegoogle", "../../testkit/issuer", "../../../scripts/dev/demohost",
		"../../../scripts/dev/demomodel", "../../../scripts/dev/local", "../../../scripts/dev/shop"} {
		err := filepath.WalkDir(root, notCompiled(t))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// notCompiled reports files that compile a regular expression for a variable.
func notCompiled(t *testing.T) fs.WalkDirFunc {
	return func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testkit" || d.Name() == "widget") {
			return fs.SkipDir // of these, the programs link only the packages that TestLazyRegexps lists
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			filepath.Base(path) == "lazyregexp.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if atStart.Match(text) {
			t.Errorf("%s compiles a regular expression at the start; use shared/base/lazyregexp", path)
		}
		return err
	}
}

// atStart matches a variable that is initialized with a compiled regular expression.
var atStart = regexp.MustCompile(`(?m)^(?:var \w+|\t\w+) += regexp\.MustCompile\(`)
