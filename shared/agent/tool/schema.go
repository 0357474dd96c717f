package tool

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// checker is a JSON Schema that values are checked against.
type checker struct {
	schema   *jsonschema.Schema
	resolved func() (*jsonschema.Resolved, error)
}

// checkerOf returns the checker of a resolved schema.
func checkerOf(r *jsonschema.Resolved) checker {
	return checker{r.Schema(), func() (*jsonschema.Resolved, error) { return r, nil }}
}

// schemaOf returns the schema of a Go type. A refine function can change it. The schema is resolved when a value is
// first checked, because that takes most of the time of a tool's definition.
func schemaOf(t reflect.Type, refine func(*jsonschema.Schema)) (checker, error) {
	s, err := typeSchema(t)
	if err != nil {
		return checker{}, fmt.Errorf("no schema for %s: %w", t, err)
	}
	if refine != nil {
		refine(s)
	}
	return checker{s, sync.OnceValues(func() (*jsonschema.Resolved, error) { return s.Resolve(nil) })}, nil
}

// asRead maps Go types to their schemas if their JSON differs from their Go kind. A field's tag can replace the
// description.
var asRead = &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[json.Number]():     {Type: "number"},
	reflect.TypeFor[big.Int]():         {Type: "integer"},
	reflect.TypeFor[[]byte]():          {Type: "string", Description: "In base64."},
	reflect.TypeFor[time.Duration]():   {Type: "integer", Description: "In nanoseconds."},
	reflect.TypeFor[time.Time](): {Type: "string", Format: "date-time",
		Description: "A time in RFC 3339, such as 2027-01-05T10:00:00+01:00."},
}}

// SchemaOf returns the schema of a Go type.
func SchemaOf[T any]() (*jsonschema.Schema, error) { return typeSchema(reflect.TypeFor[T]()) }

func typeSchema(t reflect.Type) (*jsonschema.Schema, error) {
	if err := embeds(t, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	options := &jsonschema.ForOptions{TypeSchemas: maps.Clone(asRead.TypeSchemas)}
	if err := addTexts(t, options.TypeSchemas, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	s, err := jsonschema.ForType(t, options)
	if err != nil {
		return nil, err
	}
	plainTypes(s)
	quoteNumbers(t, s)
	return s, nil
}

// quoteNumbers makes the fields of structs whose tag has the option "string" texts, as encoding/json writes them.
func quoteNumbers(t reflect.Type, s *jsonschema.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case s == nil:
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		quoteNumbers(t.Elem(), s.Items)
	case t.Kind() == reflect.Map:
		quoteNumbers(t.Elem(), s.AdditionalProperties)
	case t.Kind() == reflect.Struct && s.Properties != nil:
		for _, f := range reflect.VisibleFields(t) {
			tag := strings.Split(f.Tag.Get("json"), ",")
			p := s.Properties[cmp.Or(tag[0], f.Name)]
			switch {
			case p == nil:
			case slices.Contains(tag[1:], "string") && (p.Type == "integer" || p.Type == "number"):
				*p = jsonschema.Schema{Type: "string", Description: p.Description, Pattern: numeral.String()}
			default:
				quoteNumbers(f.Type, p)
			}
		}
	}
}

// addTexts adds the types within t that are texts in JSON, such as netip.Addr. The error is for a type that reads a
// text but writes none, because its arguments could not be stored.
func addTexts(t reflect.Type, to map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) error {
	if seen[t] || to[t] != nil {
		return nil
	}
	seen[t] = true
	p := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Interface || p.Implements(reflect.TypeFor[json.Unmarshaler]()):
	case t.Kind() != reflect.Pointer && p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		if !p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
			return fmt.Errorf("%s has UnmarshalText, so it needs MarshalText", t)
		}
		to[t] = &jsonschema.Schema{Type: "string"}
	case slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()):
		return addTexts(t.Elem(), to, seen)
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			if err := addTexts(f.Type, to, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// embeds refuses a struct that embeds a type of [asRead]. With an embedded time.Time, for example, the whole struct is
// one time in JSON, and its other fields are lost.
func embeds(t reflect.Type, seen map[reflect.Type]bool) error {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || asRead.TypeSchemas[t] != nil {
		return nil
	}
	seen[t] = true
	for f := range t.Fields() {
		fieldType := f.Type
		if fieldType.Kind() == reflect.Pointer {
			fieldType = fieldType.Elem()
		}
		if f.Anonymous && asRead.TypeSchemas[fieldType] != nil {
			return fmt.Errorf("the struct %s embeds %s, which is one value in JSON and has no fields; give it a name, "+
				"such as At %s", t, f.Type, f.Type)
		}
		if err := embeds(f.Type, seen); err != nil {
			return err
		}
	}
	return nil
}

// addressOf refuses arguments that contain a url.URL. In JSON it is an object of eleven required parts, which no model
// writes. at names the value of type t.
func addressOf(t reflect.Type, at string, seen map[reflect.Type]bool) error {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	if t == reflect.TypeFor[url.URL]() {
		return fmt.Errorf("%s has the type url.URL, whose JSON is an object of its parts; use a string and url.Parse",
			at)
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return nil
	}
	seen[t] = true
	for f := range t.Fields() {
		if !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		if err := addressOf(f.Type, f.Name, seen); err != nil {
			return err
		}
	}
	return nil
}

// plainTypes replaces types such as "null or array", which Go slices and pointers get, with "array": null is not a
// list, and a null for an optional field means that the field is absent. A pointer in a required field can be null.
func plainTypes(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for name, p := range s.Properties {
		types := p.Types
		plainTypes(p)
		if slices.Contains(s.Required, name) && len(types) == 2 && p.Type != "array" {
			p.Type, p.Types = "", types
		}
	}
	if s.Items != nil {
		plainTypes(s.Items)
	}
}

// CheckPinned returns an error if no call can have these pinned arguments, because one of them does not fit the tool's
// schema. Examples are an empty list where an entry is required, and a text instead of a number.
func (t *Tool) CheckPinned(pinned json.RawMessage) error {
	var has map[string]json.RawMessage
	if t.schema.schema == nil || json.Unmarshal(pinned, &has) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		property := t.schema.schema.Properties[name]
		if property == nil {
			continue
		}
		one, err := property.CloneSchemas().Resolve(nil)
		if err != nil {
			return err
		}
		if err := checkerOf(one).check(has[name]); err != nil {
			return fault.Invalid(name, "no call of %s can have this value: %s", t.Name, fault.As(err).Message)
		}
	}
	return nil
}

// check validates JSON against the schema.
func (s checker) check(data json.RawMessage) error { return s.checkAs(data, checker.explain) }

// clamped reads a number beyond the range of a double, such as 1e400, as the largest double. Only a result can have
// such a number; its bytes stay as they are.
var clamped = jsonv2.UnmarshalFromFunc(func(dec *jsontext.Decoder, v *any) error {
	if dec.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	number, err := dec.ReadValue()
	if err != nil {
		return err
	}
	double, _ := strconv.ParseFloat(string(number), 64) // infinite if out of range
	*v = min(max(double, -math.MaxFloat64), math.MaxFloat64)
	return nil
})

// checkAs validates JSON against the schema. explained turns the validator's error into the error that is returned.
// JSON with a duplicate key or invalid UTF-8 is refused, because programs disagree about its meaning.
func (s checker) checkAs(data json.RawMessage, explained func(checker, error) (field, why string)) error {
	var v any
	err := jsonv2.Unmarshal(data, &v)
	if errors.Is(err, strconv.ErrRange) {
		err = jsonv2.Unmarshal(data, &v, jsonv2.WithUnmarshalers(clamped))
	}
	if err != nil {
		return fault.Invalid("", "invalid JSON").Because(err)
	}
	r, err := s.resolved()
	if err != nil {
		return fmt.Errorf("resolve a schema: %w", err)
	}
	if err := r.Validate(v); err != nil {
		failed, err := s.narrowed(data, err)
		field, rule := explained(failed, err)
		return fault.Invalid(field, "%s", rule)
	}
	return nil
}
