package strictjson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Words maps the types of JSON Schema to their names in error messages.
var Words = map[string]string{"string": "a text", "number": "a number", "integer": "a whole number",
	"boolean": "true or false", "array": "a list", "object": "an object"}

// neededFor returns a message that names the JSON value expected for a Go type.
func neededFor(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "must be a time such as 2027-01-05T10:00:00+01:00"
	case t == reflect.TypeFor[json.Number]():
		return "must be " + Words["number"]
	case t == reflect.TypeFor[[]byte]():
		return "must be a text in base64"
	case t != nil && t.Kind() == reflect.Array:
		return fmt.Sprintf("must be a list of exactly %d entries", t.Len())
	case t != nil && readsText(t):
		return fmt.Sprintf("must be a text in the form of a %s", t)
	case t == nil, decodesItself(t), Words[schemaType(t.Kind())] == "":
		return "must be a value of another type"
	}
	return "must be " + Words[schemaType(t.Kind())] + rangeOf(t)
}

// rangeOf returns the range of an integer type for a message, or "" if the type needs no other limits than JSON.
func rangeOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return fmt.Sprintf(" from %d to %d", -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf(" from 0 to %d", 1<<t.Bits()-1)
	case reflect.Uint, reflect.Uint64:
		return " of 0 or more"
	}
	return ""
}

// readsText reports whether a type is decoded from a JSON string only.
func readsText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) &&
		!p.Implements(reflect.TypeFor[json.Unmarshaler]())
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func schemaType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	}
	return ""
}
