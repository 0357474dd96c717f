package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWords checks that each input has a type, that each input and output has a description, and that a test refuses a
// value of each validated input.
func TestWords(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.tf", "*/*.tf", "*/*/*.tf"} {
		found, err := filepath.Glob("../../terraform/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := 0
	for _, file := range files {
		refused := ""
		tests, err := filepath.Glob(filepath.Join(filepath.Dir(file), "tests", "*.hcl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range tests {
			refused += contents(t, test)
		}
		for _, b := range block.FindAllStringSubmatch(contents(t, file), -1) {
			kind, name, body := b[1], b[2], b[3]
			seen++
			if !strings.Contains(body, "  description = ") || kind == "variable" &&
				!regexp.MustCompile(`(?m)^  type +=`).MatchString(body) {
				t.Errorf("%s: %s %s has no description, or no type", file, kind, name)
			}
			if strings.Contains(body, "validation {") && !strings.HasSuffix(file, root+"/main.tf") && // see TestState
				!regexp.MustCompile(`expect_failures = \[[^]]*\bvar\.`+name+`\b`).MatchString(refused) {
				t.Errorf("%s: no test gives %s what it must refuse", file, name)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d inputs and outputs", seen)
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
