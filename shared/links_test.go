package shared_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnID  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestLinks checks that each relative link in a Markdown page leads to a file, and its anchor to a heading there.
func TestLinks(t *testing.T) {
	pages := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		pages[path] = string(text)
		return err
	})
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for from, text := range pages {
		for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
			path, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, ":") || strings.HasPrefix(path, "/") {
				continue // an address
			}
			to := from
			if path != "" {
				to = filepath.Join(filepath.Dir(from), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: the link %s leads nowhere", from, link[1])
			} else if anchor != "" && !hasHeading(pages[to], anchor) {
				t.Errorf("%s: %s has no heading #%s", from, to, anchor)
			}
		}
	}
}

// hasHeading reports whether a heading of a page has the anchor, by GitHub's rule for headings of ASCII.
func hasHeading(page, anchor string) bool {
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		id := strings.ReplaceAll(notAnID.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		if id == anchor {
			return true
		}
	}
	return false
}
