package action

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

const rated1 = `name: rate
description: Rates a thing. More about it.
inputSchema:
  type: object
  properties:
    thing: {type: string, title: Thing}
    stars: {type: integer, title: Stars}
    pace: {type: string, title: How fast, enum: [slow, fast]}
    note: {type: string}
  required: [thing, stars, pace]
preview:
  title: Rate {thing} with {stars} stars
  fields:
    - {field: thing, names: {t-1: Blue Mug, t-2: A Red Mug}}
    - {field: stars, label: Number of stars}
binding: {url: https://shop.example/rate}
`

func card(t *testing.T, file, args string) tool.Preview {
	t.Helper()
	name, m, err := ParseMetadata("a.jay-action", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Action{Name: name, Metadata: m}.preview(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPreviewNames checks that the card shows display names and titles, and which argument each line belongs to, with
// its possible values.
func TestPreviewNames(t *testing.T) {
	p := card(t, rated1, `{"note":"n","pace":"slow","stars":4,"thing":"t-1"}`)
	want := []tool.Field{{Label: "Thing", Value: "Blue Mug", Argument: "thing"},
		{Label: "Number of stars", Value: "4", Argument: "stars"}, {Label: "note", Value: "n", Argument: "note"},
		{Label: "How fast", Value: "slow", Argument: "pace"}}
	if p.Title != "Rate Blue Mug with 4 stars" || !reflect.DeepEqual(p.Fields, want) || len(p.Warnings) != 0 {
		t.Errorf("the card is %+v", p)
	}
	choices := map[string][]tool.Choice{"thing": {{Value: "t-2", Name: "A Red Mug"}, {Value: "t-1", Name: "Blue Mug"}},
		"pace": {{Value: "slow", Name: "slow"}, {Value: "fast", Name: "fast"}}}
	if !maps.EqualFunc(p.Choices, choices, slices.Equal[[]tool.Choice]) {
		t.Errorf("the choices are %v, want %v", p.Choices, choices)
	}
}

// TestPreviewValueWithoutName checks that a value without a display name cannot pass for one that has a name.
func TestPreviewValueWithoutName(t *testing.T) {
	for value, title := range map[string]string{
		"Blue Mug":              "Rate “Blue Mug” with 1 stars",
		"x” with 5 stars, “":    `Rate “x" with 5 stars, "” with 1 stars`,
		"a\nb":                  "Rate “a b” with 1 stars",
		"a\u202eb":              "Rate “a⟨U+202E⟩b” with 1 stars",
		strings.Repeat("y", 61): "Rate “" + strings.Repeat("y", 60) + "…” with 1 stars",
	} {
		raw, err := json.Marshal(map[string]any{"thing": value, "stars": 1, "pace": "slow"})
		if err != nil {
			t.Fatal(err)
		}
		p := card(t, rated1, string(raw))
		if p.Title != title || len(p.Warnings) == 0 || !slices.ContainsFunc(p.Warnings, func(w string) bool {
			return w == "Thing: not one of the known values."
		}) {
			t.Errorf("%q: %q, %q; want %q and a warning", value, p.Title, p.Warnings, title)
		}
	}
}

// TestPreviewManyNames checks that a card stays small. With too many display names it offers no choices, but it still
// shows the display name of the value.
func TestPreviewManyNames(t *testing.T) {
	var names []string
	for i := range tool.MaxChoices + 1 {
		names = append(names, "t-"+strconv.Itoa(i+1)+": Mug "+strconv.Itoa(i+1))
	}
	file := strings.Replace(rated1, "t-1: Blue Mug, t-2: A Red Mug", strings.Join(names, ", "), 1)
	p := card(t, file, `{"pace":"slow","stars":4,"thing":"t-51"}`)
	if p.Fields[0].Value != "Mug 51" || p.Choices["thing"] != nil || p.Choices["pace"] == nil {
		t.Errorf("the card is %+v", p)
	}
}

// TestPreviewTitle checks that a title contains only arguments that every call has.
func TestPreviewTitle(t *testing.T) {
	file := strings.Replace(rated1, "Rate {thing}", "Rate {note}", 1)
	if _, _, err := ParseMetadata("a.jay-action", []byte(file)); err == nil || !strings.Contains(err.Error(), `"note" may be`) {
		t.Errorf("it is read: %v", err)
	}
}
