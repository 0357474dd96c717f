package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

func TestLoad(t *testing.T) {
	list, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 || list[0].Name != "searchProducts" || list[1].Name != "cart.addToCart" ||
		list[2].Name != "submitRating" || list[2].Metadata != nil {
		t.Fatalf("the actions are %+v", list)
	}
	search, add := list[0].Metadata, list[1].Metadata
	if search.SideEffect || search.Approval != tool.NotRequired ||
		!reflect.DeepEqual(search.Binding, &Binding{Method: "GET", URL: "https://shop.example/api/search",
			Timeout: 10 * time.Second, MaxResponseBytes: 64 << 10}) {
		t.Errorf("the search is %+v %+v", search, search.Binding)
	}
	if !add.SideEffect || add.Approval != tool.Required ||
		!reflect.DeepEqual(add.Binding, &Binding{Method: "POST", URL: "https://shop.example/api/cart",
			Timeout: 5 * time.Second, MaxResponseBytes: 64 << 10, Idempotent: true}) {
		t.Errorf("the cart is %+v %+v", add, add.Binding)
	}
	raw, err := json.Marshal(search.Input)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"type":"object","properties":{"query":{"type":"string","description":"Search query text"},"limit":{"type":"number","description":"Maximum results to return","default":10}},"required":["query"],"additionalProperties":false}`
	if !sameJSON(t, string(raw), want) ||
		strings.Index(string(raw), `"query":`) > strings.Index(string(raw), `"limit":`) {
		t.Errorf("the schema is %s", raw)
	}
	fields.Check(t, list[0], Action{Plugin: "shop", File: "shop/plugin.yaml", Line: 3})
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// whole is a valid file. The tests introduce mistakes.
const whole = `name: search
description: Searches.
inputSchema:
  type: object
  properties:
    query: {type: string}
binding:
  url: https://shop.example/search
`

func TestLoadFileErrors(t *testing.T) {
	tests := map[string]struct {
		from, to string
		line     int
		words    string
	}{
		"an unknown word":            {"description:", "descripton:", 2, `"descripton" is not known`},
		"a repeated key":             {"description: Searches.", "name: search", 2, `duplicate key "name"`},
		"no name":                    {"name: search\n", "", 1, "name is missing"},
		"no description":             {"description: Searches.\n", "", 1, "description is missing"},
		"an empty description":       {"Searches.", `" "`, 2, "description: a text"},
		"a list for a description":   {"Searches.", "[a]", 2, "description: a text"},
		"a number for a description": {"Searches.", "7", 2, "description: a text"},
		"a hostile name":             {"name: search", "name: ../../search", 1, "the name"},
		"a name that is too long":    {"name: search", "name: " + strings.Repeat("a", 56), 1, "the name"},
		"no schema": {"inputSchema:\n  type: object\n  properties:\n    query: {type: string}\n", "",
			1, "inputSchema is missing"},
		"a schema of a list": {"type: object", "type: array", 4, "object was expected"},
		"a schema that is a text": {"inputSchema:\n  type: object\n  properties:\n    query: {type: string}\n",
			"inputSchema: object\n", 3, "a mapping was expected"},
		"an unknown type":    {"{type: string}", "{type: text}", 6, "one of string, number"},
		"a list of no types": {"{type: string}", "{type: [string, text]}", 6, "one of string, number"},
		"an unknown keyword": {"{type: string}", "{type: string, maxlength: 3}", 6, `"maxlength" is not known`},
		"a reference":        {"{type: string}", "{$ref: 'https://x.example/'}", 6, "a reference within the schema"},
		"an effect that only reads": {"binding:", "readOnly: true\nsideEffect: true\nbinding:", 8,
			"an action that only reads has none"},
		"a query with an effect": {"binding:", "category: query\nsideEffect: true\nbinding:", 8,
			"an action that only reads has none"},
		"an unknown category": {"binding:", "category: safe\nbinding:", 7, "category: one of query"},
		"a change that only reads": {"binding:", "class: read\nsideEffect: true\nbinding:", 8,
			"an action that only reads has none"},
		"a read with an effect": {"binding:", "readOnly: false\nclass: read\nbinding:", 8,
			"class: an action with a side effect is no read; one of change, destructive, opaque was expected"},
		"a destructive query": {"binding:", "readOnly: true\nclass: destructive\nbinding:", 8, "read was expected"},
		"an unknown class":    {"binding:", "class: dangerous\nbinding:", 7, "class: one of read, change"},
		"a class without a warning": {"binding:", "class: opaque\napproval: not_required\nbinding:", 8,
			"approval: required was expected, because its user must be warned of an action of the class opaque"},
		"a call without an end":  {"binding:", "timeout: 11m\nbinding:", 7, "timeout: a time from 1s to 10m0s"},
		"a call of no time":      {"binding:", "timeout: 5\nbinding:", 7, "timeout: a time from 1s"},
		"an end that is a text":  {"binding:", "final: 'yes'\nbinding:", 7, "final: true or false"},
		"a trust that is a list": {"binding:", "untrusted: [true]\nbinding:", 7, "untrusted: true or false"},
		"an endpoint that outlasts": {"binding:", "timeout: 4s\nbinding:\n  timeout: 5s", 9,
			"no more than the action's"},
		"targets that are no list": {"binding:", "targets: query\nbinding:", 7, "targets: a list of 1 to 20"},
		"a target of nothing":      {"binding:", "targets: [{kind: address}]\nbinding:", 7, "field is missing"},
		"a target without a kind":  {"binding:", "targets: [{field: query}]\nbinding:", 7, "kind is missing"},
		"a target of a hostile kind": {"binding:", "targets: [{kind: 'E mail', field: query}]\nbinding:", 7,
			"a kind was expected"},
		"a target of a stranger": {"binding:", "targets: [{kind: address, field: quary}]\nbinding:", 7,
			`targets: "quary" is none of inputSchema's properties`},
		"a target twice": {"binding:",
			"targets:\n  - {kind: a, field: query}\n  - {kind: b, field: query}\nbinding:", 9, "duplicate field"},
		"a target that is a number": {"query: {type: string}",
			"query: {type: number}\ntargets: [{kind: a, field: query}]",
			7, `"query" cannot name a target`},
		"an address that is a number": {"query: {type: string}",
			"query: {type: array, items: {type: integer}}\ntargets: [{kind: address, field: query}]", 7,
			`"query" cannot name a target`},
		"a target of anything": {"query: {type: string}", "query: {type: array}\ntargets: [{kind: a, field: query}]", 7,
			`"query" cannot name a target`},
		"a bound stranger": {"binding:", "bound: [quary]\nbinding:", 7, `bound: "quary" is none of`},
		"bound twice":      {"binding:", "bound: [query, query]\nbinding:", 7, "duplicate field"},
		"a bound text":     {"binding:", "bound: query\nbinding:", 7, "bound: a list of the arguments"},
		"a target that is free text": {"binding:", "targets: [{kind: a, field: query}]\nbound: []\nbinding:", 8,
			`bound: "query" names a target`},
		"a status that is no 4xx":  {"binding:", "binding:\n  refusedBy: [409, 500]", 8, "from 400 to 499"},
		"a status that is no list": {"binding:", "binding:\n  refusedBy: 409", 8, "a list of 1 to 20 statuses"},
		"an unknown key":           {"binding:", "binding:\n  key: mine", 8, "one of shared, derived"},
		"a float that is not kept": {"{type: string}", "{type: number, maximum: 9007199254740993.0}", 6,
			"digits than JSON keeps"},
		"a default that is not kept": {"{type: string}", "{type: integer, default: 9007199254740993}", 6,
			"digits than JSON keeps"},
		"items of a text": {"{type: string}", "{type: string, items: {type: string}}", 6,
			"only a schema of type array"},
		"a broken pattern":          {"{type: string}", "{type: string, pattern: '('}", 6, "a pattern of RE2"},
		"a default of another type": {"{type: string}", "{type: string, default: 7}", 4, "a default that fits"},
		"a default that names a stranger": {"type: object", "type: object\n  default: {quary: a}", 4,
			"a default that fits"},
		"an endless number": {"{type: string}", "{type: number, maximum: .inf}", 6,
			"does not exist in JSON"},
		"a huge number": {"{type: string}", "{type: integer, maximum: 99999999999999999}", 6,
			"digits than JSON keeps"},
		"a text for a number":    {"{type: string}", "{type: string, maxLength: many}", 6, "no JSON Schema"},
		"an empty enum":          {"{type: string}", "{type: string, enum: []}", 6, "enum: a list"},
		"a required stranger":    {"type: object", "type: object\n  required: [quary]", 5, `"quary" is none`},
		"a hostile property":     {"query: {", "'a b': {", 6, "the property"},
		"a prototype's property": {"query: {", "'7up': {", 6, "the property"},
		"a property of 65 letters": {"query: {", strings.Repeat("ü", 65) + ": {", 6,
			"up to 64 letters"},
		"sideEffect as a text": {"binding:", "sideEffect: 'no'\nbinding:", 7, "true or false"},
		"an unknown approval":  {"binding:", "approval: never\nbinding:", 7, "one of required, not_required"},
		"a preview of a stranger": {"binding:", "preview: [{label: Q, field: quary}]\nbinding:", 7,
			`"quary" is none`},
		"a preview twice": {"binding:",
			"preview: [{label: Q, field: query}, {label: R, field: query}]\nbinding:", 7, "duplicate"},
		"a preview without a label": {"binding:", "preview: [{field: query}]\nbinding:", 7, "label and field"},
		"a title of a stranger": {"binding:",
			"preview: {title: 'Look for {quary}'}\nbinding:", 7, `"quary" is none`},
		"a title with a brace": {"binding:", "preview: {title: 'Look } for'}\nbinding:", 7, "a name in braces"},
		"a title half open":    {"binding:", "preview: {title: 'Look {query'}\nbinding:", 7, "a name in braces"},
		"a title that hides":   {"binding:", "preview: {title: \"Look\\u202e\"}\nbinding:", 7, "one line"},
		"names that are one": {"binding:",
			"preview: [{label: Q, field: query, names: {a: X, b: X}}]\nbinding:", 7, "no other value has"},
		"a value named twice": {"binding:",
			"preview: [{label: Q, field: query, names: {a: X, a: Y}}]\nbinding:", 7, "duplicate key"},
		"no names": {"binding:",
			"preview: [{label: Q, field: query, names: {}}]\nbinding:", 7, "1 to 500"},
		"GET with a side effect": {"binding:", "binding:\n  method: GET", 8, "GET is for actions without side effects"},
		"an unknown method":      {"binding:", "binding:\n  method: TRACE", 8, "one of GET, POST"},
		"no url":                 {"  url: https://shop.example/search", "  method: POST", 8, "url is missing"},
		"http": {"https://shop.example/search", "http://shop.example/search", 8,
			"a fixed address with https"},
		"credentials": {"https://shop.example/search", "https://user:CANARY@shop.example/", 8,
			"without credentials"},
		"a placeholder": {"https://shop.example/search", "'https://{host}/search'", 8, "placeholders"},
		"a query": {"https://shop.example/search", "https://shop.example/search?key=CANARY", 8,
			"query"},
		"no host":                  {"https://shop.example/search", "https:///search", 8, "a fixed address"},
		"a file":                   {"https://shop.example/search", "file:///etc/passwd", 8, "a fixed address"},
		"a long timeout":           {"binding:", "binding:\n  timeout: 31s", 8, "timeout: a time from 100ms to 30s"},
		"a timeout without a unit": {"binding:", "binding:\n  timeout: 5", 8, "timeout: a time"},
		"a huge answer":            {"binding:", "binding:\n  maxResponseBytes: 65537", 8, "from 1 to 65536"},
		"a huger answer": {"binding:", "sideEffect: false\nbinding:\n  maxResponseBytes: 1048577", 9,
			"from 1 to 1048576"},
		"an alias":            {"Searches.", "&a Searches.", 2, "anchors and aliases"},
		"an alias to nothing": {"Searches.", "*a", 0, "not YAML"},
		"a merge key":         {"{type: string}", "{<<: {type: string}}", 6, "not accepted"},
		"a tag":               {"Searches.", "!!binary U2VhcmNo", 2, "not accepted"},
		"a second document": {"name: search", "name: search\n---\nname: search", 0,
			"more than one YAML document"},
		"no YAML":   {"Searches.", "[", 0, "not YAML"},
		"a tab":     {"  type: object", "\ttype: object", 0, "not YAML"},
		"a list":    {whole, "- name: search", 1, "a YAML mapping was expected"},
		"nothing":   {whole, "# nothing\n", 0, "the file is empty"},
		"too large": {"Searches.", strings.Repeat("x", 64<<10), 0, "larger than 65536 bytes"},
		"too deep": {"{type: string}", strings.Repeat("[", 30) + strings.Repeat("]", 30), 6,
			"nested deeper"},
		"no text": {"Searches.", "\xff", 0, "not UTF-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(whole, tt.from) {
				t.Fatal("the test changes nothing")
			}
			_, _, err := ParseMetadata("a/search.jay-action", []byte(strings.Replace(whole, tt.from, tt.to, 1)))
			var p *Problem
			if !errors.As(err, &p) {
				t.Fatalf("the error is %v", err)
			}
			if tt.line != 0 && p.Line != tt.line || p.File != "a/search.jay-action" ||
				!strings.Contains(p.Text, tt.words) {
				t.Errorf("%v; want %q in line %d", p, tt.words, tt.line)
			}
			if strings.Contains(err.Error(), "CANARY") || strings.Contains(err.Error(), "\n") ||
				len(err.Error()) > 500 {
				t.Errorf("not one short line without secrets: %v", err)
			}
		})
	}
	if _, _, err := ParseMetadata("x", []byte(whole)); err != nil {
		t.Errorf("the file itself: %v", err)
	}
}

// TestAliasBomb checks that a short file that expands to a billion texts is refused before it is expanded.
func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	if _, _, err := ParseMetadata("x", []byte(b.String())); err == nil ||
		!strings.Contains(err.Error(), "anchors and aliases") {
		t.Errorf("the error is %v", err)
	}
}

func TestLoadFolderErrors(t *testing.T) {
	const plugin = "name: p\nactions:\n"
	many := plugin
	for i := range 201 {
		many += fmt.Sprintf("  - a%d\n", i)
	}
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"no plugin": {map[string]string{"x/y/plugin.yaml": plugin},
			"plugin.yaml: this file is in neither"},
		"no name": {map[string]string{"plugin.yaml": "actions: []"},
			"plugin.yaml:1: name is missing"},
		"a misspelt key": {map[string]string{"plugin.yaml": "name: p\naction: []"},
			`plugin.yaml:2: the key "action" is not known`},
		"a mapping of actions": {map[string]string{"plugin.yaml": "name: p\nactions: {a: b}"},
			"plugin.yaml:2: actions: a list"},
		"a list within the list": {map[string]string{"plugin.yaml": plugin + "  - [a]"},
			"plugin.yaml:3: a mapping was expected"},
		"a hostile name": {map[string]string{"plugin.yaml": plugin + "  - a/b"}, "plugin.yaml:3: the name"},
		"a missing file": {map[string]string{"plugin.yaml": plugin +
			"  - {name: a, action: ./a.jay-action}"}, "a.jay-action: the file cannot be opened"},
		"a path that leaves": {map[string]string{"p/plugin.yaml": plugin +
			"  - {name: a, action: ../a.jay-action}"}, "p/plugin.yaml:3: action: the path"},
		"an absolute path": {map[string]string{"plugin.yaml": plugin +
			"  - {name: a, action: /etc/a.jay-action}"}, "plugin.yaml:3: action: the path"},
		"a path with backslashes": {map[string]string{"plugin.yaml": plugin +
			`  - {name: a, action: '..\a.jay-action'}`}, "plugin.yaml:3: action: the path"},
		"another kind of file": {map[string]string{"plugin.yaml": plugin + "  - {name: a, action: ./plugin.yaml}"},
			"plugin.yaml:3: action: the path"},
		"a name that does not fit": {map[string]string{"plugin.yaml": plugin + "  - {name: b, action: a.jay-action}",
			"a.jay-action": whole}, `plugin.yaml:3: the name "search" was expected`},
		"an action twice": {map[string]string{"a/plugin.yaml": plugin + "  - x", "b/plugin.yaml": plugin +
			"  - x"}, "b/plugin.yaml:3: the action x is listed twice; a/plugin.yaml:3 has it too"},
		"too many": {map[string]string{"plugin.yaml": many},
			"plugin.yaml:203: there are more than 200"},
		"a broken file": {map[string]string{"plugin.yaml": plugin + "  - {name: a, action: a.jay-action}",
			"a.jay-action": "name: a\nsideeffect: no"}, `a.jay-action:2: the key "sideeffect" is not known`},
		"a folder called as a file": {map[string]string{"plugin.yaml/x": ""}, "plugin.yaml: not a regular file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(folder(t, tt.files)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("the error is %v; want %s", err, tt.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("a folder that is not there is loaded")
	}
}

// TestLoadNameCollision covers CS-011: two names that are equal for the model are an error at the start.
func TestLoadNameCollision(t *testing.T) {
	_, err := Load(folder(t, map[string]string{"plugin.yaml": "name: p\nactions:\n  - a.b_c\n  - a_b.c\n"}))
	if err == nil || !strings.Contains(err.Error(), "plugin.yaml:4") || !strings.Contains(err.Error(), "action_a_b_c") {
		t.Errorf("the error is %v", err)
	}
}

func TestLoadSymlinkRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.jay-action")
	if err := os.WriteFile(outside, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{"plugin.yaml": "name: p\nactions:\n  - {name: search, action: a.jay-action}\n"})
	if err := os.Symlink(outside, filepath.Join(dir, "a.jay-action")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("the error is %v", err)
	}
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLoadDeclaredTool compares the declarations in a file with the tool that is made from it.
func TestLoadDeclaredTool(t *testing.T) {
	const file = `name: order.cancel
description: Cancels orders.
inputSchema:
  type: object
  required: [orders]
  properties:
    orders: {type: array, items: {type: integer}}
    tell: {type: string}
    copy: {type: array, items: {type: string}}
    reason: {type: string}
class: destructive
timeout: 4s
final: true
untrusted: true
targets:
  - {kind: order, field: orders}
  - {kind: address, field: tell}
  - {kind: address, field: copy}
bound: [orders, tell, copy]
binding:
  url: https://shop.example/cancel
`
	dir := folder(t, map[string]string{"cancel.jay-action": file,
		"plugin.yaml": "name: shop\nactions:\n  - {name: order.cancel, action: ./cancel.jay-action}\n"})
	r, err := Open(dir, Options{Keys: [][]byte{key}})
	if err != nil {
		t.Fatal(err)
	}
	made := r.Tool("order.cancel")
	if !made.SideEffect || made.Class != tool.ClassDestructive || made.Approval != tool.Required ||
		made.Timeout != 4*time.Second || !made.Final || !made.Untrusted {
		t.Errorf("it is %+v", made.Spec)
	}
	if got := r.WithMetadata()[0].Metadata.Binding.Timeout; got != 4*time.Second {
		t.Errorf("the endpoint may take %s", got)
	}
	args := json.RawMessage(`{"copy":["no address","Eve@EXAMPLE.com"],"orders":[7,8,7],"reason":"r",` +
		`"tell":"Eve@example.com"}`)
	targets, err := made.Targets(args)
	want := []tool.Target{{Kind: "order", Value: "7"}, {Kind: "order", Value: "8"},
		{Kind: tool.TargetAddress, Value: "Eve@example.com"}, {Kind: tool.TargetAddress, Value: "no address"}}
	if err != nil || !reflect.DeepEqual(targets, want) || !targets[3].Malformed() {
		t.Errorf("it reaches %v, %v", targets, err)
	}
	bound, err := made.Pinned(args)
	if err != nil || string(
		bound) != `{"copy":["no address","Eve@EXAMPLE.com"],"orders":[7,8,7],"tell":"Eve@example.com"}` {
		t.Errorf("bound are %s, %v", bound, err)
	}
	p, err := made.Preview(args)
	if err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "cannot be restored") {
		t.Errorf("its card warns of %q, %v", p.Warnings, err)
	}
}
