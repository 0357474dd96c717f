package tool

import "errors"

// askFirst marks an error of Prepare that means that the call's user must be asked.
type askFirst struct{ error }

func (a askFirst) Unwrap() error { return a.error }

// AskFirst marks err, returned by Prepare, as a reason to ask the user before the call runs. It is for a call that the
// policy allowed without a question, on the basis of documents, if the account or host shows that the call would do
// more. For a call that the user has approved, err is an ordinary error.
func AskFirst(err error) error { return askFirst{err} }

// AsksFirst reports whether err means that the call's user must be asked.
func AsksFirst(err error) bool { return errors.As(err, &askFirst{}) }
