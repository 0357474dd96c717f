package mcpclient_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/mcpclient"
)

// TestSchemasOfPrograms checks schemas in the forms of public servers: a server's tool is used, its right call is
// accepted and its wrong one is refused.
func TestSchemasOfPrograms(t *testing.T) {
	var list []map[string]any
	cases := map[string]struct{ schema, right, wrong string }{
		"defaults_of_null": { // Pydantic writes them for optional fields
			`{"type":"object","$defs":{"Q":{"type":"object","properties":{"ids":{"type":"array","default":null},"limit":{"type":"integer","default":20}}}},"properties":{"q":{"$ref":"#/$defs/Q"}}}`,
			`{"q":{}}`, `{"q":{"ids":1}}`},
		"types_of_python": {`{"properties":{"a":{"type":"float"},"b":{"type":"dict"},"c":{"type":["str","None"]}}}`,
			`{"a":1.5,"b":{}}`, `{"a":"x"}`},
		"a_nullable_object": {`{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		"a_dynamic_reference": {
			`{"$dynamicAnchor":"args","type":"object","properties":{"f":{"type":"string"},"in":{"$dynamicRef":"#args"}},"required":["f"]}`,
			`{"f":"a","in":{"f":"b"}}`, `{"f":"a","in":{}}`},
		"moved_definitions": {
			`{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"$defs":{"A":{"type":"string"}}}`,
			`{"a":"x"}`, `{"a":[]}`},
		"no_values": {`{"type":"object","properties":{"a":{"type":"string","enum":[]}},"required":"a"}`, `{"a":"x"}`,
			`{}`},
		"nullable_values": {`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"nullable":true}},"required":["a"]}`,
			`{"a":null}`, `{"a":"y"}`},
	}
	for name, c := range cases {
		list = append(list, map[string]any{"name": name, "inputSchema": json.RawMessage(c.schema)})
	}
	url, _ := lister(t, list)
	used, refusals, err := connect(t, mcpclient.Config{URL: url}).Tools(t.Context(), mcpclient.Choice{})
	if err != nil || len(used) != len(cases) {
		t.Errorf("%d of %d tools, %v %v", len(used), len(cases), refusals, err)
	}
	for _, tl := range used {
		if _, err := tl.Normalize(json.RawMessage(cases[tl.Name].right)); err != nil {
			t.Errorf("%s: %v", tl.Name, err)
		}
		if got, err := tl.Normalize(json.RawMessage(cases[tl.Name].wrong)); err == nil {
			t.Errorf("%s: %s is accepted", tl.Name, got)
		}
	}
}

// TestSchemaLargeNumber checks that a number in one tool's definition leaves out that tool alone.
func TestSchemaLargeNumber(t *testing.T) {
	url, _ := lister(t, []map[string]any{
		{"name": "vast", "inputSchema": json.RawMessage(`{"type":"object","properties":{"a":{"minimum":-1e400}}}`)},
		{"name": "plain", "inputSchema": json.RawMessage(`{"type":"object"}`),
			"annotations": json.RawMessage(`{"readOnlyHint":1e400}`), "outputSchema": json.RawMessage(`1e999`)}})
	used, refusals, err := connect(t, mcpclient.Config{URL: url}).Tools(t.Context(), mcpclient.Choice{})
	if err != nil || len(used) != 1 || used[0].Name != "plain" || len(refusals) != 1 || refusals[0].Tool != `"vast"` {
		t.Errorf("%v %v %v; want len(used) 1, used[0].Name “plain”, len(refusals) 1, refusals[0].Tool %q",
			tool.NewSet(used...), refusals, err, `"vast"`)
	}
}
