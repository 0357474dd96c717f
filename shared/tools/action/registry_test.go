package action

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

type rating struct {
	Product string `json:"product"`
	Stars   int    `json:"stars"`
}

type rated struct {
	UID   string `json:"uid"`
	Stars int    `json:"stars"`
}

func rate(_ context.Context, c tool.Call, in rating) (rated, error) {
	return rated{c.UID, in.Stars}, nil
}

func shop(t *testing.T) *Registry {
	t.Helper()
	r, err := Open("testdata", Options{Handlers: Handlers{"submitRating": Handle(rate)}, Keys: [][]byte{key}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRegistry(t *testing.T) {
	r := shop(t)
	if got := strings.Join(r.Names(), " "); got != "searchProducts cart.addToCart submitRating" {
		t.Errorf("the names are %s", got)
	}
	if got := r.WithMetadata(); len(got) != 2 || got[1].Name != "cart.addToCart" {
		t.Errorf("with metadata: %+v", got)
	}
	if got := strings.Join(r.Tools().Names(),
		" "); got != "action_cart_addToCart action_searchProducts action_submitRating" {
		t.Errorf("the tools are %s", got)
	}
	if name, ok := r.Resolve("action_cart_addToCart"); !ok || name != "cart.addToCart" ||
		r.Tool(name).Name != "action_cart_addToCart" {
		t.Errorf("the model's name is %s's", name)
	}
	for _, unknown := range []string{"action_cart.addToCart", "cart.addToCart", "action_x", ""} {
		if name, ok := r.Resolve(unknown); ok {
			t.Errorf("%s is %s's", unknown, name)
		}
	}
	if !r.Tool("submitRating").UserOnly || !r.Tool("submitRating").SideEffect || r.Tool("searchProducts").UserOnly {
		t.Error("what the model sees is not what has metadata")
	}
	var none *Registry
	if none.Names() != nil || len(none.Tools()) != 0 || none.Tool("x") != nil {
		t.Error("no registry has actions")
	}
}

func TestExecute(t *testing.T) {
	r, err := New([]Action{{Name: "look"}, {Name: "rate"}},
		Options{Handlers: Handlers{"look": Query(rate), "rate": Handle(rate)}})
	if err != nil {
		t.Fatal(err)
	}
	good := tool.Call{UID: "ana", Args: json.RawMessage(`{"stars": 5, "product": "mug"}`)}
	if got, err := r.Execute(t.Context(), "look", good); err != nil || string(got) != `{"uid":"ana","stars":5}` {
		t.Errorf("it answers %s, %v", got, err)
	}
	for name, tt := range map[string]struct {
		action, args string
		class        fault.Class
	}{
		"another type": {"look", `{"product":"mug","stars":"five"}`, fault.Validation},
		"a stranger":   {"look", `{"product":"mug","stars":5,"x":1}`, fault.Validation},
		"an effect":    {"rate", `{"product":"mug","stars":5}`, fault.Policy},
		"nothing":      {"nothing", `{}`, fault.Auth},
	} {
		if _, err := r.Execute(t.Context(), tt.action,
			tool.Call{Args: json.RawMessage(tt.args)}); fault.As(err).Class != tt.class {
			t.Errorf("%s: %v; want fault.As(err).Class %v", name, err, tt.class)
		}
	}
}

func TestRegistryErrors(t *testing.T) {
	list, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	rating := Handlers{"submitRating": Handle(rate)}
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"no key": {Options{Handlers: rating},
			"shop/plugin.yaml:3: the action searchProducts: its binding needs a key"},
		"a short key": {Options{Handlers: rating, Keys: [][]byte{key[:31]}}, "ACTION_KEY of at least 32 bytes"},
		"two to do it": {Options{Handlers: Handlers{"searchProducts": Handle(rate), "submitRating": Handle(rate)},
			Keys: [][]byte{key}}, "both a binding and a Go handler"},
		"a handler for none": {Options{Handlers: Handlers{"submitRatings": Handle(rate), "submitRating": Handle(rate)},
			Keys: [][]byte{key}}, "submitRatings, which no plugin.yaml lists"},
	} {
		if _, err := New(list, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, tt.want)
		}
	}
}

func TestRegistryHandlerTypes(t *testing.T) {
	type item struct {
		Colour string `json:"colour,omitempty"`
	}
	type in struct {
		ID    string            `json:"id"`
		Count float64           `json:"count"`
		Items []item            `json:"items,omitempty"`
		More  map[string]string `json:"more,omitempty"`
	}
	type out struct {
		N  int      `json:"n"`
		At []string `json:"at,omitempty"`
	}
	const file = `name: a
description: A.
inputSchema:
  type: object
  required: [id]
  properties:
    id: {type: string}
    count: {type: integer, default: 1}
    items: {type: array, items: {type: object, properties: {colour: {type: string}}}}
outputSchema:
  type: object
  required: [n]
  properties:
    n: {type: number}
    at: {type: array, items: {type: string}}
`
	h := Handle(func(context.Context, tool.Call, in) (out, error) { return out{}, nil })
	for name, tt := range map[string]struct{ from, to, want string }{
		"it fits": {"", "", ""},
		"another type": {"id: {type: string}", "id: {type: integer}",
			"inputSchema/id: must be a Go type for integer"},
		"a property more": {"    id:", "    ie: {type: string}\n    id:",
			"inputSchema/ie: missing on one side"},
		"one that may be left out": {"required: [id]", "required: [count]",
			"inputSchema/id: required on one side"},
		"another type within": {"colour: {type: string}", "colour: {type: boolean}",
			"inputSchema/items/items/colour"},
		"a result that is required": {"required: [n]", "required: [n, at]",
			"outputSchema/at: required on one side"},
		"a result of another type": {"n: {type: number}",
			"n: {type: string}", "outputSchema/n: must be a Go type for string"},
		"a result less": {"    at: {type: array, items: {type: string}}\n", "", ""},
		"a result less, closed": {"    at: {type: array, items: {type: string}}\n",
			"  additionalProperties: false\n", "outputSchema/at: missing on one side"},
		"a list of anything": {"items: {type: object, properties: {colour: {type: string}}}",
			"description: Items.", ""},
	} {
		_, m, err := ParseMetadata("a.jay-action", []byte(strings.Replace(file, tt.from, tt.to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = New([]Action{{Name: "a", Metadata: m}}, Options{Handlers: Handlers{"a": h}})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPreview(t *testing.T) {
	p, err := shop(t).Tool("cart.addToCart").Preview(
		json.RawMessage(`{"notes":["a"],"options":{"gift":true},"productId":"mug\u202e-1","quantity":2}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []tool.Field{{Label: "Product", Value: "mug⟨U+202E⟩-1", Argument: "productId"},
		{Label: "notes", Value: `["a"]`, Argument: "notes"}, {Label: "options", Value: `{"gift":true}`, Argument: "options"},
		{Label: "quantity", Value: "2", Argument: "quantity"}}
	if p.Title != "Puts a product into the user's cart" || !reflect.DeepEqual(p.Fields, want) || len(p.Warnings) != 1 {
		t.Errorf("the preview is %+v", p)
	}
}

func TestRegistryHandlerErrors(t *testing.T) {
	cause := errors.New("cause")
	for _, mark := range []func(
		error) error{tool.Ambiguous, tool.Transient, tool.Unanswered, func(err error) error { return err }} {
		h := Handle(func(context.Context, tool.Call, rating) (rated, error) { return rated{}, mark(cause) })
		r, err := New([]Action{{Name: "a"}}, Options{Handlers: Handlers{"a": h}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Tool("a").Execute(t.Context(), tool.Call{Args: json.RawMessage(`{"product":"x","stars":1}`)})
		if !errors.Is(err, cause) || tool.IsAmbiguous(err) != tool.IsAmbiguous(mark(cause)) ||
			tool.IsTransient(err) != tool.IsTransient(mark(cause)) {
			t.Errorf("it became %v", err)
		}
	}
}

// TestRegistrySeedFiles checks that the files of seed 001 load unchanged, and that an action without handler and
// binding returns an error that says so.
func TestRegistrySeedFiles(t *testing.T) {
	r, err := Open("testdata/seed", Options{})
	if err != nil {
		t.Fatal(err)
	}
	const all = "sendMessage submitToolResults searchProducts getProductBySlug submitRating"
	if got := strings.Join(r.Names(), " "); got != all {
		t.Errorf("the names are %s", got)
	}
	if got := strings.Join(r.Unbound(), " "); got != all {
		t.Errorf("without handler and binding: %s", got)
	}
	for _, name := range r.Names() {
		tl := r.Tool(name)
		if !tl.UserOnly {
			t.Errorf("the model is shown %s", name)
		}
		_, err := r.Execute(t.Context(), name, tool.Call{UID: "ana", Args: json.RawMessage(`{"any":"thing"}`)})
		if f := fault.As(err); f.Class != fault.Tool || f.Code != fault.CodeNotBound || f.Status() != 501 {
			t.Errorf("%s: %v; want f.Class %v, f.Code %v, f.Status() 501", name, err, fault.Tool, fault.CodeNotBound)
		}
	}
	if len(r.WithMetadata()) != 0 {
		t.Errorf("the model is told of %+v", r.WithMetadata())
	}
}

func TestRegistryReadOnlyAction(t *testing.T) {
	for more, want := range map[string]bool{"": true, "readOnly: true\n": false, "category: query\n": false,
		"category: read-only\n": false, "category: action\n": true,
		"readOnly: false\ncategory: query\n": true, "sideEffect: false\n": false} {
		_, m, err := ParseMetadata("search.jay-action", []byte(whole+more))
		if err != nil || m.SideEffect != want || (m.Approval == tool.Required) != want {
			t.Errorf("%q: %+v, %v; want m.SideEffect %v, (m.Approval == tool.Required) %v", more, m, err, want, want)
		}
	}
}

// TestOpenSchemas checks that an object in an input without named properties allows any, as the seed's pageState does,
// and that a list without a schema of items allows any.
func TestOpenSchemas(t *testing.T) {
	_, m, err := ParseMetadata("a.jay-action", []byte(`name: a
description: A.
readOnly: true
inputSchema:
  type: object
  properties:
    state: {type: object}
    named: {type: object, properties: {a: {type: string}}}
    list: {type: array}
`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New([]Action{{Name: "a", Metadata: m}},
		Options{Handlers: Handlers{
			"a": Query(func(_ context.Context, _ tool.Call, in map[string]any) (int, error) { return len(in), nil })}})
	if err != nil {
		t.Fatal(err)
	}
	for args, ok := range map[string]bool{`{"state":{"x":1},"list":[1,"a",{}]}`: true, `{"named":{"a":"x"}}`: true,
		`{"named":{"b":"x"}}`: false, `{"x":1}`: false} {
		if _, err := r.Tool("a").Normalize(json.RawMessage(args)); (err == nil) != ok {
			t.Errorf("%s: %v; want (err == nil) %v", args, err, ok)
		}
	}
}

// TestDerivedKeys checks that an endpoint's key is derived from the operator's first key, the action's name and the
// origin, and differs from every other.
func TestDerivedKeys(t *testing.T) {
	text := strings.Replace(whole, "binding:", "binding:\n  key: derived", 1)
	_, m, err := ParseMetadata("search.jay-action", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	a := Action{Name: "search", Metadata: m}
	derived, err := DeriveKey(key, a)
	if err != nil || derived != "afea4d3a5913a8edadd8e452086d8f2a4a3a41de88d1aa8cc89719e86bb76130" {
		t.Errorf("the key is %s, %v", derived, err)
	}
	for _, other := range []Action{{Name: "find", Metadata: m},
		{Name: "search", Metadata: &Metadata{
			Binding: &Binding{URL: "https://other.example/search", DerivedKey: true}}}} {
		if got, err := DeriveKey(key, other); err != nil || got == derived {
			t.Errorf("%s has %s, %v", other.Name, got, err)
		}
	}
	if _, err := DeriveKey(key, Action{Name: "x"}); err == nil {
		t.Error("an action without a binding has a key")
	}
}

// TestNotation checks that the notation of jay-stack's later releases means the same as JSON Schema.
func TestNotation(t *testing.T) {
	const compact = `name: a
description: A.
inputSchema:
  text: string
  limit?: number
  kind: enum(a | b)
  tags?: string[]
  rows:
    - id: string
      more?: {}
  any: record(string)
outputSchema:
  - _id: string
`
	const plain = `name: a
description: A.
inputSchema:
  type: object
  properties:
    text: {type: string}
    limit: {type: number}
    kind: {type: string, enum: [a, b]}
    tags: {type: array, items: {type: string}}
    rows: {type: array, items: {type: object, properties: {id: {type: string}, more: {type: object}}, required: [id]}}
    any: {type: object, additionalProperties: {type: string}}
  required: [text, kind, rows, any]
outputSchema: {type: array, items: {type: object, properties: {_id: {type: string}}, required: [_id]}}
`
	var got [2]string
	for i, file := range []string{compact, plain} {
		_, m, err := ParseMetadata("a.jay-action", []byte(file))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal([]any{m.Input, m.Output})
		if err != nil {
			t.Fatal(err)
		}
		got[i] = string(b)
	}
	if got[0] != got[1] {
		t.Errorf("got  %s\nwant %s", got[0], got[1])
	}
	for from, want := range map[string]string{"text: string": "a.jay-action:4: ",
		"kind: enum(a | b)": "a.jay-action:6: ", "- id: string": "a.jay-action:9: "} {
		name, _, _ := strings.Cut(from, ":")
		_, _, err := ParseMetadata("a.jay-action", []byte(strings.Replace(compact, from, name+": strnig", 1)))
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), `"strnig" is no type`) {
			t.Errorf("%s: %v; want an error that begins with %q, the error with %q",
				from, err, want, `"strnig" is no type`)
		}
	}
}
