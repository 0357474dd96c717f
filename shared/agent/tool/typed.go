package tool

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// functions are the functions of a tool, with its types erased. Every tool has normalize, targets, bound, preview and
// summary. The others can be called only if [parts] lists them.
type functions interface {
	normalize(args json.RawMessage) (json.RawMessage, error)
	revise(before, edited json.RawMessage) (json.RawMessage, error)
	completed(context.Context, Call) (json.RawMessage, error)
	warnings(context.Context, Call) ([]Warning, error)
	preconditions(context.Context, Call) ([]Precondition, error)
	changes(args json.RawMessage) (rest json.RawMessage, changes []Change, err error)
	targets(args json.RawMessage) ([]Target, error)
	pinned(args json.RawMessage) (json.RawMessage, error)
	preview(args json.RawMessage) (Preview, error)
	summary(args json.RawMessage) string
	heading(args json.RawMessage) string
	step(args, result json.RawMessage) Step
	tried(args json.RawMessage) string
	link(at Place, result json.RawMessage) string
	narrow(args json.RawMessage) (*Restriction, error)
	rule(context.Context, Call) (CallPolicy, error)
	note(args, result json.RawMessage) Facts
	reading(args, result json.RawMessage) Reading
	shows(args, result json.RawMessage) []Part
	replaces(args json.RawMessage) ([]Text, error)
	fetches(args json.RawMessage) (string, error)
	limit(args json.RawMessage) time.Duration
	effects(args json.RawMessage) int
	interrupt(context.Context, Call) error
	prepare(context.Context, Call) (string, error)
	execute(context.Context, Call) (json.RawMessage, error)
	reconcile(ctx context.Context, c Call, unrecorded bool) (Outcome, error) // or LookUp, if unrecorded
	compensate(args, result json.RawMessage) *Compensation
}

// parts states which optional functions a tool has.
type parts struct {
	revise, pinned, heading, step, link, narrow, rule, note, reading, shows, replaces, fetches bool

	limit, effects, interrupt, prepare, execute, reconcile, compensate bool

	complete, bare, changes, warn, preconditions, lookUp bool
}

// typed erases the types of a definition. Each method decodes the arguments, and the result if it has one, and calls
// the function of the same name in the definition.
type typed[In, Out any] struct {
	*Def[In, Out]
	in, out checker
}

// parts returns which functions the definition has.
func (d *Def[In, Out]) parts() parts {
	return parts{
		revise: d.Revise != nil, pinned: d.Pinned != nil,
		heading: d.Heading != nil || d.SideEffect && d.Summary != nil,
		step:    d.Step != nil, link: d.Link != nil, narrow: d.Restrict != nil, rule: d.Rule != nil,
		note:    d.Note != nil,
		reading: d.Reading != nil, shows: d.Shows != nil, replaces: d.Replaces != nil, fetches: d.Fetches != nil,
		limit: d.Limit != nil, effects: d.Effects != nil, interrupt: d.Interrupt != nil, prepare: d.Prepare != nil,
		execute: d.Execute != nil, reconcile: d.Reconcile != nil, compensate: d.Compensate != nil,
		complete: d.Complete != nil, bare: d.Bare != nil, changes: d.Changes != nil,
		warn: d.Warn != nil, preconditions: d.Preconditions != nil, lookUp: d.LookUp != nil,
	}
}

// decode decodes arguments that normalize returned, or a stored result.
func decode[T any](raw json.RawMessage) (v T, err error) {
	err = json.Unmarshal(raw, &v)
	return v, err
}

// decode returns the arguments and the result of a call.
func (t *typed[In, Out]) decode(args, result json.RawMessage) (in In, out Out, err error) {
	in, err = decode[In](args)
	if err == nil {
		out, err = decode[Out](result)
	}
	return in, out, err
}

// canonical returns the canonical JSON of a value. It marshals a pointer, because only a pointer has the methods of
// some types, such as big.Int.
func canonical[T any](v T) (json.RawMessage, error) {
	raw, err := strictjson.Marshal(&v)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(raw)
}

func (t *typed[In, Out]) normalize(args json.RawMessage) (_ json.RawMessage, err error) {
	if args, err = strictjson.Canonical(args); err != nil { // some programs have no integers and write 5 as 5.0
		return nil, err
	}
	if args, err = t.in.meant(args); err != nil {
		return nil, err
	}
	var v In
	if err = strictjson.Decode(args, &v); err != nil {
		return nil, err
	}
	if t.Bare != nil {
		if bare := t.Bare(v); !reflect.DeepEqual(v, bare) {
			kept, err := canonical(bare)
			if err != nil {
				return nil, err
			}
			v, args = bare, within(args, kept)
		}
	}
	if err = t.in.checkAs(args, checker.explainArguments); err != nil {
		return nil, err
	}
	if t.Normalize != nil {
		if v, err = t.Normalize(v); err != nil {
			return nil, err
		}
	}
	return canonical(v)
}

// within returns a JSON value without the fields that the other value lacks. A field that neither has is not added: the
// schema decides whether it is required.
func within(raw, other json.RawMessage) json.RawMessage {
	var fields, kept map[string]json.RawMessage
	var list, others []json.RawMessage
	switch {
	case json.Unmarshal(raw, &fields) == nil && json.Unmarshal(other, &kept) == nil:
		for name, v := range fields {
			if fields[name] = within(v, kept[name]); kept[name] == nil {
				delete(fields, name)
			}
		}
		raw, _ = strictjson.Marshal(fields) // of valid JSON
	case json.Unmarshal(raw, &list) == nil && json.Unmarshal(other, &others) == nil && len(list) == len(others):
		for i, v := range list {
			list[i] = within(v, others[i])
		}
		raw, _ = strictjson.Marshal(list)
	}
	return raw
}

func (t *typed[In, Out]) revise(before, edited json.RawMessage) (json.RawMessage, error) {
	b, errB := decode[In](before)
	e, errE := decode[In](edited)
	if err := errors.Join(errB, errE); err != nil {
		return nil, err
	}
	return canonical(t.Revise(b, e))
}

func (t *typed[In, Out]) targets(args json.RawMessage) ([]Target, error) {
	v, err := decode[In](args)
	if err != nil || t.Targets == nil {
		return nil, err
	}
	return t.Targets(v), nil
}

func (t *typed[In, Out]) pinned(args json.RawMessage) (json.RawMessage, error) {
	if t.Pinned == nil {
		return args, nil
	}
	v, err := decode[In](args)
	if err != nil {
		return nil, err
	}
	return canonical(t.Pinned(v))
}

func (t *typed[In, Out]) preview(args json.RawMessage) (Preview, error) {
	v, err := decode[In](args)
	if err != nil || t.Preview == nil {
		return Preview{Title: t.Name}, err
	}
	return t.Preview(v), nil
}

func (t *typed[In, Out]) summary(args json.RawMessage) string {
	v, err := decode[In](args)
	if err != nil || t.Summary == nil {
		return "Did " + t.Name + "."
	}
	return t.Summary(v)
}

func (t *typed[In, Out]) heading(args json.RawMessage) string {
	v, err := decode[In](args)
	switch {
	case err != nil:
		return ""
	case t.Heading == nil:
		return strings.TrimSuffix(t.Summary(v), ".")
	}
	return t.Heading(v)
}

func (t *typed[In, Out]) step(args, result json.RawMessage) Step {
	in, err := decode[In](args)
	if err != nil {
		return Step{Kind: StepError}
	}
	out, err := decode[Out](result)
	if err != nil {
		return t.Step(in, nil)
	}
	return t.Step(in, &out)
}

func (t *typed[In, Out]) tried(args json.RawMessage) string {
	in, _ := decode[In](args) // refused arguments may be readable in part
	return t.Step(in, nil).Command
}

func (t *typed[In, Out]) link(at Place, result json.RawMessage) string {
	out, err := decode[Out](result)
	if err != nil {
		return ""
	}
	return t.Link(at, out)
}

func (t *typed[In, Out]) compensate(args, result json.RawMessage) *Compensation {
	in, out, err := t.decode(args, result)
	if err != nil {
		return nil
	}
	return t.Compensate(in, out)
}

func (t *typed[In, Out]) narrow(args json.RawMessage) (*Restriction, error) {
	v, err := decode[In](args)
	if err != nil {
		return nil, err
	}
	return t.Restrict(v), nil
}

func (t *typed[In, Out]) rule(ctx context.Context, c Call) (CallPolicy, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return CallPolicy{}, err
	}
	return t.Rule(ctx, c, v)
}

func (t *typed[In, Out]) note(args, result json.RawMessage) Facts {
	in, out, err := t.decode(args, result)
	if err != nil {
		return nil
	}
	return t.Note(in, out)
}

func (t *typed[In, Out]) reading(args, result json.RawMessage) Reading {
	in, err := decode[In](args)
	if err != nil {
		return Reading{}
	}
	out, _ := decode[Out](result) // a cut result, or an error, has an origin too
	return t.Reading(in, out)
}

func (t *typed[In, Out]) shows(args, result json.RawMessage) []Part {
	in, out, err := t.decode(args, result)
	if err != nil {
		return nil
	}
	return t.Shows(in, out)
}

func (t *typed[In, Out]) replaces(args json.RawMessage) ([]Text, error) {
	v, err := decode[In](args)
	if err != nil {
		return nil, err
	}
	return t.Replaces(v), nil
}

func (t *typed[In, Out]) fetches(args json.RawMessage) (string, error) {
	v, err := decode[In](args)
	if err != nil {
		return "", err
	}
	return t.Fetches(v), nil
}

func (t *typed[In, Out]) limit(args json.RawMessage) time.Duration {
	v, err := decode[In](args)
	if err != nil {
		return 0
	}
	return max(0, t.Limit(v))
}

func (t *typed[In, Out]) effects(args json.RawMessage) int {
	v, err := decode[In](args)
	if err != nil {
		return 1
	}
	return max(1, t.Effects(v))
}

func (t *typed[In, Out]) interrupt(ctx context.Context, c Call) error {
	v, err := decode[In](c.Args)
	if err != nil {
		return err
	}
	return t.Interrupt(ctx, c, v)
}

func (t *typed[In, Out]) prepare(ctx context.Context, c Call) (string, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return "", err
	}
	return t.Prepare(ctx, c, v)
}

// encode returns the JSON of a result and checks it. Numbers stay as they are: RFC 8785 cannot represent an ID of 19
// digits.
func encode[T any](v T, schema checker) (json.RawMessage, error) {
	b, err := strictjson.Marshal(&v) // see canonical
	if err != nil {
		return nil, err
	}
	return b, schema.check(b)
}

func (t *typed[In, Out]) execute(ctx context.Context, c Call) (json.RawMessage, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return nil, err
	}
	res, err := t.Execute(ctx, c, v)
	if err != nil {
		return nil, err
	}
	b, err := encode(res, t.out)
	if err != nil {
		return nil, forbidden(t.Name, err)
	}
	return b, nil
}

func (t *typed[In, Out]) reconcile(ctx context.Context, c Call, unrecorded bool) (Outcome, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return Outcome{}, err
	}
	find := t.Reconcile
	if unrecorded {
		find = t.LookUp
	}
	verdict, res, reason, err := find(ctx, c, v)
	return settled(verdict, res, t.out, reason, err)
}

// settled returns the outcome that Reconcile or LookUp found.
func settled[Out any](v Verdict, result Out, schema checker, reason string, err error) (Outcome, error) {
	if v == Done && IsEnded(err) {
		return Outcome{Verdict: Done, Err: err}, nil
	}
	if err != nil || v != Done {
		return Outcome{Verdict: v, Reason: reason}, err
	}
	b, err := encode(result, schema)
	if err != nil {
		b = unreadableResult(err)
	}
	return Outcome{Verdict: Done, Result: b}, nil
}
