package infra_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// bounded returns values of a parameter at its limits and beyond them, or none for a schema without limits.
func bounded(s *openapi3.Schema) (values []string) {
	switch {
	case s.Type.Is("integer"):
		values = []string{"x", "1.5"}
		for _, limit := range []*float64{s.Min, s.Max} {
			if limit != nil {
				values = append(values, fmt.Sprintf("%.0f", *limit-1), fmt.Sprintf("%.0f", *limit),
					fmt.Sprintf("%.0f", *limit+1))
			}
		}
	case s.MaxLength != nil:
		for _, n := range []int{1, int(*s.MaxLength), int(*s.MaxLength) + 1} {
			values = append(values, strings.Repeat("a", n))
		}
		values = append(values, "a key", "schl\u00fcssel")
	case s.Pattern != "":
		for _, n := range []int{15, 16, 64, 65} {
			values = append(values, strings.Repeat("a", n))
		}
		values = append(values, strings.Repeat("a", 16)+".", strings.Repeat("Az09_-", 4))
	}
	return values
}

// parameters sends every parameter values at its limits and beyond. Values that the schema permits must be accepted,
// and all others refused by name.
func parameters(t *testing.T, d *described) {
	s := d.open(t, nil)
	for id, op := range d.ops {
		inPath := -1 // the index of this parameter among those in the path
		for _, ref := range op.Parameters {
			p := ref.Value
			if p.In == "path" {
				inPath++
			}
			if p.Name == "X-Request-Id" { // it is never refused (see requestIDs)
				continue
			}
			for _, value := range bounded(p.Schema.Value) {
				q := op.plain(t)
				switch p.In {
				case "path":
					q.params[inPath] = value
				case "query":
					q.query = url.Values{p.Name: {value}}.Encode()
				case "header":
					q.header = []string{p.Name, value}
				}
				given := inJSON(t, value)
				if _, err := strconv.ParseFloat(value, 64); err == nil && p.Schema.Value.Type.Is("integer") {
					given = value
				}
				permitted := matches(t, p.Schema.Value, given) == nil
				a := s.call(t, q)
				if refused := a.status == 400 && a.field(t) == p.Name; refused == permitted {
					t.Errorf("%s: %s %q is described as permitted %t, and answered %d %s", id, p.Name, value, permitted,
						a.status, a.body)
				}
			}
		}
	}
	requestIDs(t, s)
}

// field returns the field that an error names.
func (a answer) field(t *testing.T) string {
	t.Helper()
	var f struct{ Error struct{ Field string } }
	a.into(t, &f)
	return f.Error.Field
}

// requestIDs checks that a client's request ID is used if it has the described form, and replaced otherwise.
func requestIDs(t *testing.T, s *stand) {
	pattern := regexp.MustCompile(s.doc.Components.Parameters["RequestId"].Value.Schema.Value.Pattern)
	for _, value := range []string{strings.Repeat("a", 7), strings.Repeat("a", 8), strings.Repeat("Z", 64),
		strings.Repeat("a", 65), "with a space", "letters_09-"} {
		a := s.want(t, 200, ask{op: "health", header: []string{"X-Request-Id", value}})
		if taken := a.header.Get("X-Request-Id") == value; taken != pattern.MatchString(value) {
			t.Errorf("the request ID %q: used is %t", value, taken)
		}
	}
}
