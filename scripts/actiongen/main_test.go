package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/actiongen/testdata/shop"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/tools/action"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestGolden compares the generated files with those of testdata/shop, which -check accepts.
func TestGolden(t *testing.T) {
	if err := run(t.Context(), io.Discard, "testdata/shop", true, ""); err != nil {
		t.Error(err)
	}
	first, err := generate("testdata/shop")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := generate("testdata/shop")
		if err != nil {
			t.Fatal(err)
		}
		for name := range first {
			if !bytes.Equal(first[name], again[name]) {
				t.Errorf("%s is another one each time", name)
			}
		}
	}
}

// TestGeneratedHandlerTypes compiles the generated Go. Functions of its types must fit the files that it was made from.
func TestGeneratedHandlerTypes(t *testing.T) {
	list, err := action.Load("testdata/shop")
	if err != nil {
		t.Fatal(err)
	}
	handlers := shop.Does{CartAddToCart: func(_ context.Context, _ tool.Call,
		in shop.CartAddToCartInput) (shop.CartAddToCartOutput, error) {
		return shop.CartAddToCartOutput{Items: *in.Quantity}, nil
	}}.Handlers()
	handlers["submitRating"] =
		action.Query(func(context.Context, tool.Call, struct{}) (struct{}, error) { return struct{}{}, nil })
	r, err := action.New(list, action.Options{Handlers: handlers, Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}})
	if err != nil {
		t.Fatal(err)
	}
	add := r.Tool("cart.addToCart")
	args, err := add.Normalize([]byte(`{"productId":"mug"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := add.Execute(t.Context(), tool.Call{Args: args}); err != nil || string(got) != `{"items":1}` {
		t.Errorf("it answers %s, %v", got, err)
	}
}

func TestCheckStale(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	if err := os.CopyFS(dir, os.DirFS("testdata/shop")); err != nil {
		t.Fatal(err)
	}
	types := filepath.Join(dir, "actions", "add-to-cart.jay-action.d.ts")
	if err := os.WriteFile(types, []byte("// by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "actions-index.yaml")); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), io.Discard, dir, true, "")
	if err == nil || !strings.Contains(err.Error(), "add-to-cart.jay-action.d.ts is out of date") ||
		!strings.Contains(err.Error(),
			"actions-index.yaml is out of date") || strings.Contains(err.Error(), "actions.go") {
		t.Errorf("-check says %v", err)
	}
	if err := run(t.Context(), io.Discard, dir, false, ""); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), io.Discard, dir, true, ""); err != nil {
		t.Errorf("-check says of what was just written: %v", err)
	}
}

func TestTypes(t *testing.T) {
	const head = "name: a\ndescription: 'Ends */ the comment'\ninputSchema:\n"
	for schema, want := range map[string]string{
		"  type: object": "export interface AInput {}",
		"  type: object\n  additionalProperties: true": "export type AInput = Record<string, unknown>;",
		"  type: object\n  properties:\n    b: {type: array, items: {type: array, items: {type: string, enum: [x, " +
			"'y\"z']}}}\n    a: {type: integer}\n  required: [b]": "export interface AInput {\n    b: " +
			"Array<Array<\"x\" | \"y\\\"z\">>;\n    a?: number;\n}",
		"  type: object\n  properties:\n    o: {type: object, properties: {$p_1: {type: boolean}}}": "export " +
			"interface AInput {\n    o?: {\n        $p_1?: boolean;\n    };\n}",
		"  x-id: string\n  größe?: number": "export interface AInput {\n    \"x-id\": string;\n" +
			"    \"größe\"?: number;\n}",
		"  s: record(boolean)\n  c?: record(record(number))": "export interface AInput {\n" +
			"    s: Record<string, boolean>;\n    c?: Record<string, Record<string, number>>;\n}",
		"  type: object\n  properties:\n    n: {type: [string, 'null']}\n" +
			"    u: {anyOf: [{type: string}, {type: number}]}\n    c: {const: x}\n    a: {}": "export interface " +
			"AInput {\n    n?: (string | null);\n    u?: (string | number);\n    c?: \"x\";\n    a?: unknown;\n}",
	} {
		name, m, err := action.ParseMetadata("a.jay-action", []byte(head+schema))
		if err != nil {
			t.Fatal(err)
		}
		got := string(typescript(action.Action{Name: name, Metadata: m}))
		if !strings.Contains(got, want+"\n") || strings.Count(got, "*/") != 1 ||
			!strings.Contains(got, "export type AOutput = unknown;") {
			t.Errorf("%s gives\n%s\nwant\n%s", schema, got, want)
		}
	}
}

// TestGoTypes checks that null and absent values differ from empty ones, and that the values of a record keep their
// type.
func TestGoTypes(t *testing.T) {
	_, m, err := action.ParseMetadata("a.jay-action", []byte("name: a\ndescription: A.\ninputSchema:\n  type: object\n"+
		"  properties:\n    n: {type: [string, 'null']}\n    u: {anyOf: [{type: string}, {type: number}]}\n"+
		"    r: {type: object, additionalProperties: {type: boolean}}\n    b: {type: integer}\n"+
		"    x-user-id: {type: integer}\n    名前.x: {type: integer}\n    größe: {type: integer}\n  required: [n]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := golang("x", []action.Action{{Name: "a", Metadata: m}})
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Join(strings.Fields(string(got)), " ")
	const want = "struct { N *string `json:\"n\"` U any `json:\"u,omitempty\"` R map[string]bool " +
		"`json:\"r,omitempty\"` B *int64 `json:\"b,omitempty\"` XUserID *int64 `json:\"x-user-id,omitempty\"` " +
		"X名前X *int64 `json:\"名前.x,omitempty\"` Größe *int64 `json:\"größe,omitempty\"` }"
	if !strings.Contains(fields, want) {
		t.Errorf("the types are %s", fields)
	}
}

func TestGenerateTypeNameCollision(t *testing.T) {
	m := &action.Metadata{}
	if _, err := golang("x", []action.Action{{Name: "a.b", Metadata: m}, {Name: "a.B", Metadata: m}}); err == nil ||
		!strings.Contains(err.Error(), "ABInput") {
		t.Errorf("the error is %v", err)
	}
	if got := typeName("cart.add-to-cart"); got != "CartAddToCart" {
		t.Errorf("the type is %s", got)
	}
}

// TestTypeScriptCompiles compiles the generated TypeScript as a handler of the plugin would import it.
func TestTypeScriptCompiles(t *testing.T) {
	node := browsertest.Node(t)
	tsc := filepath.Join(browsertest.Modules(t, "typescript"), "node_modules", "typescript", "bin", "tsc")
	dir := filepath.Join(t.TempDir(), "shop")
	if err := os.CopyFS(dir, os.DirFS("testdata/shop")); err != nil {
		t.Fatal(err)
	}
	compile := func(handler string) (string, error) {
		file := filepath.Join(dir, "handler.ts")
		if err := os.WriteFile(file, []byte("import type { CartAddToCartInput, CartAddToCartOutput } from "+
			"'./actions/add-to-cart.jay-action';\n"+handler), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), node, tsc, "--noEmit", "--strict", file,
			filepath.Join(dir, "actions", "search-products.jay-action.d.ts")).CombinedOutput()
		return string(out), err
	}
	if out, err := compile("export const f = (i: CartAddToCartInput): CartAddToCartOutput => ({ items: (i.quantity " +
		"?? 1) + i.productId.length });\n"); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
	out, err := compile("export const f = (i: CartAddToCartInput): CartAddToCartOutput => ({ items: i.colour });\n")
	if err == nil || !strings.Contains(out, "colour") {
		t.Errorf("a handler of other types compiles: %s", out)
	}
}

// TestCheckGoHandlers finds, at build time, a Go handler that does not accept every input of its file. The compiler
// reads the handler from an overlay, because other tests read the module's folders meanwhile.
func TestCheckGoHandlers(t *testing.T) {
	const dir = "../cookbook/actions"
	if err := run(t.Context(), io.Discard, dir, true, ""); err != nil {
		t.Errorf("the example: %v", err)
	}
	code, err := filepath.Abs(filepath.Join(dir, "handlers.go"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(code)
	if err != nil {
		t.Fatal(err)
	}
	body = bytes.Replace(body, []byte("in ShippingQuoteInput"), []byte("in struct{ Country string; Grams string }"), 1)
	changed, overlay := filepath.Join(t.TempDir(), "handlers.go"), filepath.Join(t.TempDir(), "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{code: changed}})
	if err := errors.Join(err, os.WriteFile(changed, body, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -overlay="+overlay)
	err = run(t.Context(), io.Discard, dir, true, "")
	if err == nil || !strings.Contains(err.Error(), "does not fit its actions") ||
		!strings.Contains(err.Error(), "handlers.go") || !strings.Contains(err.Error(), "ShippingQuoteInput") {
		t.Errorf("-check says %v", err)
	}
}

// TestCheckTypeScriptHandlers finds such a TypeScript handler: a function, or the result of makeJayAction.
func TestCheckTypeScriptHandlers(t *testing.T) {
	browsertest.Node(t)
	tsc := filepath.Join(browsertest.Modules(t, "typescript"), "node_modules", "typescript", "bin", "tsc")
	for name, tt := range map[string]struct{ code, want string }{
		"a function": {"export async function addToCart(i: CartAddToCartInput): Promise<CartAddToCartOutput> " +
			"{ return { items: i.quantity ?? 1 }; }", ""},
		"a constant": {"export const addToCart = (i: { productId: string }) => ({ items: i.productId.length });",
			""},
		"an action": {"export const addToCart = { actionName: 'x', handler: async (i: CartAddToCartInput) => " +
			"({ items: 1 }) };", ""},
		"another input": {"export const addToCart = (i: { productId: number }) => ({ items: 1 });",
			"handler.ts: addToCart does not fit actions/add-to-cart.jay-action"},
		"one field more": {"export const addToCart = (i: { productId: string; colour: string }) => ({ items: 1 });",
			"colour"},
		"another answer": {"export const addToCart = async (i: CartAddToCartInput) => ({ items: 'one' });",
			"does not fit"},
		"an action's": {"export const addToCart = { handler: async (i: { productId: number }) => ({ " +
			"items: 1 }) };", "does not fit"},
		"not the handler's": {"export const addToCarts = (i: { productId: number }) => ({ items: 1 });", ""},
	} {
		dir := filepath.Join(t.TempDir(), "shop")
		if err := os.CopyFS(dir, os.DirFS("testdata/shop")); err != nil {
			t.Fatal(err)
		}
		code := "import type { CartAddToCartInput, CartAddToCartOutput } from './actions/add-to-cart.jay-action';\n" +
			tt.code + "\n"
		if err := os.WriteFile(filepath.Join(dir, "handler.ts"), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		err := run(t.Context(), io.Discard, dir, true, tsc)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "shop")
	if err := os.CopyFS(dir, os.DirFS("testdata/shop")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "handler.ts"), []byte("export const addToCart = 1;\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := run(t.Context(), io.Discard, dir, true, ""); err == nil || !strings.Contains(err.Error(), "no compiler") {
		t.Errorf("without a compiler: %v", err)
	}
}
