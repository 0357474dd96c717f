package document

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// person and its parts have every form of member that stored documents have.
type person struct {
	UID      string     `json:"uid"`
	Disabled bool       `json:"disabled,omitempty"`
	At       *time.Time `json:"at,omitempty"`
	Place    *place     `json:"place,omitempty"`
	Log      *Log[item] `json:"log,omitempty"`
	count
}

type count struct {
	Open int `json:"open"`
}

type place struct {
	ID string `json:"id"`
}

type item struct {
	Seq int64 `json:"seq"`
}

// TestKeepLater checks which members of earlier content stay: those that this release does not know, and none that it
// has removed.
func TestKeepLater(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"a removed member": {`{"uid":"ana","disabled":true,"later":[1.50]}`, `{"uid":"ana"}`,
			`{"later":[1.50],"uid":"ana"}`},
		"a member of an embedded struct": {`{"uid":"ana","open":2,"later":1}`, `{"uid":"ana","open":0}`,
			`{"later":1,"open":0,"uid":"ana"}`},
		"items of a log": {`{"log":{"tail":[{"seq":1,"later":"<"},{"seq":2,"later":2}],"count":2}}`,
			`{"log":{"tail":[{"seq":2},{"seq":3}],"count":3}}`,
			`{"log":{"count":3,"tail":[{"later":2,"seq":2},{"seq":3}]}}`},
		"a value inside": {`{"place":{"later":1}}`, `{"place":{"id":"x"}}`, `{"place":{"id":"x","later":1}}`},
		"no object": {`{"at":{"later":1}}`, `{"at":"2027-01-01T00:00:00Z"}`,
			`{"at":"2027-01-01T00:00:00Z"}`},
	} {
		if got := keepLater([]byte(c.before), []byte(c.after), reflect.TypeOf(&person{})); string(got) != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestPut checks that only a document that exists and has content of a later release is merged.
func TestPut(t *testing.T) {
	now := time.Date(2027, 1, 5, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		d    store.Doc
		want string
	}{
		"a new document":   {store.Doc{Data: []byte(`{"later":1}`)}, `{"uid":"ana","open":1}`},
		"of this release":  {store.Doc{Version: now, Data: []byte(`{"open":2,"uid":"x"}`)}, `{"uid":"ana","open":1}`},
		"of a later one":   {store.Doc{Version: now, Data: []byte(`{"uid":"x","later":1}`)}, `{"later":1,"open":1,"uid":"ana"}`},
		"without content":  {store.Doc{Version: now}, `{"uid":"ana","open":1}`},
		"of another shape": {store.Doc{Version: now, Data: []byte(`{"uid":{"later":1}}`)}, `{"uid":"ana","open":1}`},
	} {
		c.d.Path = "users/u_ana"
		w, err := Put(c.d, nil, person{UID: "ana", count: count{1}})
		if created := w.Op == store.OpCreate; err != nil || string(w.Doc.Data) != c.want || created == c.d.Exists() {
			t.Errorf("%s: %v %s, created %t", name, err, w.Doc.Data, created)
		}
	}
}

// replaced lists the only callers of Known besides this package: they replace a document as a whole, and why.
var replaced = map[string]string{
	"accounts/linking/pending.go": "a consent takes the place of another, whose content must not stay",
	"engine/quota/share.go":       "it refuses a document with members that it does not know",
	"engine/unit/write.go":        "it has decoded the document, and calls Put if there are such members",
}

// TestLaterContentInWrites checks that no code writes a document back that it has read without Put, except with
// the same content.
func TestLaterContentInWrites(t *testing.T) {
	found := map[string]bool{}
	puts := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == "testkit" {
			return filepath.SkipDir
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, filepath.FromSlash("../../")))
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "store/") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			on, ok := n.(*ast.SelectorExpr)
			if pkg, plain := (*ast.Ident)(nil), false; ok {
				if pkg, plain = on.X.(*ast.Ident); plain && pkg.Name == "document" {
					switch on.Sel.Name {
					case "Put":
						puts++
					case "Known":
						found[name] = true
					}
				}
			}
			if call, ok := n.(*ast.CallExpr); ok && writesNew(call) {
				t.Errorf("%s writes a document with store.Update; use document.Put, which keeps what a later release "+
					"has written", name)
			}
			return true
		})
		return nil
	})
	if err != nil || puts < 10 {
		t.Fatalf("%v; %d calls of Put", err, puts)
	}
	for name := range found {
		if replaced[name] == "" {
			t.Errorf("%s replaces a document without a reason; add one to the list, or call document.Put", name)
		}
	}
	for name := range replaced {
		if !found[name] {
			t.Errorf("%s no longer replaces documents; remove it from the list", name)
		}
	}
}

// writesNew reports whether the call is store.Update with other content than that of the document that was read.
func writesNew(call *ast.CallExpr) bool {
	on, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || on.Sel.Name != "Update" || len(call.Args) != 4 {
		return false
	}
	pkg, ok := on.X.(*ast.Ident)
	same, kept := call.Args[3].(*ast.SelectorExpr)
	return ok && pkg.Name == "store" && !(kept && same.Sel.Name == "Data")
}
