package tool

import "errors"

// askFirst marks an error of Prepare after which the call's user is asked.
type askFirst struct{ error }

func (a askFirst) Unwrap() error { return a.error }

// AskFirst marks err, returned by Prepare of a call that its user was not asked about, as a reason to ask: what the
// policy allows by documents turns out to be more than that where the call would act. Of a call that its user has
// approved it is an error like any other.
func AskFirst(err error) error { return askFirst{err} }

// AsksFirst reports whether the call's user is to be asked.
func AsksFirst(err error) bool { return errors.As(err, &askFirst{}) }
