package tool

import (
	"encoding/json"
	"errors"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// A Compensation is a call that takes back what another call has done. Its arguments are made from the record of that
// call, and never by a model; its user is asked about it as about no other: exactly this, or not at all.
type Compensation struct {
	Tool  string // its name
	Title string // what its user is offered: Delete the event. It has nothing of the call.
	Args  any    // of Tool, with a JSON form
	Gone  string // what its user is told where Tool.Reconcile says that there is nothing to take back any more
}

// Compensate returns how what the call has done can be taken back, by its arguments and the result that is recorded of
// it, or nil where it cannot.
func (t *Tool) Compensate(args, result json.RawMessage) (c *Compensation) {
	defer func() {
		if recover() != nil {
			c = nil
		}
	}()
	if !t.has.compensate || result == nil {
		return nil
	}
	return t.compensate(args, result)
}

// askAnew marks an error of Execute after which the call's user is asked about another call.
type askAnew struct {
	error
	args json.RawMessage
}

func (a askAnew) Unwrap() error { return a.error }

// AskAnew marks err, returned by Execute, as proof that nothing happened because what the call is about is not what its
// user was shown any more: they are asked about the call with these arguments, which show it as it is now.
func AskAnew(args any, err error) error {
	b, marshalErr := strictjson.Marshal(args)
	if marshalErr != nil {
		return errors.Join(err, marshalErr)
	}
	return askAnew{err, b}
}

// AskedAnew returns the arguments of the call that its user is to be asked about instead, or nil.
func AskedAnew(err error) json.RawMessage {
	var a askAnew
	errors.As(err, &a)
	return a.args
}
