package action

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// jays are files of actions in jay-stack's notation, without their first two lines.
var jays = []string{
	"inputSchema: {}\n",
	"inputSchema: {}\noutputSchema:\n  - _id: string\n    count: number\n",
	"import:\n  card: card.jay-contract\ninputSchema:\n  ids: string[]\noutputSchema:\n" +
		"  cards:\n    - card\n  first?: card\n  byId: record(card)\n  list: card[]\n",
	"import: {card: card.jay-contract}\ninputSchema: {slug: string}\noutputSchema: card?\n",
	"inputSchema:\n  photo: file\n  more?: file[]\n  at: date\n  page: html-string\n",
	"inputSchema:\n  mood: enum(happy | sad)\n  filters?:\n    least?: number\n    kinds: string[]\n",
	"inputSchema:\n  id: string\noutputSchema:\n  stock: record(boolean)\n" +
		"  deep: record(record(number))\n  some?: record(string)\n",
	"inputSchema:\n  history:\n    - role: string\n      parts:\n        - {}\n  state: {}\n" +
		"outputSchema:\n  type: string\n  message?: string\n  calls?:\n    - id: string\n      args: {}\n",
	"inputSchema: {q: string}\noutputSchema:\n  type: string\n  title: string\n",
	"inputSchema:\n  type: string\n  description: string\n",
	"inputSchema:\n  properties: string\n  required: boolean\n  items: number\noutputSchema: number\n",
	"inputSchema: {q: string}\noutputSchema: string[]\n",
	"inputSchema: {q: string}\noutputSchema:\n",
	"inputSchema:\n  product-id: string\n  data-x?: number\n  größe: record(string[])\n  名前.x?: string\n",
	"inputSchema:\n  _id: string\n  $ref: string\n",
	"inputSchema:\n  type: string\n  format: date\n",
	"inputSchema:\n  properties:\n    - name: string\n      value: string\n  required?: string[]\n",
	"inputSchema:\n  properties:\n    - name: string\noutputSchema:\n  properties:\n    - string\n",
	"streaming: true\ninputSchema:\n  notes: string\n  files: record(file)\noutputSchema:\n  - slug: string\n",
	"inputSchema: {}\noutputSchema:\n  fields:\n    - target: string\n      type: enum(STRING | EMAIL)\n" +
		"      required: boolean\n",
	"inputSchema: {id: string}\noutputSchema: record(record(boolean))\n",
	"inputSchema:\n  a: string[][]\n  b: enum(x | y)[]\n  c: record(enum(x | y))\n  d: record(string)[]\n",
}

// asJay prints the schemas that jay-stack's own compiler reads from the files. Packages that no registry provides are
// replaced by empty ones, because none of their functions is called.
const asJay = `
import { register } from 'node:module';
const [jay, files] = [process.argv[2], JSON.parse(process.argv[3])];
const empty = 'data:text/javascript,' + encodeURIComponent(
  'export const getLogger = () => console; export const analyzeExportedTypes = () => ({});');
register('data:text/javascript,' + encodeURIComponent(` + "`" + `export const resolve = (name, context, next) =>
  next(name, context).catch((err) => {
    if (name.startsWith('@jay-framework/')) return { url: ${JSON.stringify(empty)}, shortCircuit: true };
    throw err;
  });` + "`" + `));
const of = (name) => import(jay + '/node_modules/@jay-framework/' + name + '/dist/index.js');
const { parseAction } = await of('compiler-jay-html');
const { jayTypeToJsonSchema } = await of('compiler-shared');
console.log('SCHEMAS ' + JSON.stringify(files.map((text) => {
  const { val, validations } = parseAction(text, 'a.jay-action');
  if (validations.length > 0) throw new Error(validations.join('; '));
  return [jayTypeToJsonSchema(val.inputType), val.outputType ? jayTypeToJsonSchema(val.outputType) : null];
})));
`

// TestFilesOfJay compares the framework's own compiler with this package: both read the same values from a
// file.
func TestFilesOfJay(t *testing.T) {
	node, jay := browsertest.Node(t), os.Getenv("JAY_DIR")
	if jay == "" {
		realpart.Jay.Absent(t, "JAY_DIR does not say where compiler-jay-html and compiler-shared are installed")
	}
	var files []string
	for _, text := range jays {
		files = append(files, "name: a\ndescription: A.\n"+text)
	}
	given, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "jay.mjs")
	if err := os.WriteFile(script, []byte(asJay), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, script, jay, string(given)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, said, _ := strings.Cut(string(out), "SCHEMAS ")
	var theirs [][2]any
	if err := json.Unmarshal([]byte(said), &theirs); err != nil {
		t.Fatal(err)
	}
	for i, text := range files {
		_, m, err := ParseMetadata("a.jay-action", []byte(text))
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		for n, ours := range []*jsonschema.Schema{m.Input, m.Output} {
			if got, want := essence(plainly(t, ours)), essence(theirs[i][n]); !reflect.DeepEqual(got, want) {
				t.Errorf("%s\n%d is %v, and for jay-stack %v", text, n, got, want)
			}
		}
	}
}

// plainly returns a schema as decoded JSON.
func plainly(t *testing.T, s *jsonschema.Schema) (v any) {
	t.Helper()
	raw, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// essence returns a schema without the parts that may differ between the two: descriptions, null next to object, empty
// lists, and the mark that an object is closed.
func essence(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, value := range m {
		inner, isMap := value.(map[string]any)
		list, isList := value.([]any)
		switch {
		case key == "description" && !isMap, key == "additionalProperties" && value == false,
			isMap && len(inner) == 0, isList && len(list) == 0:
		case key == "type" && isList:
			out[key] = slices.DeleteFunc(list, func(t any) bool { return t == "null" })[0]
		default:
			out[key] = essence(value)
		}
	}
	return out
}

// TestForeignSchemas reads keywords of JSON Schema that our own files do not use, and checks calls with them.
func TestForeignSchemas(t *testing.T) {
	for text, want := range map[string]string{
		"{type: [string, 'null']}":                  `{"type":["string","null"]}`,
		"{type: string, nullable: true}":            `{"type":["string","null"]}`,
		"{anyOf: [{type: string}, {type: number}]}": `{"anyOf":[{"type":"string"},{"type":"number"}]}`,
		"{const: a}": `{"const":"a"}`,
		"{type: string, x-order: 3, examples: [a]}": `{"type":"string"}`,
		"{type: object, additionalProperties: {type: boolean}}": `{"type":"object",
			"additionalProperties":{"type":"boolean"}}`,
		"{description: Anything.}":                     `{"description":"Anything."}`,
		"{type: string, format: date, title: The day}": `{"type":"string","title":"The day","format":"date"}`,
		"{type: array, items: {}}":                     `{"type":"array","items":true}`,
	} {
		_, m, err := ParseMetadata("a.jay-action", []byte("name: a\ndescription: A.\ninputSchema:\n  type: object\n"+
			"  properties:\n    x: "+text+"\n"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var wanted any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		got := plainly(t, m.Input.Properties["x"])
		if types, ok := got.(map[string]any)["type"].([]any); ok {
			slices.SortFunc(types, func(a, b any) int { return -strings.Compare(a.(string), b.(string)) })
		}
		if !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s is %v", text, got)
		}
		r, err := New([]Action{{Name: "a", Metadata: m}}, Options{Handlers: Handlers{"a": Handle(anything)}})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := r.Tool("a").Normalize(json.RawMessage(`{"y":1}`)); err == nil {
			t.Errorf("%s: an argument is taken that the file does not have", text)
		}
	}
}

// TestNamesOfJay reads names that jay-stack accepts although they are not Go identifiers.
func TestNamesOfJay(t *testing.T) {
	dir := folder(t, map[string]string{
		"plugin.yaml": "name: shop\nactions:\n  - name: search-products\n    action: a.jay-action\n" +
			"  - clear-all\n",
		"a.jay-action": "name: search-products\ndescription: A.\ninputSchema:\n  x: any\n  y?: unknown\n" +
			"preview: {title: 'Find {x}'}\n",
	})
	r, err := Open(dir, Options{Handlers: Handlers{"search-products": Handle(anything)}})
	if err != nil {
		t.Fatal(err)
	}
	tools := r.Tools()
	if tools["action_search_products"] == nil || tools["action_clear_all"] == nil {
		t.Fatalf("the tools are %v", tools)
	}
	for _, args := range []string{`{"x":1}`, `{"x":{"a":[null]},"y":"z"}`} {
		if _, err := r.Tool("search-products").Normalize(json.RawMessage(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := r.Tool("search-products").Normalize(json.RawMessage(`{"y":1}`)); err == nil {
		t.Error("a call without x is accepted")
	}
}

func anything(_ context.Context, _ tool.Call, in map[string]any) (map[string]any, error) {
	return in, nil
}

// TestPluginsOfJay loads plugins with the keys of jay-stack, and some without actions. A line lists the keys without
// effect.
func TestPluginsOfJay(t *testing.T) {
	dir := folder(t, map[string]string{
		"shop/plugin.yaml": "name: shop\nmodule: ./dist\ninit: start\nroutes: [{path: /a}]\nvalidators: []\n" +
			"dynamic_contracts: {}\nagentkit: kit\ncommands: [{name: c}]\n" +
			"actions:\n  - {name: a, action: ./a.jay-action, x: y}\n  - b\n",
		"shop/a.jay-action":            "name: a\ndescription: A.\ntags: [x]\ninputSchema: {}\n",
		"none/plugin.yaml":             "name: none\nglobal: true\n",
		"npm/plugin.yaml":              "name: npm\nversion: 1.0.0\nactions: [{name: c, action: c.jay-action}]\n",
		"npm/package.json":             `{"exports":{".":{"import":"./x.js"},"./c.jay-action":"./dist/actions/c.jay-action"}}`,
		"npm/lib/actions/c.jay-action": "name: c\ndescription: C.\ninputSchema: {}\n",
	})
	r, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.Names(), " "); got != "c a b" {
		t.Errorf("the actions are %s", got)
	}
	want := []string{"none/plugin.yaml: these keys have no effect here: global",
		"shop/plugin.yaml: these keys have no effect here: module, init, routes, validators, dynamic_contracts, " +
			"agentkit, commands, x",
		"shop/a.jay-action: these keys have no effect here: tags"}
	got := r.Notes()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the notes are %q", got)
	}
}
