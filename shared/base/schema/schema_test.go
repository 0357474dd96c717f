package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/schema"
	"github.com/countersign-run/countersign/shared/testkit/figures"
)

func TestImport(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"what is kept": {
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string","description":"d","minLength":1,"maxLength":2,"default":"x","enum":["x","y"]},
				"b":{"type":"array","items":{"type":"integer","minimum":1,"maximum":2},"minItems":1,"maxItems":3},"c":{"const":null}}}`,
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string","description":"d","minLength":1,"maxLength":2,"default":"x","enum":["x","y"]},
				"b":{"type":"array","items":{"type":"integer","minimum":1,"maximum":2},"minItems":1,"maxItems":3},"c":{"const":null}}}`},
		"what is dropped": {
			`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"t","type":"object","examples":[{"pattern":1}],"x-own":{},"$comment":"c","properties":{"title":{"type":"string","default":9007199254740993}}}`,
			`{"type":"object","properties":{"title":{"type":"string"}}}`},
		"rules of every kind": {
			`{"type":"object","minProperties":1,"propertyNames":{"pattern":"^[a-z]$"},"patternProperties":{"^x":{"type":"string"}},"additionalProperties":{"type":"string"},"dependentRequired":{"a":["b"]},"if":{"required":["a"]},"then":{"required":["b"]},"properties":{"t":{"type":"array","uniqueItems":true,"contains":{"const":"x"}},"d":{"type":"string","format":"date"},"n":{"not":{"type":"null"}},"never":false}}`,
			`{"type":"object","minProperties":1,"propertyNames":{"pattern":"^[a-z]$"},"patternProperties":{"^x":{"type":"string"}},"additionalProperties":{"type":"string"},"dependentRequired":{"a":["b"]},"if":{"required":["a"]},"then":{"required":["b"]},"properties":{"t":{"type":"array","uniqueItems":true,"contains":{"const":"x"}},"d":{"type":"string","format":"date"},"n":{"not":{"type":"null"}},"never":false}}`},
		"itself, to a few levels": {
			`{"type":"object","properties":{"a":{"$ref":"#"}}}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"a":{"type":"object","properties":{"a":{"type":"object"}}}}}}}`},
		"earlier drafts": {
			`{"type":"array","items":[{"type":"STRING"}],"additionalItems":false,"minimum":0,"exclusiveMinimum":true}`,
			`{"type":"array","prefixItems":[{"type":"string"}],"items":false,"exclusiveMinimum":0}`},
		"null for a keyword": {`{"type":"object","properties":{"a":{"type":"string","enum":null,"default":null}},"required":null}`,
			`{"type":"object","properties":{"a":{"type":"string","default":null}}}`},
		"an empty list of properties, as PHP writes it": {`{"type":"object","properties":[]}`, `{"type":"object"}`},
		"types as programs name them": {
			`{"properties":{"a":{"type":"int"},"b":{"type":["str",null]},"c":{"type":"dict"},"d":{"type":"float | None"},"e":"bool","f":{"type":""}}}`,
			`{"properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"c":{"type":"object"},"d":{"type":["number","null"]},"e":{"type":"boolean"},"f":true}}`},
		"keywords without a value": {
			`{"type":"string","enum":[],"anyOf":[],"allOf":[],"required":{},"minLength":-1}`, `{"type":"string"}`},
		"numbers in strings": {`{"minimum":"1","maxItems":"2","required":"a"}`,
			`{"minimum":1,"maxItems":2,"required":["a"]}`},
		"a bound that is a date": {`{"type":"string","minimum":"2026-01-01"}`,
			`{"type":"string","description":"Its minimum is 2026-01-01"}`},
		"a value with too many digits": {`{"enum":[1,9007199254740993]}`, `{"enum":[1]}`},
		"dynamic references": {
			`{"$dynamicAnchor":"n","type":"object","properties":{"a":{"$dynamicRef":"#m"}},"$defs":{"x":{"$dynamicAnchor":"m","type":"null"}}}`,
			`{"type":"object","properties":{"a":{"type":"null"}}}`},
		"a percent-encoded reference": {
			`{"properties":{"a":{"$ref":"#/definitions/Map%3Cstring%3E"}},"definitions":{"Map<string>":{"type":"object"}}}`,
			`{"properties":{"a":{"type":"object"}}}`},
		"references by names": {
			`{"$id":"https://e.org/a/s","properties":{"a":{"$ref":"/b"},"b":{"$ref":"c#/items"},"c":{"$ref":"#d"}},"$defs":{"B":{"$id":"https://e.org/b","type":"null"},"C":{"$id":"c","items":{"type":"string"}},"D":{"id":"#d","type":"number"}}}`,
			`{"properties":{"a":{"type":"null"},"b":{"type":"string"},"c":{"type":"number"}}}`},
		"definitions that were moved": {
			`{"properties":{"a":{"$ref":"#/definitions/A"},"b":{"$defs":{"B":{"type":"null"}},"$ref":"#/$defs/B"}},"$defs":{"A":{"type":"string"}}}`,
			`{"properties":{"a":{"type":"string"},"b":{"type":"null"}}}`},
		"a schema as a value": {`{"$ref":"http://json-schema.org/draft-07/schema#"}`, `{"type":["object","boolean"]}`},
		"keywords next to a reference that exclude it": {
			`{"$ref":"#/$defs/a","type":"object","$defs":{"a":{"type":"string"}}}`, `{"type":"string"}`},
		"a property without a possible value": {
			`{"properties":{"a":{"allOf":[{"type":"string"},{"type":"null"}]}}}`, `{"properties":{"a":false}}`},
		"nullable alternatives": {`{"anyOf":[{"type":"string"}],"nullable":true}`,
			`{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		"nullable values": {`{"type":"string","enum":["a"],"nullable":true}`,
			`{"type":["string","null"],"enum":["a",null]}`},
		"a pattern of names beyond RE2": {
			`{"patternProperties":{"^(?!a)":{"type":"string"}},"additionalProperties":false}`,
			`{"description":"Other names must match the regular expression ^(?!a)"}`},
		"a factor of 0.01": {`{"type":"number","description":"A price.","multipleOf":0.01}`,
			`{"type":"number","description":"A price.\nIt must be a multiple of 0.01"}`},
		"a factor of 0.5": {`{"type":"number","multipleOf":0.5}`, `{"type":"number","multipleOf":0.5}`},
		"a reference by the schema's own name": {
			`{"$id":"https://e.org/s.json","type":"object","properties":{"a":{"$ref":"https://e.org/s.json#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`},
		"references to anchors": {
			`{"type":"object","properties":{"a":{"$ref":"#one"},"b":{"$ref":"#two"}},"$defs":{"A":{"$anchor":"one","type":"string"},"B":{"$id":"#two","type":"null"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}}}`},
		"bounds of 64 bits": {`{"type":"integer","maximum":9223372036854775807}`,
			`{"type":"integer","maximum":9223372036854774784}`},
		"a pattern with a large program": {`{"type":"string","pattern":"` + strings.Repeat("a{1000}", 9) + `"}`,
			`{"type":"string","description":"It must match the regular expression ` + strings.Repeat("a{1000}", 9) +
				`"}`},
		"a pattern beyond RE2": {`{"type":"string","pattern":"^(?=a)b"}`,
			`{"type":"string","description":"It must match the regular expression ^(?=a)b"}`},
		"nullable": {`{"type":"string","nullable":true}`, `{"type":["string","null"]}`},
		"nullable beside a reference": {`{"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","nullable":true}`,
			`{"type":["string","null"]}`},
		"not nullable":    {`{"type":"string","nullable":false}`, `{"type":"string"}`},
		"a list of types": {`{"type":["string","null"]}`, `{"type":["string","null"]}`},
		"anything": {`{"type":"object","properties":{"a":true,"b":{}}}`,
			`{"type":"object","properties":{"a":true,"b":true}}`},
		"a reference": {
			`{"type":"object","$defs":{"x/y~z":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/x~1y~0z","description":"mine"},"b":{"$ref":"#/$defs/x~1y~0z"}}}`, `{"type":"object","properties":{"a":{"type":"string","description":"mine"},"b":{"type":"string"}}}`},
		"a reference to a neighbour": {
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"$ref":"#/properties/a/items"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"string"}}}`},
		"all of them": {
			`{"allOf":[{"type":"object","properties":{"a":{"type":"number","minimum":1}},"required":["a"]},{"properties":{"a":{"type":"integer","minimum":2,"maximum":9},"b":{"type":"string"}},"required":["a","b"]}]}`, `{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer","minimum":2,"maximum":9},"b":{"type":"string"}}}`},
		"values that both allow": {
			`{"enum":["a","b",{"x":1,"y":2}],"allOf":[{"enum":["b","c",{"y":2,"x":1}]}]}`,
			`{"enum":["b",{"x":1,"y":2}]}`},
		"any and one of them": {
			`{"anyOf":[{"type":"string"},{"type":"null"}],"allOf":[{"anyOf":[{"const":"a"},{"const":null}]},{"oneOf":[{"const":"a"},{"const":"b"}]}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}],"oneOf":[{"const":"a"},{"const":"b"}],"allOf":[{"anyOf":[{"const":"a"},{"const":null}]}]}`},
		"a definition without a reference to it": {
			`{"type":"string","$defs":{"x":{"$ref":"#/$defs/x","pattern":"a"}},"definitions":{"y":{"not":{}}}}`,
			`{"type":"string"}`},
		"properties that are called like keywords": {
			`{"type":"object","properties":{"$ref":{"type":"string"},"pattern":{"type":"string"},"not":{"type":"string"}}}`,
			`{"type":"object","properties":{"$ref":{"type":"string"},"pattern":{"type":"string"},"not":{"type":"string"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schema.Import(json.RawMessage(c.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if plain(t, got) != plain(t, []byte(c.want)) {
				t.Errorf("got %s\nwant %s", plain(t, got), plain(t, []byte(c.want)))
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// plain sorts the names of objects.
func plain(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// nested returns a schema with this many levels of nested schemas below its root.
func nested(levels int) string {
	return strings.Repeat(`{"type":"array","items":`, levels) + `{"type":"string"}` + strings.Repeat(`}`, levels)
}

func TestImportRefuses(t *testing.T) {
	chain := `{"type":"object","$defs":{"a0":{"type":"string"}`
	for i := 1; i < 12; i++ {
		n, m := string(rune('a'+i)), string(rune('a'+i-1))
		if i == 1 {
			m = "a0"
		}
		chain += `,"` + n + `":{"type":"object","properties":{"x":{"$ref":"#/$defs/` + m +
			`"},"y":{"$ref":"#/$defs/` + m + `"}}}`
	}
	chain += `},"properties":{"z":{"$ref":"#/$defs/l"}}}`
	for name, c := range map[string]struct{ in, field, says string }{
		"a foreign reference":    {`{"$ref":"https://evil.example/s#/a"}`, "$ref", "within the schema"},
		"an anchor":              {`{"$ref":"#a"}`, "$ref", "within the schema"},
		"a reference to nothing": {`{"$ref":"#/$defs/a"}`, "$ref", "nowhere"},
		"a reference into a list": {`{"anyOf":[{"type":"string"}],"items":{"$ref":"#/anyOf/00"}}`, "items/$ref",
			"nowhere"},
		"a dynamic reference":           {`{"$dynamicRef":"#a"}`, "$dynamicRef", "within the schema"},
		"no type":                       {`{"type":"Customer"}`, "type", "string"},
		"a type in a type":              {`{"type":[["string"]]}`, "type", "names"},
		"no number":                     {`{"minimum":{}}`, "minimum", "number"},
		"half an item":                  {`{"minItems":1.5}`, "minItems", "whole"},
		"no values":                     {`{"enum":{"a":"b"}}`, "enum", "at least one"},
		"nothing of both types":         {`{"type":"string","allOf":[{"type":"integer"}]}`, "", "type"},
		"nothing of both values":        {`{"const":1,"allOf":[{"const":2}]}`, "", "value"},
		"17 levels":                     {nested(17), strings.TrimSuffix(strings.Repeat("items/", 17), "/"), "16"},
		"a thousand nodes from a dozen": {chain, "", "1000"},
		"such a value":                  {`{"enum":[9007199254740993]}`, "enum/0", "digits"},
		"such a constant":               {`{"const":{"id":-9007199254740993}}`, "const/id", "digits"},
		"a number of no range":          {`{"minimum":1e400}`, "minimum", "number"},
		"a list":                        {`[]`, "", "object"},
		"true":                          {`true`, "", "object"},
		"nothing":                       {``, "", "object"},
		"a keyword twice":               {`{"type":"string","type":"object"}`, "type", "duplicate key"},
		"64 KiB and a byte": {`{"description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`, "",
			"65536"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			took := figures.Allocated(func() { _, err = schema.Import(json.RawMessage(c.in)) })
			f := fault.As(err)
			if err == nil || f.Class != fault.Validation || !strings.Contains(f.Message, c.says) ||
				f.Field != c.field && c.says != "1000" {
				t.Fatalf("Import: %v; want an error of %q with %q", err, c.field, c.says)
			}
			if took > 64<<20 { // an expanded schema would take gigabytes
				t.Errorf("%d MiB were allocated", took>>20)
			}
		})
	}
	if _, err := schema.Import(json.RawMessage(nested(16))); err != nil {
		t.Errorf("16 levels: %v", err)
	}
}
