package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestBareArguments checks that facts which no schema has are dropped at each depth, and that a required argument is
// still missed.
func TestBareArguments(t *testing.T) {
	type item struct {
		Name string `json:"name"`
		Is   *int   `json:"is,omitempty"`
	}
	type args struct {
		Subject string   `json:"subject"`
		To      []string `json:"to,omitempty"`
		Items   []item   `json:"items,omitempty"`
	}
	plain := tool.Define(tool.Def[args, struct{}]{
		Name: "plain", Description: "d",
		Refine: func(s *jsonschema.Schema) { delete(s.Properties["items"].Items.Properties, "is") },
		Bare: func(a args) args {
			items := a.Items
			a.Items = nil
			for _, one := range items {
				a.Items = append(a.Items, item{Name: one.Name})
			}
			return a
		},
		Execute: func(context.Context, tool.Call, args) (struct{}, error) { return struct{}{}, nil },
	})
	for in, want := range map[string]string{
		`{"subject":"s","items":[{"name":"a","is":1},{"name":"b"}]}`: `{"items":[{"name":"a"},{"name":"b"}],"subject":"s"}`,
		`{"subject":"s","to":["<a>"],"items":[{"name":"a","is":1}]}`: `{"items":[{"name":"a"}],"subject":"s","to":["<a>"]}`,
		`{"subject":"s"}`:                    `{"subject":"s"}`,
		`{"items":[{"name":"a","is":1}]}`:    "",
		`{"subject":"s","items":[{"is":1}]}`: "",
	} {
		got, err := plain.Normalize(json.RawMessage(in))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s becomes %s, %v; want %q", in, got, err, want)
		}
	}
}
