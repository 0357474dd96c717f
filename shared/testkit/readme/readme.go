// Package readme checks that the tests that READMEs name exist.
package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	named = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	tests = regexp.MustCompile(`(?m)^func (\w+)\(\w+ \*testing\.`)
)

// Check fails the test for each test that the README of its folder names in backquotes and that does not exist. It
// returns the README.
func Check(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	err = filepath.WalkDir(root(t), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range tests.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range named.FindAllStringSubmatch(string(text), -1) {
		if !there[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	return string(text)
}

// root returns the folder of the repository, which has go.mod.
func root(t *testing.T) string {
	t.Helper()
	for dir := ".."; len(dir) < 64; dir = filepath.Join(dir, "..") {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("there is no go.mod above this folder")
	return ""
}

// NamesTest reports whether a part of a README names a test.
func NamesTest(text string) bool { return named.MatchString(text) }
