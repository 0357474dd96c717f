package readme

import (
	"os"
	"strings"
	"testing"
)

// Section compares the part of a page between the lines begin and end with the generated text. If they differ, Section
// writes the text if update is set; otherwise the test fails.
func Section(t *testing.T, file, begin, end, want string, update bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s lacks the lines %s%s", file, begin, end)
	case got == want:
	case !update:
		t.Fatalf("%s is out of date (-update writes it); only in the page:\n%s\nonly in the generated text:\n%s", file,
			except(got, want), except(want, got))
	default:
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// except returns the lines of a that are not in b.
func except(a, b string) string {
	in := map[string]bool{}
	for l := range strings.Lines(b) {
		in[l] = true
	}
	var only strings.Builder
	for l := range strings.Lines(a) {
		if !in[l] {
			only.WriteString(l)
		}
	}
	return only.String()
}
