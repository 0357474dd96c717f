package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/figures"
)

// TestRemoteCheckCost checks the limit on the cost of a check. A page defines the schema and, through its requests to
// the model, also influences the arguments.
func TestRemoteCheckCost(t *testing.T) {
	list := func(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	tl, err := tool.Remote("x", "x",
		json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[`+list(`{"const":"x"}`,
			900)+`,{"type":"integer"}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	dear := json.RawMessage(`{"a":[` + list("1", 100_000) + `]}`)
	took := figures.Allocated(func() { _, err = tl.Normalize(dear) })
	if err == nil || fault.As(err).Class != fault.Validation || !strings.Contains(err.Error(), "too large to check") {
		t.Errorf("%v; want an error, fault.As(err).Class %v, the error with “too large to check”",
			err, fault.Validation)
	}
	if took > 16<<20 { // without the limit, the check takes gigabytes
		t.Errorf("allocated %d MiB; the limit is 16", took>>20)
	}
	if _, err := tl.Normalize(json.RawMessage(`{"a":[` + list("1", 100) + `]}`)); err != nil {
		t.Errorf("%v", err)
	}
}

// TestRemoteSchemaForModel checks that the model gets a schema that the service accepts, whatever a page wrote (see
// fakegemini.CheckDeclarations).
func TestRemoteSchemaForModel(t *testing.T) {
	tl, err := tool.Remote("x", "x", json.RawMessage(`{"type":"object","required":["gone","list"],"anyOf":[{"required":["list"]},{"required":["any"]}],
		"properties":{"any":{"description":"d"},"list":{"type":"array"},"rows":{"type":["array","null"],"items":{"type":"array","items":{}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const anything = `{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"}]}`
	want := `{"description":"It must also fit this JSON Schema: {\"anyOf\":[{\"required\":[\"list\"]},{\"required\":[\"any\"]}]}",` +
		`"properties":{"any":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"}],"description":"d"},` +
		`"gone":` + anything + `,"list":{"items":` + anything + `,"type":"array"},"rows":{"items":{"items":` + anything +
		`,"type":"array"},"type":["array","null"]}},"required":["gone","list"],"type":"object"}`
	if string(tl.Schema) != want {
		t.Errorf("got  %s\nwant %s", tl.Schema, want)
	}
	if _, err := tl.Normalize(json.RawMessage(`{"any":[[1]]}`)); err == nil {
		t.Error("a rule that the model does not see is not enforced")
	}
	if _, err := tl.Normalize(json.RawMessage(`{"gone":1,"list":[[1]]}`)); err != nil {
		t.Errorf("%v", err)
	}
}

// TestRemoteEmptyEnumValue checks that the model's schema has no empty text among its values, with which Gemini refuses
// the whole request, and that a call may still have it.
func TestRemoteEmptyEnumValue(t *testing.T) {
	tl, err := tool.Remote("x", "x", json.RawMessage(`{"properties":{"a":{"type":"string","enum":["on",""]},`+
		`"b":{"anyOf":[{"type":"string","enum":[""]},{"type":"null"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{"a":{"description":"It may also be empty.","enum":["on"],"type":"string"},"b":{"anyOf":` +
		`[{"description":"It must be empty.","type":"string"},{"type":"null"}]}},"type":"object"}`
	if string(tl.Schema) != want {
		t.Errorf("got  %s\nwant %s", tl.Schema, want)
	}
	if _, err := tl.Normalize(json.RawMessage(`{"a":"","b":""}`)); err != nil {
		t.Error(err)
	}
	if _, err := tl.Normalize(json.RawMessage(`{"b":"x"}`)); err == nil {
		t.Error("a value outside of the list is accepted")
	}
}

// TestRemoteForeignSchemas checks schemas from public servers that leave out a type, name a property only under
// required, or have keywords of another type. The model gets what the server meant.
func TestRemoteForeignSchemas(t *testing.T) {
	const anything = `{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"}]}`
	for in, want := range map[string]string{
		`{"properties":{"q":{"type":"string"}}}`: `{"type":"object","properties":{"q":{"type":"string"}}}`,
		`{}`:                                     `{"type":"object"}`,
		`{"type":["object","null"]}`:             `{"type":"object"}`,
		`{"$ref":"#/definitions/A","definitions":{"A":{"type":"object","properties":{"q":{"type":"string"}}}}}`: `{"type":"object","properties":{"q":{"type":"string"}}}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","required":["id"]}}}}`:     `{"properties":{"l":{"items":{"properties":{"id":` + anything + `},"required":["id"],"type":"object"},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"e":{"enum":["a","b"]}}}`:                                               `{"properties":{"e":{"enum":["a","b"],"type":"string"}},"type":"object"}`,
		`{"type":"object","properties":{"e":{"enum":["a",1]}}}`:                                                 `{"properties":{"e":{"anyOf":[{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"object"}],"description":"It must also fit this JSON Schema: {\"enum\":[\"a\",1]}"}},"type":"object"}`,
		`{"type":"object","properties":{"o":{"properties":{"x":{"type":"string"}}},"l":{"items":{"type":"string"}}}}`: `{"properties":{"l":{"items":{"type":"string"},"type":"array"},` +
			`"o":{"properties":{"x":{"type":"string"}},"type":"object"}},"type":"object"}`,
		`{"type":"object","properties":{"s":{"type":"string","properties":{"x":{}},"required":["x"],"items":{}}}}`: `{"properties":{"s":{"type":"string"}},"type":"object"}`,
	} {
		tl, err := tool.Remote("x", "x", json.RawMessage(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if string(tl.Schema) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, tl.Schema, want)
		}
	}
}

// TestRemoteUnsupportedParts checks that the parts of a schema that the service does not accept are added to the
// description, and are enforced when the call comes. Formats are only described.
func TestRemoteUnsupportedParts(t *testing.T) {
	tl, err := tool.Remote("x", "x", json.RawMessage(`{"type":"object","properties":{
		"key":{"type":"string","pattern":"^[a-z]+$"},"mail":{"type":"string","format":"email"},
		"tags":{"type":"array","items":{"type":"string"},"uniqueItems":true},
		"map":{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"pattern":"^[a-z]+$"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, told := range []string{`"pattern":"^[a-z]+$"`, `fit this JSON Schema: {\"uniqueItems\":true}`,
		`"additionalProperties":{"type":"string"}`, `{\"propertyNames\":`, `{\"format\":\"email\"}`} {
		if !strings.Contains(string(tl.Schema), told) {
			t.Errorf("%s is missing in the declared schema: %s", told, tl.Schema)
		}
	}
	for args, fits := range map[string]bool{`{"key":"a","tags":["a","b"],"map":{"k":"v"}}`: true, `{"mail":""}`: true,
		`{"key":"A"}`: false, `{"tags":["a","a"]}`: false, `{"map":{"k":1}}`: false, `{"map":{"K":"v"}}`: false} {
		if _, err := tl.Normalize(json.RawMessage(args)); (err == nil) != fits {
			t.Errorf("%s: %v; want (err == nil) %v", args, err, fits)
		}
	}
}
