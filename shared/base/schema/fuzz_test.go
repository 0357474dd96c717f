package schema_test

import (
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/schema"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// FuzzImport checks, with 512 MiB and a second, that any input is either refused with the place of the fault, or
// imported to a schema that is within the limits, is unchanged by a second import, and can be used for validation.
func FuzzImport(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`,
		`{"type":"object","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		`{"type":"object","properties":{"x":{"type":"string","pattern":"` + strings.Repeat("(?:a.a.){1000}", 10) +
			`"}}}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"number"}}},{"properties":{"a":{"type":"integer","maximum":9}},"required":["a"]}]}`,
		`{"type":["object","null"],"anyOf":[{"required":["a"]},{"oneOf":[{"const":1},{"enum":[1,"a",null]}]}],"nullable":true}`,
		`{"definitions":{"a":{"type":"array","items":true}},"$ref":"#/definitions/a","minItems":1,"maxItems":2,"title":"t","default":[1]}`,
		nested(16), nested(17), `{"$ref":"#/$ref"}`, `{"properties":{"":{"$ref":"#/properties/~01"},"~1":{}}}`,
		`{"minimum":9007199254740993}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		late := time.AfterFunc(await.Most, func() { panic("this schema takes too long: " + string(raw)) })
		defer late.Stop()
		s, err := schema.Import(raw)
		if err != nil {
			var bad *fault.Error
			if !errors.As(err, &bad) || bad.Class != fault.Validation || bad.Message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if n, deep := size(s, 0); n > schema.MaxNodes || deep > schema.MaxDepth {
			t.Fatalf("%d parts, %d deep", n, deep)
		}
		once, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		for _, value := range []any{map[string]any{"a": []any{1.0, "x"}}, nil, []any{map[string]any{}}} {
			_ = resolved.Validate(value) // whether it is valid does not matter here
		}
		if len(once) > schema.MaxBytes || string(once) == "true" {
			return // the expanded schema is too large for Import, or accepts every value
		}
		again, err := schema.Import(once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		twice, err := json.Marshal(again)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%s\nbecomes %s, %v", once, twice, err)
		}
	})
}

// size returns the number of schemas in s, itself included, and the depth of their nesting.
func size(s *jsonschema.Schema, depth int) (n, deep int) {
	n, deep = 1, depth
	for _, p := range s.AllOf { // next to the schema, not nested
		m, d := size(p, depth)
		n, deep = n+m, max(deep, d)
	}
	own := *s
	own.AllOf = nil
	for _, below := range []iter.Seq[*jsonschema.Schema]{schema.Alternatives(&own), schema.Inside(s)} {
		for p := range below {
			m, d := size(p, depth+1)
			n, deep = n+m, max(deep, d)
		}
	}
	return n, deep
}
