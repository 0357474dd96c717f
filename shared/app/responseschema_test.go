package app_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// givingAnswer returns a model that gives the arguments as its typed answer, once it is offered the tool for it.
func givingAnswer(args string) func(fakegemini.Request) fakegemini.Turn {
	return func(r fakegemini.Request) fakegemini.Turn {
		for _, t := range r.Tools {
			if t.Name == "final_answer" {
				return fakegemini.Turn{Calls: []fakegemini.Call{{Name: t.Name, Args: json.RawMessage(args)}}}
			}
		}
		return fakegemini.Turn{Text: "It was not asked for a form."}
	}
}

// TestTypedAnswers checks that the output of a run fits the schema of its request. The schemas are spelled as zod,
// pydantic, OpenAI, OpenAPI and Gemini spell them.
func TestTypedAnswers(t *testing.T) {
	for name, c := range map[string]struct{ schema, args string }{
		"plain": {`{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]}`, `{"total":12.5}`},
		"zod": {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"name":{"type":` +
			`"string","minLength":1},"age":{"type":["integer","null"],"exclusiveMinimum":0}},"required":["name","age"],` +
			`"additionalProperties":false}`, `{"age":null,"name":"Ana"}`},
		"pydantic": {`{"$defs":{"Item":{"properties":{"what":{"title":"What","type":"string"}},"required":["what"],` +
			`"title":"Item","type":"object"}},"properties":{"items":{"items":{"$ref":"#/$defs/Item"},"title":"Items",` +
			`"type":"array"},"note":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}},"required":["items"],` +
			`"title":"Bill","type":"object"}`, `{"items":[{"what":"rope"}],"note":null}`},
		"a default that does not fit": {`{"type":"object","properties":{"n":{"type":"integer","default":"none"}}}`, `{}`},
		"definitions": {`{"type":"object","definitions":{"d":{"type":"string","format":"date"}},"properties":{"due":` +
			`{"$ref":"#/definitions/d"}}}`, `{"due":"2027-06-01"}`},
		"Gemini": {`{"type":"OBJECT","properties":{"kind":{"type":"STRING","enum":["a","b"]},"n":{"type":"INTEGER",` +
			`"nullable":true}},"propertyOrdering":["kind","n"],"required":["kind"]}`, `{"kind":"b","n":null}`},
		"const and oneOf": {`{"type":"object","properties":{"v":{"oneOf":[{"const":"yes"},{"const":"no"}]}},` +
			`"required":["v"]}`, `{"v":"no"}`},
		"a tree": {`{"type":"object","$defs":{"n":{"type":"object","properties":{"name":{"type":"string"},"children":` +
			`{"type":"array","items":{"$ref":"#/$defs/n"}}}}},"properties":{"root":{"$ref":"#/$defs/n"}}}`,
			`{"root":{"children":[{"children":[],"name":"b"}],"name":"a"}}`},
		"a map": {`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":1,"b":2}`},
		"all of": {`{"type":"object","allOf":[{"properties":{"a":{"type":"string"}}},{"required":["a"]}]}`,
			`{"a":"x"}`},
		"a pattern": {`{"type":"object","properties":{"id":{"type":"string","pattern":"^[A-Z]{2}\\d+$"}}}`,
			`{"id":"AB12"}`},
		"a tuple": {`{"type":"object","properties":{"at":{"type":"array","prefixItems":[{"type":"number"},` +
			`{"type":"number"}],"items":false}}}`, `{"at":[1.5,2]}`},
		"no properties": {`{"type":"object"}`, `{}`},
		"a reference to the whole": {`{"type":"object","properties":{"label":{"type":"string"},"children":{"type":"array",` +
			`"items":{"$ref":"#"}}},"required":["label"],"additionalProperties":false}`,
			`{"children":[{"label":"b"}],"label":"a"}`},
		"a whole that is a reference": {`{"$ref":"#/definitions/Recipe","definitions":{"Recipe":{"type":"object",` +
			`"properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}}}`, `{"name":"x"}`},
		"a union as the whole": {`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},` +
			`{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}`, `{"b":1}`},
		"a discriminator": {`{"$defs":{"Cat":{"properties":{"kind":{"const":"cat"}},"required":["kind"],"type":"object"},` +
			`"Dog":{"properties":{"kind":{"const":"dog"},"barks":{"type":"number"}},"required":["kind","barks"],"type":` +
			`"object"}},"properties":{"pet":{"discriminator":{"mapping":{"cat":"#/$defs/Cat","dog":"#/$defs/Dog"},` +
			`"propertyName":"kind"},"oneOf":[{"$ref":"#/$defs/Cat"},{"$ref":"#/$defs/Dog"}]}},"type":"object"}`,
			`{"pet":{"barks":1.5,"kind":"dog"}}`},
		"conditions": {`{"type":"object","properties":{"land":{"enum":["US","CA"]},"zip":{"type":"string"}},"if":` +
			`{"properties":{"land":{"const":"US"}}},"then":{"properties":{"zip":{"pattern":"^[0-9]{5}$"}}},` +
			`"dependentRequired":{"zip":["land"]}}`, `{"land":"US","zip":"12345"}`},
		"anchors": {`{"type":"object","$dynamicAnchor":"node","$defs":{"n":{"$anchor":"name","type":"string"}},` +
			`"properties":{"name":{"$ref":"#name"},"next":{"$dynamicRef":"#node"}},"unevaluatedProperties":false}`,
			`{"name":"a","next":{"name":"b"}}`},
		"a bound of OpenAPI 3.0": {`{"type":"object","properties":{"p":{"type":"number","minimum":0,"exclusiveMinimum":` +
			`true},"a":{"type":"string","nullable":true}}}`, `{"a":null,"p":1}`},
		"boolean schemas": {`{"type":"object","properties":{"any":true,"never":false},"patternProperties":{"^x-":` +
			`{"enum":[1,"two",null]}}}`, `{"any":[1],"x-a":"two"}`},
		"references that go round": {`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},` +
			`"properties":{"x":{"$ref":"#/$defs/a"}}}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.SetModel(givingAnswer(c.args))
			got := typed(t, w.call("POST", "/api/agent/run", `{"prompt":"read it","responseSchema":`+c.schema+`}`).Body)
			if got.Status != "completed" || string(got.Output) != c.args {
				t.Errorf("the run is %s %s (%s); the output is %s, want %s", got.Status, got.ErrorReason, got.Error,
					got.Output, c.args)
			}
			if again := typed(t, w.call("GET", "/api/agent/runs/"+got.RunID, "").Body); string(again.Output) != c.args {
				t.Errorf("GET returns the output %s", again.Output)
			}
		})
	}
}

// typedRun is the part of a run that has a typed answer.
type typedRun struct {
	RunID, Status, ErrorReason string
	Output                     json.RawMessage
	Error                      json.RawMessage
}

func typed(t *testing.T, body []byte) (r typedRun) {
	t.Helper()
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// TestTypedAnswerStreams checks that the last line of a stream has the output.
func TestTypedAnswerStreams(t *testing.T) {
	w := deploy(t)
	w.SetModel(givingAnswer(`{"total":12.5}`))
	body := w.call("POST", "/api/agent/run/stream", `{"prompt":"read it","responseSchema":{"type":"object",`+
		`"properties":{"total":{"type":"number"}}}}`).Body
	lines := strings.Split(strings.TrimSpace(string(body)), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, `"output":{"total":12.5}`) {
		t.Errorf("the last line is %s", last)
	}
}

// TestTypedAnswerMissing checks that a run fails with no_answer if its model answers in words or in another form, and
// that the user's sentence is no output.
func TestTypedAnswerMissing(t *testing.T) {
	for name, turn := range map[string]fakegemini.Turn{
		"words":        {Text: "It is 12.50."},
		"another form": {Calls: []fakegemini.Call{{Name: "final_answer", Args: json.RawMessage(`{"total":"much"}`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploy(t)
			w.SetModel(func(fakegemini.Request) fakegemini.Turn { return turn })
			got := typed(t, w.call("POST", "/api/agent/run", `{"prompt":"read it","responseSchema":{"type":"object",`+
				`"properties":{"total":{"type":"number"}},"required":["total"]}}`).Body)
			if got.Status != "failed" || got.ErrorReason != "no_answer" || got.Output != nil {
				t.Errorf("the run is %+v", got)
			}
		})
	}
}

// TestResponseSchemaRefused checks that the error of an unusable schema names its place, that null is no schema, and
// that no run begins.
func TestResponseSchemaRefused(t *testing.T) {
	w := deploy(t)
	w.SetModel(givingAnswer(`{}`))
	for schema, field := range map[string]string{
		`{"type":"array","items":{"type":"string"}}`: "responseSchema",
		`true`:     "responseSchema",
		`"object"`: "responseSchema",
		`{"type":"object","properties":{"a":{"type":"picture"}}}`:               "responseSchema/properties/a/type",
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}`: "responseSchema/properties/a/$ref",
		`{"type":"object","description":"` + strings.Repeat("x", 64<<10) + `"}`: "responseSchema",
	} {
		a := w.call("POST", "/api/agent/run", `{"prompt":"read it","responseSchema":`+schema+`}`)
		var body struct {
			Error struct{ Code, Field, Message string }
		}
		if err := json.Unmarshal(a.Body, &body); err != nil || a.HTTP != 400 || body.Error.Field != field {
			t.Errorf("%.80s: %d, field %q: %s", schema, a.HTTP, body.Error.Field, a.Body)
		}
	}
	got := typed(t, w.call("POST", "/api/agent/run", `{"prompt":"hi","responseSchema":null}`).Body)
	if got.Status != "completed" || got.Output != nil {
		t.Errorf("with null the run is %+v", got)
	}
}

// TestAgentsResponseSchema checks that the schema in an agent's file applies to the agent's runs, and that a request's
// own schema takes precedence.
func TestAgentsResponseSchema(t *testing.T) {
	dir := t.TempDir()
	file := "name: reader\ninstruction: Read it.\nresponseSchema:\n  type: object\n  required: [total]\n" +
		"  properties:\n    total: {type: number, description: in euros}\n"
	if err := os.WriteFile(filepath.Join(dir, "reader.agent.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	w := deploy(t, "AGENTS="+dir)
	for schema, args := range map[string]string{
		"": `{"total":12.5}`,
		`,"responseSchema":{"type":"object","properties":{"name":{"type":"string"}}}`: `{"name":"ACME"}`,
	} {
		w.SetModel(givingAnswer(args))
		got := typed(t, w.call("POST", "/api/agent/run", `{"prompt":"read it","agent":"reader"`+schema+`}`).Body)
		if got.Status != "completed" || string(got.Output) != args {
			t.Errorf("%s: the run is %+v", schema, got)
		}
	}
}
