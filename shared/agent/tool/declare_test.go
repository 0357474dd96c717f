package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

const searchInput = `{"type":"object","required":["query"],"additionalProperties":false,"properties":{
	"query":{"type":"string"},"limit":{"type":"number","default":10},
	"page":{"type":"object","properties":{"size":{"type":"integer","default":5}}}}}`

func schemaOf(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

func declare(t *testing.T, change func(*tool.Declaration)) *tool.Tool {
	t.Helper()
	d := tool.Declaration{Name: "action_searchProducts", Description: "Searches.", Input: schemaOf(t, searchInput),
		Output:  schemaOf(t, `{"type":"array","items":{"type":"string"}}`),
		Execute: func(context.Context, tool.Call) (json.RawMessage, error) { return json.RawMessage(` [ "a" ]`), nil }}
	if change != nil {
		change(&d)
	}
	tl, err := tool.Declare(d)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestDeclareDefaults(t *testing.T) {
	tl := declare(t, nil)
	for in, want := range map[string]string{
		` {"query": "\u0061"}`:                           `{"limit":10,"query":"a"}`,
		`{"query":"a","limit":1E1,"page":{}}`:            `{"limit":10,"page":{"size":5},"query":"a"}`,
		`{"query":"a","limit":10}`:                       `{"limit":10,"query":"a"}`,
		`{"query":"a","limit":null}`:                     `{"limit":10,"query":"a"}`,
		`{"limit":2.50,"query":"<&>","page":{"size":1}}`: `{"limit":2.5,"page":{"size":1},"query":"<&>"}`,
	} {
		if got, err := tl.Normalize(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("Normalize(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestDeclareRefusedArguments(t *testing.T) {
	tl := declare(t, nil)
	for in, field := range map[string]string{
		`{}`: "query", `{"query":1}`: "query", `{"query":"a","page":"x"}`: "page",
		`{"query":"a","page":{"size":"x"}}`: "page/size",
		`{"query":"a","stranger":1}`:        "stranger",
		`{"query":"a","a SECRET":1}`:        "", `{"query":"a","query":"b"}`: "query", `[]`: "",
		``: "",
	} {
		_, err := tl.Normalize(json.RawMessage(in))
		var f *fault.Error
		if !errors.As(err, &f) || f.Class != fault.Validation || f.Field != field {
			t.Errorf("Normalize(%s): %v; want a ValidationError at %q", in, err, field)
		}
	}
}

func TestDeclareResults(t *testing.T) {
	call := tool.Call{Args: json.RawMessage(`{"query":"a"}`)}
	if got, err := declare(t, nil).Execute(t.Context(), call); err != nil || string(got) != `["a"]` {
		t.Errorf("Execute = %s, %v", got, err)
	}
	wrong := func(d *tool.Declaration) {
		d.Execute = func(context.Context, tool.Call) (json.RawMessage, error) {
			return json.RawMessage(`{"a":"SECRET"}`), nil
		}
	}
	_, err := declare(t, wrong).Execute(t.Context(), call)
	if fault.As(err).Class != fault.Tool || tool.IsAmbiguous(err) {
		t.Errorf("read with a result that its schema forbids: %v", err)
	}
	got, err := declare(t, func(d *tool.Declaration) {
		wrong(d)
		d.SideEffect, d.Preview = true,
			func(json.RawMessage) (tool.Preview, error) { return tool.Preview{Title: "x"}, nil }
	}).Execute(t.Context(), call)
	if err != nil || !strings.Contains(string(got), `"done":true`) || strings.Contains(string(got), "SECRET") {
		t.Errorf("effect with a result that its schema forbids: %s, %v", got, err)
	}
}

func TestDeclareRefuses(t *testing.T) {
	for name, change := range map[string]func(*tool.Declaration){
		"a name with a space":         func(d *tool.Declaration) { d.Name = "a b" },
		"no description":              func(d *tool.Declaration) { d.Description = "" },
		"an effect without a preview": func(d *tool.Declaration) { d.SideEffect = true },
		"no schema":                   func(d *tool.Declaration) { d.Input = nil },
		"a schema of a string":        func(d *tool.Declaration) { d.Input = schemaOf(t, `{"type":"string"}`) },
		"a schema elsewhere": func(
			d *tool.Declaration) {
			d.Input = schemaOf(t, `{"type":"object","$ref":"https://x.example/s"}`)
		},
		"a default that its schema forbids": func(d *tool.Declaration) {
			d.Input = schemaOf(t, `{"type":"object","properties":{"a":{"type":"string","default":1}}}`)
		},
		"a broken pattern": func(d *tool.Declaration) { d.Output = schemaOf(t, `{"type":"string","pattern":"("}`) },
	} {
		d := tool.Declaration{Name: "x", Description: "x", Input: schemaOf(t, `{"type":"object"}`)}
		change(&d)
		if _, err := tool.Declare(d); err == nil {
			t.Errorf("%s: the declaration was accepted", name)
		}
	}
}
