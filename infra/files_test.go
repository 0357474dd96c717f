package infra_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboards checks that each dashboard is JSON with a title, and that its tiles fit into the columns.
func TestDashboards(t *testing.T) {
	for _, file := range files(t, "dashboards/*.json") {
		var d struct {
			DisplayName  string `json:"displayName"`
			MosaicLayout struct {
				Columns int `json:"columns"`
				Tiles   []struct {
					XPos, Width, Height int
					Widget              struct{ Title string }
				} `json:"tiles"`
			} `json:"mosaicLayout"`
		}
		if err := json.Unmarshal(text(t, file), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.DisplayName == "" || len(d.MosaicLayout.Tiles) == 0 {
			t.Errorf("%s has no name or no tiles", file)
		}
		for _, tile := range d.MosaicLayout.Tiles {
			if tile.Widget.Title == "" || tile.Width < 1 || tile.Height < 1 ||
				tile.XPos+tile.Width > d.MosaicLayout.Columns {
				t.Errorf("%s: tile %q does not fit", file, tile.Widget.Title)
			}
		}
	}
}

// TestRunbooks checks that each runbook has a title and instructions, and fits into an alert (8 KiB). A test in
// terraform/ checks that each alert has a runbook.
func TestRunbooks(t *testing.T) {
	for _, file := range files(t, "runbooks/*.md") {
		body := string(text(t, file))
		if !strings.HasPrefix(body, "# ") || len(body) > 8000 || strings.Count(body, "\n") < 3 {
			t.Errorf("%s is not a runbook of at most 8000 bytes", file)
		}
	}
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s, %v", pattern, err)
	}
	return found
}

func text(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
