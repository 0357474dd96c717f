package store_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/store"
)

// FuzzValidPath checks that a path that ValidPath accepts splits and joins again, and has no segment that is empty or
// "..".
func FuzzValidPath(f *testing.F) {
	for _, seed := range []string{
		"runs/a", "runs/a/events/000001", "", "runs", "runs/", "/runs/a", "runs//a", "runs/../a", "../threads/x",
		"threads%2Fx/y", "runs/a\x00b", "runs/__x__",
		"runs/\xff", "runs/ana@example.com", "runs/" + strings.Repeat("x", 1501), strings.Repeat("a/b/", 101), "runs/😀",
		"runs/____", "runs/___", `runs\a/b`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		err := store.ValidPath(path)
		segments := strings.Split(path, "/")
		bad := len(segments)%2 != 0 || len(segments) > 200 || len(path) > 5<<10 || !utf8.ValidString(path) ||
			strings.Contains(path, "\x00")
		for _, s := range segments {
			bad = bad || s == "" || s == "." || s == ".." || len(s) > 1500 || len(s) > 3 && s[:2] == "__" &&
				s[len(s)-2:] == "__"
		}
		if bad != (err != nil) {
			t.Fatalf("%q gave %v", path, err)
		}
		if err != nil {
			if !errors.Is(err, store.ErrBadPath) {
				t.Fatalf("%q gave %v", path, err)
			}
			return
		}
		if collection, id := store.SplitPath(path); collection+"/"+id != path || strings.Contains(id, "/") {
			t.Fatalf("%q was cut into %q and %q", path, collection, id)
		}
	})
}

// An error may be logged, and a path may contain a person's address.
func TestErrorsWithoutPaths(t *testing.T) {
	secret := "ana@example.com"
	for _, err := range []error{
		store.ValidPath("allowlist/" + secret + "/"),
		store.CheckCommit([]store.Write{store.Create("users/"+secret, map[string]any{"n": 1}, nil)}),
		store.CheckCommit([]store.Write{store.Create("users/x", map[string]any{secret: "x"}, nil)}),
		store.CheckCommit([]store.Write{store.Create("users/x", map[string]any{"n": []string{secret}}, nil)}),
	} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("gave %v", err)
		}
	}
}
