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

// TestSample draws from a file of each kind. Tests, code of pages and short texts are left out, and a seed draws the
// same passages each time.
func TestSample(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "// Package a is a package.\npackage a\n\nimport \"errors\"\n\n// F fails.\nfunc F() error {\n" +
			"\treturn errors.New(\"the file is missing\")\n}\n\n// no doc\n\nvar short = errors.New(\"no file\")\n",
		"a_test.go": "// Package a is not drawn.\npackage a\n",
		"page.js":   "// the first three words\nsay('There is no receipt.', 'a-class b-class');\n",
		"README.md": "# The title of a page\n\nA paragraph of words.\n\n    some code of it\n\n" +
			"```\nmore code of it\n```\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var drawn [2]bytes.Buffer
	for i := range drawn {
		if err := sample(&drawn[i], root, 7); err != nil {
			t.Fatal(err)
		}
	}
	const want = "# 2 of 2 doc comments\n\na.go:1\nPackage a is a package.\n\na.go:6\nF fails.\n\n" +
		"# 1 of 1 paragraphs\n\nREADME.md:3\nA paragraph of words.\n\n" +
		"# 2 of 2 messages\n\na.go:8\nthe file is missing\n\npage.js:2\nThere is no receipt.\n\n"
	if drawn[0].String() != want || drawn[1].String() != want {
		t.Errorf("drawn:\n%s", drawn[0].String())
	}
}
