package tool_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

type plenty struct {
	To    []string  `json:"to"`
	CC    []string  `json:"cc,omitempty"`
	N     int       `json:"n,omitempty"`
	Share float64   `json:"share,omitempty"`
	Loud  bool      `json:"loud,omitempty"`
	Text  string    `json:"text,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Where *place    `json:"where,omitempty"`
	Many  []place   `json:"many,omitempty"`
}

// plentyOf returns the same tool twice: with a schema from the Go type, and declared with that schema.
func plentyOf(t *testing.T) map[string]*tool.Tool {
	t.Helper()
	s, err := tool.SchemaOf[plenty]()
	if err != nil {
		t.Fatal(err)
	}
	declared, err := tool.Declare(tool.Declaration{Name: "tell", Description: "Tells.", Input: s})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := tool.Declare(tool.Declaration{Name: "tell", Description: "Tells.", Input: s, Source: "somebody"})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*tool.Tool{"defined": tool.Define(tool.Def[plenty, answer]{Name: "tell", Description: "Tells."}),
		"declared": declared, "a stranger's": stranger}
}

// TestNearMisses lists arguments that clients and models send and that do not fit the schema. Some are corrected, as
// the card then shows; others are refused with a message that names the field and the type.
func TestNearMisses(t *testing.T) {
	for name, c := range map[string]struct{ in, want, field, why string }{
		"null for an optional list": {in: `{"to":["a"],"cc":null}`, want: `{"to":["a"]}`},
		"null for an optional text": {in: `{"to":["a"],"text":null}`, want: `{"to":["a"]}`},
		"null for an optional object": {in: `{"to":["a"],"where":null,"at":null,"n":null}`,
			want: `{"to":["a"]}`},
		"a list in a text": {in: `{"to":"[\"a\", \"b\"]"}`, want: `{"to":["a","b"]}`},
		"a list of objects in a text": {in: `{"to":["a"],"many":"[{\"city\":\"Ulm\"}]"}`,
			want: `{"many":[{"city":"Ulm"}],"to":["a"]}`},
		"an object in a text": {in: `{"to":["a"],"where":"{\"city\":\"Ulm\"}"}`,
			want: `{"to":["a"],"where":{"city":"Ulm"}}`},
		"objects in texts in a list": {in: `{"to":["a"],"many":["{\"city\":\"Ulm\"}"]}`,
			want: `{"many":[{"city":"Ulm"}],"to":["a"]}`},
		"a whole number in a text": {in: `{"to":["a"],"n":"5"}`, want: `{"n":5,"to":["a"]}`},
		"a number in a text":       {in: `{"to":["a"],"share":"0.5"}`, want: `{"share":0.5,"to":["a"]}`},
		"true in a text":           {in: `{"to":["a"],"loud":"true"}`, want: `{"loud":true,"to":["a"]}`},
		"a text that looks so":     {in: `{"to":["[]"],"text":"[1]"}`, want: `{"text":"[1]","to":["[]"]}`},
		"the text null": {in: `{"to":["null"],"text":"null"}`,
			want: `{"text":"null","to":["null"]}`},

		"null for what is required": {in: `{"to":null}`, field: "to", why: "must be a list"},
		"nothing":                   {in: `{}`, field: "to", why: "required: a list"},
		"nothing within": {in: `{"to":["a"],"where":{}}`,
			field: "where/city", why: "required: a text"},
		"one value for a list":  {in: `{"to":"a"}`, field: "to", why: "must be a list"},
		"some values in a text": {in: `{"to":"a, b"}`, field: "to", why: "must be a list"},
		"half a list in a text": {in: `{"to":"[\"a\""}`, field: "to", why: "must be a list"},
		"an object for a list":  {in: `{"to":{"0":"a"}}`, field: "to", why: "must be a list"},
		"a name twice in a text": {in: `{"to":["a"],"where":"{\"city\":\"a\",\"city\":\"b\"}"}`,
			field: "where", why: "must be an object"},
		"a number for a text": {in: `{"to":["a"],"text":5}`, field: "text", why: "must be a text"},
		"a fraction": {in: `{"to":["a"],"n":"5.5"}`,
			field: "n", why: "must be a whole number"},
		"a number with a sign": {in: `{"to":["a"],"n":"+5"}`,
			field: "n", why: "must be a whole number"},
		"a number with zeros": {in: `{"to":["a"],"n":"05"}`,
			field: "n", why: "must be a whole number"},
		"a number with a comma": {in: `{"to":["a"],"share":"0,5"}`,
			field: "share", why: "must be a number"},
		"a number that is rounded": {in: `{"to":["a"],"n":"9007199254740993"}`,
			field: "n", why: "must be a whole number"},
		"yes": {in: `{"to":["a"],"loud":"yes"}`,
			field: "loud", why: "must be true or false"},
		"1 for true": {in: `{"to":["a"],"loud":1}`,
			field: "loud", why: "must be true or false"},
		"the text null for a list": {in: `{"to":"null"}`, field: "to", why: "must be a list"},
		"words for a time":         {in: `{"to":["a"],"at":5}`, field: "at"},
	} {
		for made, tl := range plentyOf(t) {
			t.Run(name+", "+made, func(t *testing.T) {
				got, err := tl.Normalize(json.RawMessage(c.in))
				if c.want != "" {
					again, err2 := tl.Normalize(got)
					if err != nil || string(got) != c.want || string(again) != c.want {
						t.Errorf("%s %v, then %s %v; want %s", got, err, again, err2, c.want)
					}
					return
				}
				f := fault.As(err)
				if err == nil || f.Field != c.field || c.why != "" && f.Message != c.why {
					t.Errorf("%s, %s: %s; want %s: %s", got, f.Field, f.Message, c.field, c.why)
				}
			})
		}
	}
}

// TestMeantOfAmbiguousText checks that a string stays unchanged if the schema also accepts strings there.
func TestMeantOfAmbiguousText(t *testing.T) {
	for schema, c := range map[string]struct{ in, want string }{
		`{"anyOf":[{"type":"string"},{"type":"array"}]}`:             {`"[1]"`, `"[1]"`},
		`{"type":["string","null"]}`:                                 {`null`, `null`},
		`{"anyOf":[{"type":"integer"},{"type":"null"}]}`:             {`null`, `null`},
		`{"enum":["1","2"]}`:                                         {`"1"`, `"1"`},
		`{}`:                                                         {`"{}"`, `"{}"`},
		`{"anyOf":[{"type":"integer"},{"type":"boolean"}]}`:          {`"5"`, `5`},
		`{"type":"object","additionalProperties":{"type":"number"}}`: {`{"a":"5"}`, `{"a":5}`},
		`{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}`: {`["5"]`, `[5]`},
		`{"oneOf":[{"type":"object","properties":{"a":{"type":"array"}}},{"type":"null"}]}`: {
			`{"a":"[1]"}`, `{"a":[1]}`},
		`{"anyOf":[{"type":"object","properties":{"a":{"type":"array"},"b":{"type":"string"}}},{"type":"null"}]}`: {
			`"{\"a\":\"[1]\",\"b\":null}"`, `{"a":[1]}`},
		`{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"array","items":{"type":"string"}}]}`: {
			`["5"]`, `["5"]`},
		`{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}]}`: {`["5","5"]`, `[5,"5"]`},
	} {
		var p jsonschema.Schema
		if err := json.Unmarshal([]byte(schema), &p); err != nil {
			t.Fatal(err)
		}
		tl, err := tool.Declare(tool.Declaration{Name: "tell", Description: "Tells.",
			Input: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"v": &p}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tl.Normalize(json.RawMessage(`{"v":` + c.in + `}`)); err != nil || string(got) != `{"v":`+c.want+`}` {
			t.Errorf("Normalize(%s) with %s = %s, %v", c.in, schema, got, err)
		}
	}
}

// TestExplainAlternatives refuses values that fit the type of only one alternative, as in the schemas that Python's
// libraries make of an optional field. The error names the field within that alternative.
func TestExplainAlternatives(t *testing.T) {
	const shapes = `{"oneOf":[{"type":"object","required":["kind","size"],"properties":{"kind":{"const":"square"},` +
		`"size":{"type":"integer"}}},{"type":"object","properties":{"kind":{"const":"point"}}}]}`
	for _, c := range []struct{ schema, in, field, why string }{
		{`{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}`, `["x"]`,
			"v", "each entry must be a whole number"},
		{`{"anyOf":[{"type":"array","items":{"type":"integer"}},{"type":"null"}]}`, `5`, "v", "must be a list"},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}}},{"type":"null"}]}`, `{"a":"x"}`,
			"v/a", "must be a whole number"},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"null"}]}`, `{}`,
			"v/a", "required: a whole number"},
		{`{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}`, `"c"`, "v", "not one of the allowed values"},
		{`{"type":"array","items":{"anyOf":[{"type":"integer"},{"type":"null"}]}}`, `[1,"x"]`,
			"v", "entry 2 must be a whole number"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `[1]`, "v", "must be a text or a whole number"},
		{shapes, `{"kind":"square","size":"large"}`, "v/size", "must be a whole number"},
		{shapes, `{"kind":"circle"}`, "v", "must be an object"},
	} {
		tl, err := tool.Remote("tell", "Tells.", json.RawMessage(`{"type":"object","properties":{"v":`+c.schema+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = tl.Normalize(json.RawMessage(`{"v":` + c.in + `}`))
		if f := fault.As(err); err == nil || f.Field != c.field || f.Message != c.why {
			t.Errorf("Normalize(%s) with %s = %s: %s, want %s: %s", c.in, c.schema, f.Field, f.Message, c.field, c.why)
		}
	}
}
