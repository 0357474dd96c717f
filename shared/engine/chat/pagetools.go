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

// ActionPrefix begins the names of all server actions. No page tool's name may begin with it.
const ActionPrefix = "action_"

// Names is a set of tool names that compares only letters and digits, without case: gmail_send equals Gmail.Send.
type Names map[string]bool

// NamesOf returns the tools' names. It also adds a server action's name without the prefix, as users write it.
func NamesOf(tools ...string) Names {
	n := Names{}
	for _, name := range tools {
		n[plainName(name)], n[plainName(strings.TrimPrefix(name, ActionPrefix))] = true, true
	}
	return n
}

// Has reports whether a user could mistake the name for one of the set.
func (n Names) Has(name string) bool { return n[plainName(name)] }

func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", ".", "", "-", "").Replace(name))
}

// pageTools returns tools with the page's definitions.
func (c *Chat) pageTools(defs []ToolDefinition) (tool.Set, error) {
	tools := make([]run.PageTool, len(defs))
	for i, d := range defs {
		if d.Category != PageAutomation && d.Category != "" {
			return nil, fault.Invalid(fmt.Sprintf("toolDefinitions/%d/category", i),
				"a page can only define tools of the category %q", PageAutomation)
		}
		tools[i] = run.PageTool{Name: d.Name, Description: d.Description, Schema: d.InputSchema}
	}
	return PageTools("toolDefinitions", "inputSchema", tools, c.Taken)
}

// PageTools returns tools with a page's definitions. No tool may have a name in taken. field is the definitions' field
// in the request, and schema is the schema's field in a definition; errors name them.
func PageTools(field, schema string, defs []run.PageTool, taken Names) (tool.Set, error) {
	if len(defs) > MaxTools {
		return nil, fault.Invalid(field, "%d tools; the limit is %d", len(defs), MaxTools)
	}
	set := tool.Set{}
	for i, d := range defs {
		at := fmt.Sprintf("%s/%d/", field, i)
		switch {
		case strings.HasPrefix(d.Name, ActionPrefix):
			return nil, fault.Invalid(at+"name",
				"a page tool's name must not begin with %q, which marks server actions", ActionPrefix)
		case taken.Has(d.Name):
			return nil, fault.Invalid(at+"name", "a tool of the server has this name")
		case set[d.Name] != nil:
			return nil, fault.Invalid(at+"name", "duplicate name")
		case visible.Blank(d.Description):
			return nil, fault.Invalid(at+"description", "a description is required")
		case len(d.Description) > MaxDescription:
			return nil, fault.Invalid(at+"description", "%d bytes; the limit is %d", len(d.Description), MaxDescription)
		case len(d.Schema) > MaxSchema:
			return nil, fault.Invalid(at+schema, "%d bytes; the limit is %d", len(d.Schema), MaxSchema)
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
