package action

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

const (
	maxTitle    = 120 // runes
	maxWarnings = 20
)

// preview returns all arguments: first those that the file lists, under its labels, then the others under their names.
func (a Action) preview(args json.RawMessage) (tool.Preview, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return tool.Preview{}, err
	}
	p := tool.Preview{Title: a.title(), Fields: []tool.Field{}}
	var shown []Shown
	if a.Metadata != nil {
		shown = slices.Clone(a.Metadata.Preview)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(shown, func(s Shown) bool { return s.Field == name }) {
			shown = append(shown, Shown{name, name})
		}
	}
	for _, s := range shown {
		if raw, given := values[s.Field]; given {
			p.AddValue(s.Label, raw)
		}
	}
	p.Warnings = p.Warnings[:min(maxWarnings, len(p.Warnings))]
	return p, nil
}

// title returns the first sentence of the description, or the name.
func (a Action) title() string {
	if a.Metadata == nil {
		return a.Name
	}
	first, _, _ := strings.Cut(a.Metadata.Description, ". ")
	first, _ = visible.Line(strings.TrimSuffix(strings.Join(strings.Fields(first), " "), "."))
	if runes := []rune(first); len(runes) > maxTitle {
		return string(runes[:maxTitle]) + "…"
	}
	return first
}
