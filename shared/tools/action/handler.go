package action

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Handlers holds the handlers of actions, by the actions' names.
type Handlers map[string]Handler

// A Handler is a Go function that runs an action. Make one with [Handle] or [Query].
type Handler struct {
	in, out    *jsonschema.Schema
	sideEffect bool // the default if the action has no file
	run        func(context.Context, tool.Call) (json.RawMessage, error)
}

// Handle returns a handler that calls f. The types of f must match the action's file, if it has one. f can return
// [tool.Ambiguous] and [tool.Transient] errors; any other error means that nothing happened.
func Handle[In, Out any](f func(context.Context, tool.Call, In) (Out, error)) Handler {
	h := Handler{sideEffect: true, in: schemaOf[In](), out: schemaOf[Out]()}
	h.run = func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		var in In
		if err := json.Unmarshal(c.Args, &in); err != nil {
			return nil, err
		}
		out, err := f(ctx, c, in)
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return nil, tool.Unread(err)
		}
		return raw, nil
	}
	return h
}

// Query is like [Handle], for an action without a side effect and without a file.
func Query[In, Out any](f func(context.Context, tool.Call, In) (Out, error)) Handler {
	h := Handle(f)
	h.sideEffect = false
	return h
}

// schemaOf returns the schema of T. Like [tool.Define], it panics on a type that has none.
func schemaOf[T any]() *jsonschema.Schema {
	s, err := tool.SchemaOf[T]()
	if err != nil {
		panic(fmt.Sprintf("action: no schema for the type of a handler: %v", err))
	}
	return s
}

// fits checks the handler's types against the file. The handler must accept every input that the file allows, and
// return only outputs that it allows.
func (h Handler) fits(m *Metadata) error {
	if err := accepts(h.in, m.Input, "inputSchema"); err != nil {
		return err
	}
	if m.Output == nil {
		return nil
	}
	return accepts(m.Output, h.out, "outputSchema")
}

// accepts returns an error if wide does not accept every value that narrow allows.
func accepts(wide, narrow *jsonschema.Schema, at string) error {
	if typ := kind(wide); typ == "" {
		return nil // any
	} else if has := kind(narrow); typ != has && (typ != "number" || has != "integer") {
		return fmt.Errorf("%s: must be a Go type for %s", at, typeOf(narrow, wide, at))
	}
	if kind(wide) == "array" {
		if wide.Items == nil || narrow.Items == nil { // at least one side allows any list
			return nil
		}
		return accepts(wide.Items, narrow.Items, at+"/items")
	}
	for _, name := range wide.Required {
		p := narrow.Properties[name]
		if !slices.Contains(narrow.Required, name) && (p == nil || p.Default == nil) {
			return fmt.Errorf("%s/%s: required on one side, and optional on the other", at, name)
		}
	}
	for name, p := range narrow.Properties {
		known := wide.Properties[name]
		switch {
		case known != nil:
			if err := accepts(known, p, at+"/"+name); err != nil {
				return err
			}
		case closed(wide):
			return fmt.Errorf("%s/%s: missing on one side", at, name)
		}
	}
	return nil
}

// kind returns the type of a schema apart from null, or "" if it can have several types.
func kind(s *jsonschema.Schema) string {
	if own := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(own) == 1 {
		return own[0]
	}
	return s.Type
}

// typeOf returns the type in the file, which is on either side.
func typeOf(narrow, wide *jsonschema.Schema, at string) string {
	if len(at) >= 11 && at[:11] == "inputSchema" {
		return cmp.Or(kind(narrow), "values of any type")
	}
	return kind(wide)
}

// closed reports whether an object allows no other properties.
func closed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
}
