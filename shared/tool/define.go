package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/lazyregexp"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// Def is what Define makes a Tool from. In and Out are structs whose JSON tags name the fields and whose jsonschema
// tags describe them; a field without omitempty or omitzero is required.
type Def[In, Out any] struct {
	Name        string
	Description string
	SideEffect  bool
	Class       Class    // if empty: ClassChange for a side effect, otherwise ClassRead
	Approval    Approval // if empty: Required for a side effect, otherwise NotRequired
	UserOnly    bool     // see Spec
	Scopes      []string
	Timeout     time.Duration // see Spec
	Final       bool          // see Spec
	Untrusted   bool          // see Spec

	Interruptible bool // see Spec

	// Refine may narrow the schema that was derived from In (enum, pattern, limits). Optional.
	Refine func(*jsonschema.Schema)
	// Normalize checks what a schema cannot express and brings the arguments into their one form. Its errors are
	// *fault.Error (Validation, or Policy for what is never allowed) and name the field. Optional.
	Normalize func(In) (In, error)
	// Revise returns the user's edited arguments with changes to the fields that the user did not edit, where the edit
	// requires them. Optional.
	Revise func(before, edited In) In
	// Targets returns whom and what the call reaches, each once. Optional.
	Targets func(In) []Target
	// Bound returns the arguments that are not free text, as a value with a JSON form: a user who allows calls in
	// advance fixes these. Nil means all arguments.
	Bound func(In) any
	// Preview returns what a person reads before deciding. Required for a side effect.
	Preview func(In) Preview
	// Summary returns one sentence, for the thread, about what was done; it must not contain a body or a secret.
	// Optional.
	Summary func(In) string
	// Narrow returns what the model may still call in the run once it has made this call; nil leaves that as it is.
	// Optional.
	Narrow func(In) *Narrowing
	// Place returns where a call of the user would act now. Its error says why it cannot act: the account must be
	// linked again, a scope is missing. Nil means that the tool's calls act in no particular place.
	Place func(ctx context.Context, uid string) (Place, error)
	// Reads returns the paths of the documents by which Place, Prepare and Execute know what the user has linked: these
	// functions read them by document.Read, and nothing else of the store. The process that moves the run then reads
	// them with the run's own, and an intent is stored only while they are as they were read. Nil means none.
	Reads func(uid string) []string
	// Prepare creates a handle that Execute uses once and by which Reconcile can find out what happened (a draft). It
	// may be called again for the same call: what it leaves behind must be harmless. Optional.
	Prepare func(context.Context, Call, In) (handle string, err error)
	// Execute carries the call out. See Ambiguous and Transient for its errors. Nil means that the call is answered
	// from outside: by a page or a person.
	Execute func(context.Context, Call, In) (Out, error)
	// Wait is how long a call that is answered from outside waits; see Spec.
	Wait time.Duration
	// Reconcile settles a call that was started and has no recorded outcome. Nil means Unknown.
	Reconcile func(context.Context, Call, In) (Verdict, Out, string, error)
}

// Tool is a tool with its types erased. It is made by [Define], [Declare] or [Remote].
type Tool struct {
	Spec
	normalize func(json.RawMessage) (json.RawMessage, error)
	revise    func(before, edited json.RawMessage) (json.RawMessage, error)
	targets   func(json.RawMessage) ([]Target, error)
	bound     func(json.RawMessage) (json.RawMessage, error)
	preview   func(json.RawMessage) (Preview, error)
	summary   func(json.RawMessage) string
	narrow    func(json.RawMessage) (*Narrowing, error)
	place     func(ctx context.Context, uid string) (Place, error)
	reads     func(uid string) []string
	prepare   func(context.Context, Call) (string, error)
	execute   func(context.Context, Call) (json.RawMessage, error)
	reconcile func(context.Context, Call) (Outcome, error)
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

// Define returns a tool. It panics if the definition is invalid, because definitions are code, and a program with an
// invalid one must not start.
func Define[In, Out any](d Def[In, Out]) *Tool {
	t, err := Make(d)
	if err != nil {
		panic("tool.Define: " + err.Error())
	}
	return t
}

// Make is [Define] for a definition of the program that this module is used in: its error says what is wrong with it.
func Make[In, Out any](d Def[In, Out]) (*Tool, error) {
	if !validName.MatchString(d.Name) || d.Description == "" || d.SideEffect && d.Preview == nil {
		return nil, fmt.Errorf("%q: a name of %s, a description, and a preview for a side effect are needed", d.Name,
			validName)
	}
	if d.Wait < 0 || d.Wait > 0 && d.Execute != nil {
		return nil, fmt.Errorf("%q: %w", d.Name, errWait)
	}
	in, err := schemaOf[In](d.Refine)
	if err != nil {
		return nil, fmt.Errorf("%q: the arguments: %w", d.Name, err)
	}
	out, err := schemaOf[Out](nil)
	if err != nil {
		return nil, fmt.Errorf("%q: the result: %w", d.Name, err)
	}
	raw, err := json.Marshal(in.Schema())
	if err != nil {
		return nil, fmt.Errorf("%q: %w", d.Name, err)
	}
	spec, err := Spec{Name: d.Name, Description: d.Description, Schema: raw, SideEffect: d.SideEffect, Class: d.Class,
		Approval: d.Approval, UserOnly: d.UserOnly, Scopes: d.Scopes, Timeout: d.Timeout, Final: d.Final,
		Untrusted: d.Untrusted, Interruptible: d.Interruptible, Wait: d.Wait}.complete()
	if err != nil {
		return nil, fmt.Errorf("%q: %w", d.Name, err)
	}
	t := &Tool{Spec: spec}
	decode := func(args json.RawMessage) (v In, err error) {
		err = json.Unmarshal(args, &v)
		return v, err
	}
	t.normalize = func(args json.RawMessage) (_ json.RawMessage, err error) {
		var v In
		if err = strictjson.Decode(args, &v); err != nil {
			return nil, err
		}
		if err = in.check(args); err != nil {
			return nil, err
		}
		if d.Normalize != nil {
			if v, err = d.Normalize(v); err != nil {
				return nil, err
			}
		}
		normal, err := strictjson.Marshal(v)
		if err != nil {
			return nil, err
		}
		return strictjson.Canonical(normal)
	}
	if d.Revise != nil {
		t.revise = func(before, edited json.RawMessage) (json.RawMessage, error) {
			b, errB := decode(before)
			e, errE := decode(edited)
			if err := errors.Join(errB, errE); err != nil {
				return nil, err
			}
			revised, err := strictjson.Marshal(d.Revise(b, e))
			if err != nil {
				return nil, err
			}
			return strictjson.Canonical(revised)
		}
	}
	t.targets = func(args json.RawMessage) ([]Target, error) {
		v, err := decode(args)
		if err != nil || d.Targets == nil {
			return nil, err
		}
		return d.Targets(v), nil
	}
	t.bound = func(args json.RawMessage) (json.RawMessage, error) {
		if d.Bound == nil {
			return args, nil
		}
		v, err := decode(args)
		if err != nil {
			return nil, err
		}
		b, err := strictjson.Marshal(d.Bound(v))
		if err != nil {
			return nil, err
		}
		return strictjson.Canonical(b)
	}
	t.preview = func(args json.RawMessage) (Preview, error) {
		v, err := decode(args)
		if err != nil || d.Preview == nil {
			return Preview{Title: d.Name}, err
		}
		return d.Preview(v), nil
	}
	t.summary = func(args json.RawMessage) string {
		v, err := decode(args)
		if err != nil || d.Summary == nil {
			return "Did " + d.Name + "."
		}
		return d.Summary(v)
	}
	t.narrow = func(args json.RawMessage) (*Narrowing, error) {
		v, err := decode(args)
		if err != nil || d.Narrow == nil {
			return nil, err
		}
		return d.Narrow(v), nil
	}
	t.place, t.reads = d.Place, d.Reads
	if d.Prepare != nil {
		t.prepare = func(ctx context.Context, c Call) (string, error) {
			v, err := decode(c.Args)
			if err != nil {
				return "", err
			}
			return d.Prepare(ctx, c, v)
		}
	}
	encode := func(v Out) (json.RawMessage, error) {
		b, err := strictjson.Marshal(v) // numbers stay as they are: RFC 8785 cannot represent an id of 19 digits
		if err != nil {
			return nil, err
		}
		return b, out.check(b)
	}
	if d.Execute != nil {
		t.execute = func(ctx context.Context, c Call) (json.RawMessage, error) {
			v, err := decode(c.Args)
			if err != nil {
				return nil, err
			}
			res, err := d.Execute(ctx, c, v)
			if err != nil {
				return nil, err
			}
			b, err := encode(res)
			if err != nil {
				return nil, Unread(fmt.Errorf("tool %s answered what its own schema forbids: %w", d.Name, err))
			}
			return b, nil
		}
	}
	if d.Reconcile != nil {
		t.reconcile = func(ctx context.Context, c Call) (Outcome, error) {
			v, err := decode(c.Args)
			if err != nil {
				return Outcome{}, err
			}
			verdict, res, reason, err := d.Reconcile(ctx, c, v)
			if err != nil || verdict != Done {
				return Outcome{Verdict: verdict, Reason: reason}, err
			}
			b, err := encode(res)
			if err != nil {
				b = unreadableResult(err)
			}
			return Outcome{Verdict: Done, Result: b}, nil
		}
	}
	return t, nil
}

// Normalize strictly decodes the model's arguments (or those that a user edited), validates them and returns their
// canonical form (RFC 8785): the bytes that are shown, hashed, approved and executed.
func (t *Tool) Normalize(args json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	return t.normalize(args)
}

// Revise returns the user's edited arguments with the changes that follow from the edit. Both arguments and the result
// are canonical.
func (t *Tool) Revise(before, edited json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	if t.revise == nil {
		return edited, nil
	}
	return t.revise(before, edited)
}

// Narrow returns what the model may still call in the run once it has made this call, or nil if that stays as it is.
func (t *Tool) Narrow(args json.RawMessage) (_ *Narrowing, err error) {
	defer t.recoverPanic(&err, false)
	if t.narrow == nil {
		return nil, nil
	}
	return t.narrow(args)
}

// Targets returns whom and what the call reaches, each once, or nil if it reaches neither. The policy, the allowlist
// and the approval go by it.
func (t *Tool) Targets(args json.RawMessage) (_ []Target, err error) {
	defer t.recoverPanic(&err, false)
	return t.targets(args)
}

// Bound returns the canonical form of the arguments that are not free text. The arguments must come from Normalize.
func (t *Tool) Bound(args json.RawMessage) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	return t.bound(args)
}

// classWarnings are what a person is warned of before approving any call of a tool of the class.
var classWarnings = map[Class]string{
	ClassDestructive: "This deletes or overwrites something that cannot be restored.",
	ClassOpaque:      "What this changes cannot be told in advance.",
}

// Preview returns what a person reads before deciding, with nothing hidden. The first warning is that of the tool's
// class.
func (t *Tool) Preview(args json.RawMessage) (_ Preview, err error) {
	defer t.recoverPanic(&err, false)
	p, err := t.preview(args)
	p.reveal()
	if warning := classWarnings[t.Class]; warning != "" {
		p.Warnings = append([]string{warning}, p.Warnings...)
	}
	return p, err
}

// Summary returns one sentence about what was done.
func (t *Tool) Summary(args json.RawMessage) (said string) {
	defer func() {
		if recover() != nil {
			said = "Did " + t.Name + "."
		}
	}()
	return t.summary(args)
}

// Placed reports whether the tool's calls act in a place.
func (t *Tool) Placed() bool { return t.place != nil }

// Place returns where a call of the user would act now, or the zero Place if the tool's calls act in no particular
// place. Its error says why the place cannot be used.
func (t *Tool) Place(ctx context.Context, uid string) (_ Place, err error) {
	defer t.recoverPanic(&err, false)
	if t.place == nil {
		return Place{}, nil
	}
	return t.place(ctx, uid)
}

// Reads returns the paths of the documents by which the tool knows what the user has linked, or nil.
func (t *Tool) Reads(uid string) []string {
	if t.reads == nil {
		return nil
	}
	return t.reads(uid)
}

// Waits reports whether the call is answered from outside, by a page or a person.
func (t *Tool) Waits() bool { return t.execute == nil }

// Prepares reports whether the tool has a Prepare function.
func (t *Tool) Prepares() bool { return t.prepare != nil }

// Prepare creates the handle of the call.
func (t *Tool) Prepare(ctx context.Context, c Call) (_ string, err error) {
	defer t.recoverPanic(&err, false)
	c.Output = io.Discard
	return t.prepare(ctx, c)
}

// Execute carries the call out. Its arguments must come from Normalize.
func (t *Tool) Execute(ctx context.Context, c Call) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, t.SideEffect)
	if c.Output == nil {
		c.Output = io.Discard
	}
	result, err := t.execute(ctx, c)
	if t.SideEffect && errors.As(err, &unread{}) {
		return unreadableResult(err), nil
	}
	return result, err
}

// Reconcile settles a call that was started and has no recorded outcome. After an error, the caller should call it
// again later.
func (t *Tool) Reconcile(ctx context.Context, c Call) (_ Outcome, err error) {
	defer t.recoverPanic(&err, false)
	if t.reconcile == nil {
		return Outcome{Verdict: Unknown, Reason: "This tool cannot tell whether it was carried out."}, nil
	}
	c.Output = io.Discard
	return t.reconcile(ctx, c)
}

// Set holds the tools of a profile by name.
type Set map[string]*Tool

// NewSet returns a set of the tools. It panics if two of them have the same name.
func NewSet(tools ...*Tool) Set {
	s := Set{}
	for _, t := range tools {
		if s[t.Name] != nil {
			panic("tool.NewSet: two tools are called " + t.Name)
		}
		s[t.Name] = t
	}
	return s
}

// Reads returns the paths of all documents by which the tools know what the user has linked, each once.
func (s Set) Reads(uid string) []string {
	var paths []string
	for _, t := range s {
		paths = append(paths, t.Reads(uid)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Names returns the tools' names in sorted order.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }

// checker is a resolved JSON Schema.
type checker struct{ *jsonschema.Resolved }

func schemaOf[T any](refine func(*jsonschema.Schema)) (c checker, err error) {
	s, err := SchemaOf[T]()
	if err != nil {
		return c, fmt.Errorf("no schema for the type: %w", err)
	}
	if refine != nil {
		refine(s)
	}
	c.Resolved, err = s.Resolve(nil)
	return c, err
}

// SchemaOf returns the schema of a Go type.
func SchemaOf[T any]() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	plainTypes(s)
	return s, nil
}

// plainTypes replaces the type "null or array" that a Go slice gets by "array": Gemini requires one type, and null is
// not a list.
func plainTypes(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		plainTypes(p)
	}
	if s.Items != nil {
		plainTypes(s.Items)
	}
}

// check validates JSON against the schema.
func (s checker) check(data json.RawMessage) error { return s.checkAs(data, explain) }

// checkAs validates JSON against the schema. The error says what explained says of the validator's.
func (s checker) checkAs(data json.RawMessage, explained func(error) (field, why string)) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return fault.Invalid("", "this is not JSON").Because(err)
	}
	if err := s.Validate(v); err != nil {
		field, rule := explained(err)
		return fault.Invalid(field, "%s", rule)
	}
	return nil
}
