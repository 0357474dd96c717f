package tool

import (
	"encoding/json"
	"errors"

	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// A Compensation is a call that undoes another call. Its arguments are made from the record of that call, never by a
// model. Its user can approve it exactly as it is, or not at all.
type Compensation struct {
	Tool  string // name of the tool
	Title string // label of the offer: Delete the event. It contains nothing from the call.
	Args  any    // arguments of Tool; must encode as JSON
	Gone  string // what the user reads if Tool.Reconcile finds that nothing is left to undo
}

// Compensate returns a call that undoes this one, or nil if that is impossible. result is the recorded result.
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

// askAnew marks an error of Execute that means that the call's user must be asked about another call.
type askAnew struct {
	error
	args    json.RawMessage
	changed []Warning
}

func (a askAnew) Unwrap() error { return a.error }

// AskAnew marks err, returned by Execute, as proof that nothing happened because the call's subject has changed since
// the user saw it. The user is then asked about the call with args, which show the subject as it is now, and with the
// warnings, which name the changes. The model reads err, and not the warnings.
func AskAnew(args any, err error, changed ...Warning) error {
	b, marshalErr := strictjson.Marshal(args)
	if marshalErr != nil {
		return errors.Join(err, marshalErr)
	}
	return askAnew{err, b, changed}
}

// AskedAnew returns the arguments of the call that the user must be asked about instead, or nil.
func AskedAnew(err error) json.RawMessage {
	var a askAnew
	errors.As(err, &a)
	return a.args
}

// ChangedSince returns the warnings of an error of [AskAnew].
func ChangedSince(err error) []Warning {
	var a askAnew
	errors.As(err, &a)
	return a.changed
}
