package tool

import (
	"context"
	"encoding/json"
	"io"
)

// Change is a text that a call changes. Only Added is judged as the call's own text.
type Change struct {
	Stood string // text that the changed text already contains
	Added string // text that the call adds
}

// Completes reports whether the tool has a Complete function.
func (t *Tool) Completes() bool { return t.has.complete }

// Complete adds the parts of the present state that a reader needs to the arguments of the call. c.Args must come from
// Normalize.
func (t *Tool) Complete(ctx context.Context, c Call) (_ json.RawMessage, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.complete {
		return c.Args, nil
	}
	c.Output = io.Discard
	return t.completed(ctx, c)
}

// Changes returns the texts that the call changes, and the arguments without these texts.
func (t *Tool) Changes(args json.RawMessage) (rest json.RawMessage, changes []Change, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.changes {
		return args, nil, nil
	}
	return t.changes(args)
}

func (t *typed[In, Out]) completed(ctx context.Context, c Call) (json.RawMessage, error) {
	v, err := decode[In](c.Args)
	if err != nil {
		return nil, err
	}
	if v, err = t.Complete(ctx, c, v); err != nil {
		return nil, err
	}
	return canonical(v)
}

func (t *typed[In, Out]) changes(args json.RawMessage) (json.RawMessage, []Change, error) {
	v, err := decode[In](args)
	if err != nil {
		return nil, nil, err
	}
	v, changes := t.Changes(v)
	rest, err := canonical(v)
	return rest, changes, err
}
