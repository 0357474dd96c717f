package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// ActionPrefix begins the names of server actions, and of no page tool.
const ActionPrefix = "action_"

// Names are names of tools, compared by their letters and digits alone: gmail_send equals Gmail.Send.
type Names map[string]bool

// NamesOf returns the tools' names. A server action's name is added without its prefix too, as users write it.
func NamesOf(tools ...string) Names {
	n := Names{}
	for _, name := range tools {
		n[plainName(name)], n[plainName(strings.TrimPrefix(name, ActionPrefix))] = true, true
	}
	return n
}

// Has reports whether a name can be taken for one of them.
func (n Names) Has(name string) bool { return n[plainName(name)] }

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", ".", "", "-", "").Replace(name))
}

// pageTools returns tools made of the page's definitions.
func (c *Chat) pageTools(defs []ToolDefinition) (tool.Set, error) {
	its := make([]run.PageTool, len(defs))
	for i, d := range defs {
		if d.Category != PageAutomation && d.Category != "" {
			return nil, fault.Invalid(fmt.Sprintf("toolDefinitions/%d/category", i),
				"a page defines tools of the category %q alone", PageAutomation)
		}
		its[i] = run.PageTool{Name: d.Name, Description: d.Description, Schema: d.InputSchema}
	}
	return PageTools("toolDefinitions", "inputSchema", its, c.Taken)
}

// PageTools returns tools made of a page's definitions. None may have a name that is taken. The error names the field
// of the request: that of the definitions, and in each that of its schema.
func PageTools(field, schema string, defs []run.PageTool, taken Names) (tool.Set, error) {
	if len(defs) > MaxTools {
		return nil, fault.Invalid(field, "there are %d of them; %d are the limit", len(defs), MaxTools)
	}
	set := tool.Set{}
	for i, d := range defs {
		at := fmt.Sprintf("%s/%d/", field, i)
		switch {
		case strings.HasPrefix(d.Name, ActionPrefix):
			return nil, fault.Invalid(at+"name",
				"a page tool's name must not begin with %q: those are the server's actions", ActionPrefix)
		case taken.Has(d.Name):
			return nil, fault.Invalid(at+"name", "a page tool must not be called as one of the server's tools is")
		case set[d.Name] != nil:
			return nil, fault.Invalid(at+"name", "two tools have this name")
		case visible.Blank(d.Description):
			return nil, fault.Invalid(at+"description", "a description is needed, for the model")
		case len(d.Description) > MaxDescription:
			return nil, fault.Invalid(at+"description", "it has more than %d bytes", MaxDescription)
		case len(d.Schema) > MaxSchema:
			return nil, fault.Invalid(at+schema, "it has more than %d bytes", MaxSchema)
		}
		t, err := tool.Remote(d.Name, d.Description, d.Schema)
		var bad *fault.Error
		switch {
		case errors.As(err, &bad):
			return nil, fault.Invalid(strings.TrimSuffix(at+schema+"/"+bad.Field, "/"), "%s", bad.Message)
		case err != nil:
			return nil, fault.Invalid(at+"name", "%s", err.Error())
		}
		set[d.Name] = t
	}
	return set, nil
}
