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

// TestCheck compares structs that are equal, that differ in two fields, that differ in a field that is zero in want,
// and that are in a named case.
func TestCheck(t *testing.T) {
	got := host{"web", 22, []string{"/srv"}}
	for name, tt := range map[string]struct {
		want  host
		of    []any
		found []string
	}{
		"equal":   {host{"web", 22, []string{"/srv"}}, nil, nil},
		"partial": {host{Name: "web"}, nil, nil},
		"two": {host{Name: "db", Port: 22, Paths: []string{"/var"}}, nil,
			[]string{"host.Name is web; want db", "host.Paths is [/srv]; want [/var]"}},
		"case": {host{Port: 2222}, []any{"a file"}, []string{"a file: host.Port is 22; want 2222"}},
	} {
		e := &errors{}
		fields.Check(e, got, tt.want, tt.of...)
		if !slices.Equal(e.found, tt.found) {
			t.Errorf("%s: found %q; want %q", name, e.found, tt.found)
		}
	}
}
