package tool_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/tool"
)

// TestTypesSayTheirForm describes the Go types whose JSON a model cannot guess, unless a field describes itself.
func TestTypesSayTheirForm(t *testing.T) {
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
