package shop

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/tools/action"
)

// TestDeclaredActions checks that files and handlers match, and that only actions without a side effect need no
// approval.
func TestDeclaredActions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "actions")
	for range 2 { // files of an earlier start do not conflict
		if err := (&Shop{Agent: "shop"}).Declare(dir); err != nil {
			t.Fatal(err)
		}
	}
	r, err := action.Open(dir, action.Options{Handlers: New().Handlers()})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Names(), []string{"searchProducts", "getProduct", "submitRating"}; !slices.Equal(got, want) {
		t.Errorf("the actions are %v, want %v", got, want)
	}
	for _, p := range products {
		args := json.RawMessage(`{"productId":"` + p.ID + `","stars":4}`)
		card, err := r.Tool("submitRating").Preview(args)
		if want := "Rate " + p.Name + " with 4 of 5 stars"; err != nil || card.Title != want ||
			card.Fields[0].Label != "Product" || card.Fields[0].Value != p.Name || len(card.Warnings) > 0 {
			t.Errorf("the card of a rating says %+v (%v), want %s", card, err, want)
		}
	}
	if err := New().Declare(filepath.Join(dir, "all")); err != nil {
		t.Fatal(err)
	}
	all, err := action.Open(filepath.Join(dir, "all"), action.Options{Handlers: New().Handlers()})
	if err != nil || all.Tool("submitRating").Named || !r.Tool("submitRating").Named {
		t.Errorf("named for the page's agent: %v; without it: %v (%v)", r.Tool("submitRating").Named,
			all.Tool("submitRating").Named, err)
	}
	for name, effect := range map[string]bool{"searchProducts": false, "getProduct": false, "submitRating": true} {
		if tool := r.Tool(name); tool.SideEffect != effect || (tool.Approval == "required") != effect || tool.UserOnly {
			t.Errorf("%s: %+v", name, tool.Spec)
		}
	}
}
