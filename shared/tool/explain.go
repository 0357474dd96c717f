package tool

import (
	"strings"

	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// The validator wraps an error once for each schema on the path, "validating /properties/to: validating
// /properties/to/items: type: …", then names the rule and then quotes the value, which may be a secret or 200 KiB long.
// Only the text before the rule's colon, and the names of missing fields, come from the schema itself.
var (
	through = lazyregexp.New(`^validating (root|/[A-Za-z0-9_~/$-]*): `)
	rule    = lazyregexp.New(`^([A-Za-z]+):`)
	missing = lazyregexp.New(`^required: missing properties: \["([A-Za-z0-9_-]+)"`)
	// unknown matches the name of a field that the schema does not have.
	unknown = lazyregexp.New(`unexpected additional properties \["([A-Za-z0-9_-]{1,64})"`)
)

// rules are the validator's rules as messages.
var rules = map[string]string{
	"type":          "a value of another type is needed here",
	"enum":          "this is not one of the values that are allowed here",
	"const":         "this is not the value that is needed here",
	"pattern":       "this does not have the form that is needed here",
	"minLength":     "this is too short",
	"maxLength":     "this is too long",
	"minItems":      "there are too few entries",
	"maxItems":      "there are too many entries",
	"uniqueItems":   "an entry stands here twice",
	"minimum":       "this number is too small",
	"maximum":       "this number is too large",
	"multipleOf":    "this number is not a multiple of what is needed here",
	"minProperties": "there are too few fields",
	"maxProperties": "there are too many fields",
}

// explain returns the field at fault and the violated rule, and never the value.
func explain(err error) (field, why string) {
	s := err.Error()
	for m := through.FindStringSubmatch(s); m != nil; m = through.FindStringSubmatch(s) {
		field, s = m[1], s[len(m[0]):]
	}
	field = pointerToField(field)
	if m := missing.FindStringSubmatch(s); m != nil {
		return strings.TrimPrefix(field+"/"+m[1], "/"), "this field is needed"
	}
	if strings.HasPrefix(s, "unexpected additional properties") {
		return field, "there is a field that is not known"
	}
	if m := rule.FindStringSubmatch(s); m != nil && rules[m[1]] != "" {
		return field, rules[m[1]]
	}
	return field, "this does not fit the schema"
}

// explainArguments is explain for arguments: the model or the user who made them learns which field is not known, if
// its name is plain. Of what a service answered nothing is repeated, not even a name.
func explainArguments(err error) (field, why string) {
	field, why = explain(err)
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
