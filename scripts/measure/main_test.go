package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMeasure measures a module of four files with known numbers.
func TestMeasure(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"shared/base/fault/fault.go": "package fault\n\nfunc New() int {\n" +
			"\tfor {\n\t\tif true {\n\t\t\treturn 1\n\t\t}\n\t}\n}\n",
		"shared/engine/loop/loop.go": "package loop\n\nimport (\n\t_ \"" + module + "shared/base/fault\"\n" +
			"\t_ \"" + module + "shared/engine/queue\"\n)\n\nfunc a() {}\n",
		"shared/engine/queue/queue.go": "package queue\n\nimport _ \"" + module + "shared/base/fault\"\n\n" +
			"func a() {}\n",
		"shared/engine/queue/queue_test.go":   "package queue\n\n\n\n\n\n\n\n\n\n\n\n",
		"shared/engine/queue/testdata/bad.go": "no Go\n",
		"scripts/prove/main.go":               "package main\n",
		"scripts/dev/main.go":                 "package main\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := measure(&out, root); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		value, _, _ := strings.Cut(line, "\t")
		got = append(got, value)
	}
	if want := "2 3 1 1 3 1 7 2 22 0.6"; strings.Join(got, " ") != want {
		t.Errorf("%s, want %s in:\n%s", got, want, out.String())
	}
}
