package main

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/tools/action"
)

// typescript returns the declaration file of an action: <Name>Input and <Name>Output.
func typescript(a action.Action) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "// Generated from %s by actiongen. Do not edit.\n\n", path.Base(a.Metadata.File))
	fmt.Fprintf(&b, "/** %s */\n", comment(a.Metadata.Description))
	tsRoot(&b, typeName(a.Name)+"Input", a.Metadata.Input)
	b.WriteString("\n")
	tsRoot(&b, typeName(a.Name)+"Output", a.Metadata.Output)
	return []byte(b.String())
}

// tsRoot declares an object as an interface and anything else as a type.
func tsRoot(b *strings.Builder, name string, s *jsonschema.Schema) {
	if s != nil && s.Type == "object" && len(s.Enum) == 0 && !open(s) {
		fmt.Fprintf(b, "export interface %s %s\n", name, tsType(s, ""))
		return
	}
	fmt.Fprintf(b, "export type %s = %s;\n", name, tsType(s, ""))
}

func tsType(s *jsonschema.Schema, indent string) string {
	switch {
	case s == nil:
		return "unknown"
	case s.Const != nil:
		return tsEnum([]any{*s.Const})
	case len(s.Enum) > 0:
		return tsEnum(s.Enum)
	case len(s.Types) > 0:
		return tsUnion(s, indent)
	case s.Type == "" && len(s.AnyOf)+len(s.OneOf) > 0:
		return tsAny(slices.Concat(s.AnyOf, s.OneOf), indent)
	case s.Type == "" && s.Properties == nil:
		return "unknown"
	}
	switch s.Type {
	case "null":
		return "null"
	case "integer", "number":
		return "number"
	case "string", "boolean":
		return s.Type
	case "array":
		return "Array<" + tsType(s.Items, indent) + ">"
	}
	return tsObject(s, indent)
}

// tsUnion returns the union of a schema's types.
func tsUnion(s *jsonschema.Schema, indent string) string {
	var all []*jsonschema.Schema
	for _, t := range s.Types {
		one := *s
		one.Type, one.Types = t, nil
		all = append(all, &one)
	}
	return tsAny(all, indent)
}

// tsAny returns the union of the types that the schemas allow.
func tsAny(all []*jsonschema.Schema, indent string) string {
	var out []string
	for _, s := range all {
		if t := tsType(s, indent); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return "(" + strings.Join(out, " | ") + ")"
}

func tsEnum(values []any) string {
	var out []string
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // it was JSON before
		}
		out = append(out, string(b))
	}
	return strings.Join(out, " | ")
}

func tsObject(s *jsonschema.Schema, indent string) string {
	values := "unknown" // the type of unnamed properties
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		values = tsType(s.AdditionalProperties, indent)
	}
	if open(s) && len(s.Properties) == 0 {
		return "Record<string, " + values + ">"
	}
	if len(s.Properties) == 0 {
		return "{}"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range s.PropertyOrder {
		p, mark := s.Properties[name], "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		if p.Description != "" {
			fmt.Fprintf(&b, "%s    /** %s */\n", indent, comment(p.Description))
		}
		fmt.Fprintf(&b, "%s    %s%s: %s;\n", indent, tsName(name), mark, tsType(p, indent+"    "))
	}
	b.WriteString(indent + "}")
	if open(s) {
		return "(" + b.String() + " & Record<string, unknown>)"
	}
	return b.String()
}

// tsName returns the property's name, in quotation marks if it is not an identifier.
func tsName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || r == '-' || r == '.' }) {
		return strconv.Quote(name)
	}
	return name
}

// open reports whether an object explicitly allows unnamed properties. An output that says nothing about them may have
// some too, but no code reads them.
func open(s *jsonschema.Schema) bool {
	if s.AdditionalProperties == nil {
		return s.Properties == nil
	}
	return s.AdditionalProperties.Not == nil
}

// comment returns a text that stays within one comment and one line.
func comment(s string) string {
	return strings.ReplaceAll(
		strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }),
			" "), "*/", "* /")
}

// typeName returns the action's name as a type's: cart.addToCart is CartAddToCart. An underscore stays, so that
// different names stay different.
func typeName(name string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '-' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}
