package fields_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fields"
)

type host struct {
	Name  string
	Port  int
	Paths []string
}

// errors collects the errors of a test.
type errors struct {
	testing.TB
	found []string
}

func (e *errors) Helper() {}

func (e *errors) Errorf(format string, args ...any) {
	e.found = append(e.found, fmt.Sprintf(format, args...))
}

// TestCheck compares structs that are equal, that differ in two fields, and that differ where nothing is wanted.
func TestCheck(t *testing.T) {
	got := host{"web", 22, []string{"/srv"}}
	for name, tt := range map[string]struct {
		want  host
		found []string
	}{
		"equal":   {got, nil},
		"partial": {host{Name: "web"}, nil},
		"two": {host{Name: "db", Port: 22, Paths: []string{"/var"}},
			[]string{"host.Name is web; want db", "host.Paths is [/srv]; want [/var]"}},
	} {
		e := &errors{}
		fields.Check(e, got, tt.want)
		if !slices.Equal(e.found, tt.found) {
			t.Errorf("%s: found %q; want %q", name, e.found, tt.found)
		}
	}
}
