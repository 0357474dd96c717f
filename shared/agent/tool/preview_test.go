package tool_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

func TestPreviewOfHiddenText(t *testing.T) {
	const hidden = ": there are characters that cannot be seen or that change the reading direction. They are " +
		"written out as ⟨U+…⟩."
	var p tool.Preview
	p.AddLine("Title", "a\u202eb\tc")
	p.AddText("Body", "a\n\tb\u200bc")
	p.AddLine("Plain", "a b")
	p.AddLine("La\u200bbel", "p\u0430y") // with a Cyrillic letter
	p.AddAddresses("Nobody", nil)
	p.AddAddresses("To", []string{"ana@example.com", "u@xn--exmple-4nf.com"})
	p.AddField("Time", "now")
	fields := []tool.Field{
		{Label: "Title", Value: "a⟨U+202E⟩b⟨U+0009⟩c"},
		{Label: "Body", Value: "a\n\tb⟨U+200B⟩c", Long: true},
		{Label: "Plain", Value: "a b"},
		{Label: "La⟨U+200B⟩bel", Value: "p\u0430y"},
		{Label: "To", Value: "ana@example.com\nu@xn--exmple-4nf.com (shown as u@ex\u0430mple.com)", Long: true},
		{Label: "Time", Value: "now"},
	}
	if !reflect.DeepEqual(p.Fields, fields) {
		t.Errorf("got  %+v\nwant %+v", p.Fields, fields)
	}
	warnings := []string{"Title" + hidden, "Body" + hidden, "La⟨U+200B⟩bel: The word “p\u0430y” mixes ",
		"To: the domain of u@xn--exmple-4nf.com is written with letters from outside ASCII."}
	if len(p.Warnings) != len(warnings) {
		t.Fatalf("got the warnings %q", p.Warnings)
	}
	for i, w := range warnings {
		if !strings.HasPrefix(p.Warnings[i], w) {
			t.Errorf("warning %d is %q, want %q", i, p.Warnings[i], w)
		}
	}
}

// TestCardOfHiddenText checks a tool whose own code shows texts unchanged.
func TestCardOfHiddenText(t *testing.T) {
	type in struct {
		Text string `json:"text"`
	}
	tl := tool.Define(tool.Def[in, struct{}]{Name: "note", Description: "Notes.", SideEffect: true,
		Preview: func(a in) tool.Preview {
			return tool.Preview{Title: "Note " + a.Text, Warnings: []string{a.Text},
				Fields: []tool.Field{{Label: a.Text, Value: a.Text + "\n"}, {Label: "Plain", Value: "⟨U+202E⟩"}}}
		}})
	p, err := tl.Preview([]byte(`{"text":"a\u202eb"}`))
	const shown = "a⟨U+202E⟩b"
	fields := []tool.Field{{Label: shown, Value: shown + "\n"}, {Label: "Plain", Value: "⟨U+202E⟩"}}
	if err != nil || p.Title != "Note "+shown || !reflect.DeepEqual(p.Fields, fields) {
		t.Errorf("got %+v, %v", p, err)
	}
	if len(p.Warnings) != 3 || p.Warnings[0] != shown || !strings.HasPrefix(p.Warnings[1], "The title: there are ") ||
		!strings.HasPrefix(p.Warnings[2], shown+": there are ") {
		t.Errorf("got the warnings %q", p.Warnings)
	}
}

// TestPreviewOfStandIn checks that a stand-in shows what its tool shows, and a title if the tool cannot show anything.
func TestPreviewOfStandIn(t *testing.T) {
	type in struct {
		Text string `json:"text"`
	}
	for text, want := range map[string]string{"lunch": "Note lunch", "panic": "Call a stand-in"} {
		tl := tool.Define(tool.Def[in, struct{}]{Name: "note", Description: "Notes.", SideEffect: true,
			Execute: func(context.Context, tool.Call, in) (struct{}, error) { return struct{}{}, nil },
			Preview: func(a in) tool.Preview {
				if a.Text == "panic" {
					panic("there is no account")
				}
				return tool.Preview{Title: "Note " + a.Text}
			}})
		p, err := tl.StandIn(nil).Preview([]byte(`{"text":"` + text + `"}`))
		if err != nil || p.Title != want {
			t.Errorf("%s: the title is %q, %v; want %q", text, p.Title, err, want)
		}
	}
}
