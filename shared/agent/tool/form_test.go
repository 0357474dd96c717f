package tool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestSchemaTypeDescriptions checks the descriptions of Go types whose JSON a model cannot guess. A field can describe
// itself instead.
func TestSchemaTypeDescriptions(t *testing.T) {
	type args struct {
		At    time.Time     `json:"at"`
		Until *time.Time    `json:"until,omitempty"`
		Start time.Time     `json:"start" jsonschema:"when it starts"`
		Wait  time.Duration `json:"wait"`
		Data  []byte        `json:"data"`
	}
	s, err := tool.SchemaOf[args]()
	if err != nil {
		t.Fatal(err)
	}
	const rfc3339 = "A time in RFC 3339, such as 2027-01-05T10:00:00+01:00."
	for field, want := range map[string][3]string{
		"at": {"string", "date-time", rfc3339}, "until": {"string", "date-time", rfc3339},
		"start": {"string", "date-time", "when it starts"}, "wait": {"integer", "", "In nanoseconds."},
		"data": {"string", "", "In base64."},
	} {
		p := s.Properties[field]
		if got := [3]string{p.Type, p.Format, p.Description}; got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
}

type stamped struct {
	time.Time
	Name string
}

// TestEmbeddedValues checks that a struct that embeds a value is refused at any depth, with an error that names the
// solution.
func TestEmbeddedValues(t *testing.T) {
	type deep struct{ All map[string][]*stamped }
	type pointed struct {
		*time.Time
		N int
	}
	type raw struct{ json.RawMessage }
	type span struct{ time.Duration }
	for what, schema := range map[string]func() error{
		"embeds time.Time, which is one value in JSON and has no fields; give it a name": func() error {
			_, err := tool.SchemaOf[stamped]()
			return err
		},
		"tool_test.stamped embeds time.Time": func() error { _, err := tool.SchemaOf[deep](); return err },
		"such as At *time.Time":              func() error { _, err := tool.SchemaOf[pointed](); return err },
		"such as At json.RawMessage":         func() error { _, err := tool.SchemaOf[raw](); return err },
		"such as At time.Duration":           func() error { _, err := tool.SchemaOf[span](); return err },
	} {
		if err := schema(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v; want %q in it", err, what)
		}
	}
	if _, err := tool.SchemaOf[struct{ At time.Time }](); err != nil {
		t.Error(err)
	}
}
