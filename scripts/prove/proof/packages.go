package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package is a Go package that has tests.
type Package struct {
	Path  string
	Name  string   // the import path without the module's
	Dir   string   // the folder in which the tests run
	Tests []string // the full paths of the test files
}

// Packages returns the packages that match the patterns and have tests. Patterns are those of the go command; without a
// pattern, all packages match.
func Packages(ctx context.Context, patterns ...string) (found []Package, err error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	args := append([]string{"list", "-json=ImportPath,Dir,Module,TestGoFiles,XTestGoFiles"}, patterns...)
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%w: %s", ErrUsage, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	for list := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir           string
			Module                    struct{ Path string }
			TestGoFiles, XTestGoFiles []string
		}
		if err := list.Decode(&p); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return found, err
		}
		var tests []string
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			tests = append(tests, filepath.Join(p.Dir, file))
		}
		if len(tests) > 0 {
			name := strings.TrimPrefix(p.ImportPath, p.Module.Path+"/")
			found = append(found, Package{Path: p.ImportPath, Name: name, Dir: p.Dir, Tests: tests})
		}
	}
}

// Build builds the package's test binary as the file, with the flags of go test. The error contains the go command's
// output.
func (p Package) Build(ctx context.Context, file string, flags ...string) error {
	args := append([]string{"test", "-c", "-ldflags=-s -w", "-o", file}, flags...)
	if out, err := exec.CommandContext(ctx, "go", append(args, p.Path)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
