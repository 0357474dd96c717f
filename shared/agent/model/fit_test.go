package model_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestFit checks that Fit only cuts tool outputs, older ones more. The model's own contents stay unchanged, each call
// has its response, and no output is cut twice.
func TestFit(t *testing.T) {
	c := fresh(t, model.Message{Role: model.User, Text: "go"})
	var said []string
	for n := range 6 {
		content := fakegemini.Turn{Calls: []fakegemini.Call{{Name: "f"}, {Name: "f"}}}.Content(fmt.Append(nil, n),
			fakegemini.Gemini3)
		said = append(said, string(content))
		must(t, c.AddModel(content))
		var rs []model.Response
		for i, call := range c.Open() {
			rs = append(rs, model.Response{ID: call.ID, Name: call.Name,
				Result: json.RawMessage(`{"n":"` + strings.Repeat(`é\"`, 8<<10) + `"}`)})
			if i == 1 {
				rs[i].Result, rs[i].Error = nil, "It failed."
			}
		}
		must(t, c.AddResponses(rs))
	}
	for most, newest := range map[int]int{120 << 10: 32 << 10, 60 << 10: 32 << 10, 16 << 10: 6 << 10} {
		fitted, err := model.Load(c.JSON())
		must(t, err, fitted.Fit(most))
		raw := fitted.JSON()
		if _, err := fakegemini.Check(raw, fakegemini.Gemini3); err != nil || fitted.Size() > most || len(raw) != 13 {
			t.Errorf("%d: %d bytes in %d contents, %v", most, fitted.Size(), len(raw), err)
		}
		for i := range said {
			if string(raw[1+2*i]) != said[i] {
				t.Errorf("the model's content %d was changed", i)
			}
		}
		if len(raw[2]) > 5<<10 || !strings.Contains(string(raw[2]), " bytes left out …]") ||
			!strings.Contains(string(raw[2]), "It failed.") || len(raw[12]) < newest {
			t.Errorf("%d: the oldest answer has %d bytes, the newest %d", most, len(raw[2]), len(raw[12]))
		}
		again, err := model.Load(raw)
		must(t, err, again.Fit(most))
		if !slices.EqualFunc(again.JSON(), raw, slices.Equal) {
			t.Errorf("%d: a second Fit changed the contents", most)
		}
	}
	if err := c.Fit(100); !fault.Is(err, fault.Model, model.CodeTooLarge) {
		t.Error(err)
	}
}

// TestFitWithNote checks that a text of the server behind responses is kept whole, and so is the turn before it.
func TestFitWithNote(t *testing.T) {
	c := fresh(t, model.Message{Role: model.User, Text: strings.Repeat("earlier ", 512)},
		model.Message{Role: model.Answer, Text: "Yes."},
		model.Message{Role: model.User, Text: "go"})
	must(t, c.AddModel(json.RawMessage(`{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`)),
		c.AddResponses([]model.Response{{Name: "f", Result: json.RawMessage(`"` + strings.Repeat("x", 32<<10) + `"`)}}),
		c.AddNote("The page has changed."+strings.Repeat(" ", 3<<10)))
	must(t, c.Fit(6<<10))
	raw := c.JSON()
	if len(raw) != 4 || !strings.Contains(string(raw[0]), `"go"`) || !strings.Contains(string(raw[3]), "has changed.") {
		t.Errorf("%.200s; want the turn and the note", raw)
	}
	must(t, c.AddModel(json.RawMessage(`{"role":"model","parts":[{"text":"Done."}]}`)), c.AddUser("next"))
	must(t, c.Bound(200))
	if raw := c.JSON(); len(raw) != 1 {
		t.Errorf("%.200s; want the last turn", raw)
	}
}
