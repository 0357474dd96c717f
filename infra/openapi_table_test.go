package infra_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRouteTable compares the table of routes in shared/api's README with the description. Each route must be in both.
func TestRouteTable(t *testing.T) {
	text, err := os.ReadFile("../shared/api/README.md")
	if err != nil {
		t.Fatal(err)
	}
	described, told := map[string]bool{}, map[string]bool{}
	for path, item := range description(t).Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !tableRow.MatchString(cells[1]) {
			continue
		}
		for _, route := range routesOf(cells[1]) {
			told[route] = true
		}
	}
	for _, route := range slices.Sorted(maps.Keys(described)) {
		if !told[route] {
			t.Errorf("%s is described, but not in the table", route)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(told)) {
		if !described[route] {
			t.Errorf("%s is in the table, but not described", route)
		}
	}
}

// tableRow matches the first cell of a row of routes: methods, then a path.
var tableRow = regexp.MustCompile(`^ (GET|POST|PATCH|DELETE)[ ,][^|]*/`)

// routesOf returns the routes of a row. A path without a method has the methods of the path before it.
func routesOf(cell string) (routes []string) {
	prefix := "/api/agent"
	if strings.Contains(cell, "(without the prefix)") {
		prefix = ""
	}
	var methods []string
	ended := false
	for _, word := range strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(" ,;", r) }) {
		switch {
		case slices.Contains([]string{"GET", "POST", "PATCH", "DELETE"}, word):
			if ended {
				methods, ended = nil, false
			}
			methods = append(methods, word)
		case strings.HasPrefix(word, "/"):
			path, _, _ := strings.Cut(word, "?")
			for _, m := range methods {
				routes = append(routes, m+" "+prefix+path)
			}
			ended = true
		}
	}
	return routes
}
