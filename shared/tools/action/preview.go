package action

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/visible"
)

const (
	maxTitle    = 120 // runes
	maxValue    = 60  // runes of a value in a title
	maxWarnings = 20
)

// preview returns all arguments: first those that the file lists, under its labels, and then the others, under their
// titles or names.
func (a Action) preview(args json.RawMessage) (tool.Preview, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return tool.Preview{}, err
	}
	shown := a.shown(values)
	p := tool.Preview{Title: a.title(shown, values), Fields: []tool.Field{}}
	for _, s := range shown {
		if raw, given := values[s.Field]; given {
			a.add(&p, s, raw)
		}
	}
	p.Warnings = p.Warnings[:min(maxWarnings, len(p.Warnings))]
	return p, nil
}

// shown returns the parts of a call on its card, in order.
func (a Action) shown(values map[string]json.RawMessage) []Shown {
	if a.Metadata == nil {
		return others(nil, values, func(name string) string { return name })
	}
	return others(slices.Clone(a.Metadata.Preview), values, func(name string) string {
		if p := a.Metadata.Input.Properties[name]; p != nil && p.Title != "" {
			return p.Title
		}
		return name
	})
}

func others(shown []Shown, values map[string]json.RawMessage, label func(string) string) []Shown {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(shown, func(s Shown) bool { return s.Field == name }) {
			shown = append(shown, Shown{Label: label(name), Field: name})
		}
	}
	return shown
}

// add shows one argument, under its display name if it has one. If the argument has display names but its value has
// none, add warns about it, because the value may look like a display name.
func (a Action) add(p *tool.Preview, s Shown, raw json.RawMessage) {
	name, known := s.nameOf(raw)
	if known {
		p.AddLine(s.Label, name)
	} else {
		p.AddValue(s.Label, raw)
		if s.Names != nil {
			p.Warn("%s: not one of the known values.", s.Label)
		}
	}
	p.Fields[len(p.Fields)-1].Argument = s.Field
	if choices := a.choices(s); choices != nil {
		if p.Choices == nil {
			p.Choices = map[string][]tool.Choice{}
		}
		p.Choices[s.Field] = choices
	}
}

// nameOf returns the display name of the value.
func (s Shown) nameOf(raw json.RawMessage) (name string, known bool) {
	var value string
	if json.Unmarshal(raw, &value) != nil {
		return "", false
	}
	name, known = s.Names[value]
	return name, known
}

// choices returns the possible values of the argument if it has a list of them: its display names in their order, or
// its enum.
func (a Action) choices(s Shown) (out []tool.Choice) {
	if len(s.Names) > tool.MaxChoices || a.Metadata == nil {
		return nil
	}
	for value, name := range s.Names {
		out = append(out, tool.Choice{Value: value, Name: name})
	}
	slices.SortFunc(out, func(a, b tool.Choice) int { return strings.Compare(a.Name, b.Name) })
	p := a.Metadata.Input.Properties[s.Field]
	if out != nil || p == nil || p.Type != "string" || len(p.Enum) > tool.MaxChoices {
		return out
	}
	for _, one := range p.Enum {
		if value, ok := one.(string); ok {
			out = append(out, tool.Choice{Value: value, Name: value})
		}
	}
	return out
}

// title returns the file's title with the values of the call, or else the first sentence of the description, or the
// name. Values have quotation marks and display names do not, so a value cannot pass for a display name.
func (a Action) title(shown []Shown, values map[string]json.RawMessage) string {
	if a.Metadata == nil {
		return a.Name
	}
	if len(a.Metadata.Title) == 0 {
		first, _, _ := strings.Cut(a.Metadata.Description, ". ")
		return cut(strings.TrimSuffix(first, "."), maxTitle)
	}
	var b strings.Builder
	for _, p := range a.Metadata.Title {
		b.WriteString(p.Text)
		if p.Field != "" {
			b.WriteString(inTitle(shown, p.Field, values[p.Field]))
		}
	}
	return b.String()
}

func inTitle(shown []Shown, field string, raw json.RawMessage) string {
	i := slices.IndexFunc(shown, func(s Shown) bool { return s.Field == field })
	if i < 0 {
		return "…" // the call lacks this value
	}
	if name, known := shown[i].nameOf(raw); known {
		return name
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return cut(string(raw), maxValue)
	}
	return "“" + cut(strings.NewReplacer("“", `"`, "”", `"`).Replace(text), maxValue) + "”"
}

// cut returns the text as one line of at most that many runes, with hidden characters made visible.
func cut(text string, most int) string {
	line, _ := visible.Line(strings.Join(strings.Fields(text), " "))
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}
