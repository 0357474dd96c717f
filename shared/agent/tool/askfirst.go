package tool

import "errors"

// askFirst marks an error of Prepare that means that the call's user must be asked.
type askFirst struct{ error }

func (a askFirst) Unwrap() error { return a.error }

// AskFirst marks err, returned by Prepare, as a reason to ask the user about a call that ran without a question so far.
// It is for a call that the policy allowed on the basis of documents, if the account or host shows that the call does
// more than that. For a call that the user has approved, it is an ordinary error.
func AskFirst(err error) error { return askFirst{err} }

// AsksFirst reports whether err means that the call's user must be asked.
func AsksFirst(err error) bool { return errors.As(err, &askFirst{}) }
