package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

func TestWithReasoning(t *testing.T) {
	for name, tl := range tools {
		spec, err := plan.WithReasoning(tl.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var with, without jsonschema.Schema
		if err := json.Unmarshal(spec.Schema, &with); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(tl.Schema, &without); err != nil {
			t.Fatal(err)
		}
		if with.Properties["reasoning"] == nil || len(with.Properties) != len(without.Properties)+1 ||
			len(with.Required) != len(without.Required)+1 {
			t.Errorf("%s: %s", name, spec.Schema)
		}
		if again, err := plan.WithReasoning(spec); err != nil || string(again.Schema) != string(spec.Schema) {
			t.Errorf("%s: %v, %s", name, err, again.Schema)
		}
	}
	if _, err := plan.WithReasoning(tool.Spec{Schema: json.RawMessage(`{`)}); err == nil {
		t.Error("an invalid schema was accepted")
	}
}

func TestTakeReasoning(t *testing.T) {
	spec := tools["github.readFile"].Spec
	for in, want := range map[string]string{
		`{"reasoning":"To know.","path":"a"}`:                    `{"path":"a"}`,
		`{ "path" : "<a>" , "n" : 1.0 , "reasoning":"To know."}`: `{"path":"<a>","n":1.0}`,
		`{"reasoning":"To know."}`:                               `{}`,
		`{"in":{"reasoning":"x"},"reasoning":"To know."}`:        `{"in":{"reasoning":"x"}}`,
	} {
		rest, why, err := plan.TakeReasoning(spec, json.RawMessage(in))
		if err != nil || string(rest) != want || why != "To know." {
			t.Errorf("%s: %s, %q, %v; want rest %v, why “To know.”", in, rest, why, err, want)
		}
	}
	for in, field := range map[string]string{`{"path":"a"}`: "reasoning", `{"reasoning":7}`: "reasoning",
		`{"reasoning":"\u200b"}`: "reasoning", `[]`: "", `{"reasoning":"a","reasoning":"b"}`: "reasoning",
		`{"reasoning":"` + strings.Repeat("a", plan.MaxReasoning+1) + `"}`: "reasoning", `{"reasoning":"a"`: "reasoning"} {
		_, _, err := plan.TakeReasoning(spec, json.RawMessage(in))
		fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: field}, in)
	}
	own, err := plan.WithReasoning(spec) // now a tool that has the argument itself
	if err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`{"reasoning":7}`)
	if rest, why, err := plan.TakeReasoning(own, args); err != nil || string(rest) != string(args) || why != "" {
		t.Errorf("%s, %q, %v", rest, why, err)
	}
}
