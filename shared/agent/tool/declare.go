package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Declaration is the definition from which Declare makes a Tool. It is a [Def] whose schemas are data instead of Go
// types. Its functions mean the same as those of Def; their arguments are canonical.
type Declaration struct {
	Name        string
	Description string
	SideEffect  bool
	Class       Class    // if empty: ClassChange for a side effect, otherwise ClassRead
	Approval    Approval // if empty: Required for a side effect, otherwise NotRequired
	UserOnly    bool
	Named       bool          // see Spec
	Timeout     time.Duration // see Spec
	Final       bool          // see Spec
	Untrusted   bool          // see Spec
	Source      string        // see Spec

	Input     *jsonschema.Schema // must have the type object; its defaults are filled in
	Output    *jsonschema.Schema // nil permits any JSON
	Targets   func(json.RawMessage) ([]Target, error)
	Pinned    func(json.RawMessage) (json.RawMessage, error)
	Preview   func(json.RawMessage) (Preview, error)
	Summary   string // one sentence about the completed call
	Place     func(context.Context, Scope) (Place, error)
	Execute   func(context.Context, Call) (json.RawMessage, error)
	Wait      time.Duration // see Spec
	Reconcile func(context.Context, Call) (Outcome, error)
}

var errWait = errors.New("the field Wait must be positive, and only a tool without Execute can have it")

// Declare returns a tool that is defined by data. [Define] does the same for Go types. The error names the mistake in
// the declaration.
func Declare(d Declaration) (*Tool, error) {
	if !validName.MatchString(d.Name) || d.Description == "" || d.SideEffect && d.Preview == nil {
		return nil, fmt.Errorf("tool.Declare(%q): need a name matching %s, a description, and a preview for a side "+
			"effect", d.Name, validName)
	}
	if d.Wait < 0 || d.Wait > 0 && d.Execute != nil {
		return nil, fmt.Errorf("tool.Declare(%q): %w", d.Name, errWait)
	}
	in, err := objectSchema(d.Input, true)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	raw, err := declaredSchema(d.Input)
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	spec, err := Spec{Name: d.Name, Description: d.Description, Schema: raw, SideEffect: d.SideEffect, Class: d.Class,
		Approval: d.Approval, UserOnly: d.UserOnly, Named: d.Named, Wait: d.Wait, Timeout: d.Timeout, Final: d.Final,
		Untrusted: d.Untrusted, Source: d.Source}.complete()
	if err != nil {
		return nil, fmt.Errorf("tool.Declare(%q): %w", d.Name, err)
	}
	out, err := resolved(d.Output)
	if err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	normal := func(args json.RawMessage) (json.RawMessage, error) { return in.normalize(args, true) }
	if d.Source != "" {
		normal = affordable(in, normal)
	}
	return &Tool{
		Spec: spec,
		has: parts{pinned: d.Pinned != nil, heading: d.SideEffect, execute: d.Execute != nil,
			reconcile: d.Reconcile != nil},
		functions: &declared{Declaration: d, normal: normal, out: out},
		place:     d.Place,
	}, nil
}

// declared holds the functions of a declaration. The embedded functions value is nil, because a declaration cannot have
// the others.
type declared struct {
	functions
	Declaration
	normal func(json.RawMessage) (json.RawMessage, error)
	out    *checker
}

func (d *declared) normalize(args json.RawMessage) (json.RawMessage, error) { return d.normal(args) }

func (d *declared) targets(args json.RawMessage) ([]Target, error) {
	if d.Targets == nil {
		return nil, nil
	}
	return d.Targets(args)
}

func (d *declared) pinned(args json.RawMessage) (json.RawMessage, error) {
	if d.Pinned == nil {
		return args, nil
	}
	return d.Pinned(args)
}

func (d *declared) preview(args json.RawMessage) (Preview, error) {
	if d.Preview == nil {
		return Preview{Title: d.Name}, nil
	}
	return d.Preview(args)
}

func (d *declared) summary(json.RawMessage) string { return cmp.Or(d.Summary, "Did "+d.Name+".") }

func (d *declared) heading(args json.RawMessage) string {
	p, err := d.Preview(args)
	if err != nil {
		return ""
	}
	return p.Title
}

func (d *declared) execute(ctx context.Context, c Call) (json.RawMessage, error) {
	result, err := d.Execute(ctx, c)
	if err != nil {
		return nil, err
	}
	b, err := d.out.answer(result)
	return b, d.unusable(err)
}

// unusable returns the error for a result that the tool's own schema forbids. If the tool has a side effect, the effect
// took place.
func (d *declared) unusable(err error) error {
	switch {
	case err == nil:
		return nil
	case d.SideEffect:
		return forbidden(d.Name, err)
	}
	return fault.New(fault.Tool, "unusable_answer",
		"The service returned an invalid response.").Because(err)
}

func (d *declared) reconcile(ctx context.Context, c Call, _ bool) (Outcome, error) {
	o, err := d.Reconcile(ctx, c)
	if err != nil || o.Verdict != Done {
		return o, err
	}
	if o.Result, err = d.out.answer(o.Result); err != nil {
		o.Result = unreadableResult(err)
	}
	return o, nil
}

// objectSchema resolves the schema of arguments. Its type must be object.
func objectSchema(s *jsonschema.Schema, defaults bool) (checker, error) {
	if s == nil || s.Type != "object" {
		return checker{}, errors.New("must be a JSON Schema of type object")
	}
	if err := exactNumbers(s); err != nil {
		return checker{}, err
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: defaults})
	if err != nil {
		return checker{}, errors.New("need a JSON Schema without external references, with RE2 patterns " +
			"and with defaults that fit")
	}
	return checkerOf(r), nil
}

// exactNumbers refuses a schema with a number that canonical JSON does not preserve, such as a default, an allowed
// value or a limit.
func exactNumbers(s *jsonschema.Schema) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return strictjson.Exact(raw)
}

// resolved resolves the schema of a result. It returns nil for nil.
func resolved(s *jsonschema.Schema) (*checker, error) {
	if s == nil {
		return nil, nil
	}
	if err := exactNumbers(s); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, errors.New("need a JSON Schema without external references and with RE2 " +
			"patterns")
	}
	c := checkerOf(r)
	return &c, nil
}

// normalize checks arguments, fills in defaults if defaults is set, and returns the canonical form.
func (s checker) normalize(args json.RawMessage, defaults bool) (json.RawMessage, error) {
	if err := strictjson.Exact(args); err != nil {
		return nil, err
	}
	args, err := s.meant(args)
	if err != nil {
		return nil, err
	}
	if defaults {
		var v map[string]any
		if err := json.Unmarshal(args, &v); err != nil {
			return nil, fault.Invalid("", "invalid JSON").Because(err)
		}
		if err := fillDefaults(s.schema, v); err != nil {
			return nil, err
		}
		filled, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		args = filled
	}
	if err := s.checkAs(args, checker.explainArguments); err != nil {
		return nil, err
	}
	return strictjson.Canonical(args)
}

// fillDefaults sets missing fields of an object to their defaults. Unlike the library's ApplyDefaults it creates no
// missing object, because that object may require fields that have no default.
func fillDefaults(s *jsonschema.Schema, v any) error {
	switch v := v.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			if _, given := v[name]; !given && p.Default != nil {
				var def any
				if err := json.Unmarshal(p.Default, &def); err != nil {
					return err
				}
				v[name] = def
			}
			if err := fillDefaults(p, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if s.Items == nil {
				break
			}
			if err := fillDefaults(s.Items, item); err != nil {
				return err
			}
		}
	}
	return nil
}

// answer checks a result against its schema, if any, and returns it without white space. Numbers stay as they are
// written, because RFC 8785 cannot represent an ID of 19 digits.
func (s *checker) answer(result json.RawMessage) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, result); err != nil || !utf8.Valid(result) {
		return nil, fault.Invalid("", "invalid JSON or UTF-8").Because(err)
	}
	if s != nil {
		if err := s.check(result); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
