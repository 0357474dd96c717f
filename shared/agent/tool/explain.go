package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// The validator wraps an error once for each schema on the path: "validating /properties/to: validating
// /properties/to/items: type: …". Then it names the rule and quotes the value, which may be a secret or 200 KiB long.
// Only the text before the rule's colon and the names of missing fields come from the schema itself.
var (
	through = lazyregexp.New(`^validating (root|/[A-Za-z0-9_~/$-]*): `)
	rule    = lazyregexp.New(`^([A-Za-z]+):`)
	missing = lazyregexp.New(`^required: missing properties: \["([A-Za-z0-9_-]+)"`)
	// entry matches the path of one entry of a list.
	entry = lazyregexp.New(`/prefixItems/([0-9]+)$`)
	// unknown matches the name of a field that is not in the schema.
	unknown = lazyregexp.New(`unexpected additional properties \["([A-Za-z0-9_-]{1,64})"`)
)

// rules maps the validator's rules to messages.
var rules = map[string]string{
	"enum":          "not one of the allowed values",
	"const":         "not the required value",
	"pattern":       "does not match the required pattern",
	"minLength":     "too short",
	"maxLength":     "too long",
	"minItems":      "too few entries",
	"maxItems":      "too many entries",
	"uniqueItems":   "duplicate entry",
	"minimum":       "the number is too small",
	"maximum":       "the number is too large",
	"multipleOf":    "not a multiple of the required factor",
	"minProperties": "too few fields",
	"maxProperties": "too many fields",
}

// explain returns the field that failed and the violated rule. It never returns the value.
func (c checker) explain(err error) (field, why string) {
	s, path := err.Error(), ""
	for m := through.FindStringSubmatch(s); m != nil; m = through.FindStringSubmatch(s) {
		path, s = m[1], s[len(m[0]):]
	}
	if path == "root" {
		path = ""
	}
	field = pointerToField(path)
	if m := missing.FindStringSubmatch(s); m != nil {
		why = "required"
		if words := c.words(path + "/properties/" + m[1]); words != "" {
			why += ": " + words
		}
		return strings.TrimPrefix(field+"/"+m[1], "/"), why
	}
	if m := rule.FindStringSubmatch(s); m != nil && slices.Contains([]string{"type", "anyOf", "oneOf"}, m[1]) {
		switch words := c.words(path); {
		case words != "" && strings.HasSuffix(path, "/items") && !strings.HasSuffix(path, "/properties/items"):
			return field, "each entry must be " + words
		case words != "" && entry.MatchString(path):
			n, _ := strconv.Atoi(entry.FindStringSubmatch(path)[1])
			return field, fmt.Sprintf("entry %d must be %s", n+1, words)
		case words != "":
			return field, "must be " + words
		}
	}
	if strings.HasPrefix(s, "unexpected additional properties") {
		return field, "unknown field"
	}
	if m := rule.FindStringSubmatch(s); m != nil && rules[m[1]] != "" {
		return field, rules[m[1]]
	}
	return field, "does not fit the schema"
}

// maxNarrowed is the maximum length of a list whose entries are narrowed one by one.
const maxNarrowed = 100

// narrowed returns a checker and its error for data that does not fit the schema. Where only one alternative of the
// schema accepts the type of a value, that alternative replaces the others, so the error names the field within it.
func (c checker) narrowed(data json.RawMessage, err error) (checker, error) {
	v, ok := decodeExactly(data)
	if !ok {
		return c, err
	}
	s := c.schema.CloneSchemas()
	narrow(s, v)
	r, unresolved := s.Resolve(nil)
	var plain any
	if unresolved != nil || json.Unmarshal(data, &plain) != nil {
		return c, err
	}
	if why := r.Validate(plain); why != nil {
		return checkerOf(r), why
	}
	return c, err
}

func narrow(s *jsonschema.Schema, v any) {
	if s == nil {
		return
	}
	for _, choice := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if one := onlyOne(choice, v); one != nil {
			*s = *one
			narrow(s, v)
			return
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			narrow(s.Properties[name], value)
		}
	case []any:
		if s.PrefixItems != nil || len(v) > maxNarrowed || s.Items == nil || countChoices(s.Items) == 0 {
			return
		}
		for _, item := range v {
			s.PrefixItems = append(s.PrefixItems, s.Items.CloneSchemas())
			narrow(s.PrefixItems[len(s.PrefixItems)-1], item)
		}
	}
}

// words returns the types that the schema at a path accepts, in words, or "" if it names none.
func (c checker) words(path string) string {
	raw, err := json.Marshal(c.schema)
	if err != nil {
		return ""
	}
	at, _ := decodeExactly(raw)
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		switch v := at.(type) {
		case map[string]any:
			at = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return ""
			}
			at = v[i]
		}
	}
	var all []string
	for _, kind := range kindsOf(at) {
		if word := strictjson.Words[kind]; word != "" && !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return strings.Join(all, " or ")
}

// kindsOf returns the types that a schema or its alternatives name, or nil if an alternative names none.
func kindsOf(schema any) (kinds []string) {
	s, _ := schema.(map[string]any)
	switch kind := s["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		for _, one := range kind {
			name, _ := one.(string)
			kinds = append(kinds, name)
		}
		return kinds
	}
	choices, ok := s["anyOf"].([]any)
	if !ok {
		choices, _ = s["oneOf"].([]any)
	}
	for _, one := range choices {
		of := kindsOf(one)
		if of == nil {
			return nil
		}
		kinds = append(kinds, of...)
	}
	return kinds
}

// explainArguments is explain for arguments. It also names an unknown field if the name is plain, because the model or
// the user wrote that name. Names from a service's answer are never repeated.
func (c checker) explainArguments(err error) (field, why string) {
	field, why = c.explain(err)
	if m := unknown.FindStringSubmatch(err.Error()); m != nil {
		field = strings.TrimPrefix(field+"/"+m[1], "/")
	}
	return field, why
}

// pointerToField converts a path through the schema to the path of a field: "/properties/to/items" to "to".
func pointerToField(path string) string {
	var parts []string
	steps := strings.Split(path, "/")
	for i := 1; i < len(steps); i++ {
		if steps[i] == "properties" && i+1 < len(steps) {
			i++
			parts = append(parts, steps[i])
		}
	}
	return strings.Join(parts, "/")
}
