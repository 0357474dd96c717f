package action

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// FuzzMetadata checks that a file is either refused, in one line with the place, or becomes a tool.
func FuzzMetadata(f *testing.F) {
	for _, file := range []string{"search-products", "add-to-cart"} {
		data, err := os.ReadFile("testdata/shop/actions/" + file + extension)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"", "a: &a [*a]", "name: [", whole, whole + "preview: [{label: Q, field: query}]\n",
		whole + "class: destructive\nfinal: true\nuntrusted: true\ntimeout: 1m\n",
		whole + "class: read\ntargets: [{kind: address, field: query}]\nbound: [query]\n",
		whole + "class: opaque\napproval: not_required\n",
		strings.ReplaceAll(whole, "string", "array"), "? [a]\n: b", "{name: a, name: b}",
		"name: !!binary eA==", "\ufeffname: a", "--- \n--- \n",
		"name: a\ninputSchema: {type: object, properties: {a: {type: number, default: .nan}}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		name, m, err := ParseMetadata("x.jay-action", data)
		if err != nil {
			var p *Problem
			if !errors.As(err, &p) || strings.Contains(err.Error(), "\n") ||
				!strings.HasPrefix(err.Error(), "x.jay-action:") {
				t.Fatalf("%q is refused with %v", data, err)
			}
			return
		}
		a := Action{Name: name, Metadata: m}
		none := func(json.RawMessage) (tool.Preview, error) { return tool.Preview{}, nil }
		d := tool.Declaration{Name: GeminiName(name), Preview: none}
		m.declare(&d)
		made, err := tool.Declare(d)
		if err != nil {
			t.Fatalf("%q is taken and makes no tool: %v", data, err)
		}
		for _, read := range []func(json.RawMessage) error{
			func(args json.RawMessage) error { _, err := made.Targets(args); return err },
			func(args json.RawMessage) error { _, err := made.Pinned(args); return err },
		} {
			if err := read(json.RawMessage(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.preview(json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
	})
}
