package run

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/tool"
)

// Takes reports whether the call gives the run's answer in the form that the run began with.
func (in Input) Takes(a *Action) bool { return in.Answer != nil && a.Tool == tool.FinalAnswer }

// Answer returns the run's answer where that has a form, or nil while there is none: JSON that fits Input.Answer.
func (s *State) Answer() json.RawMessage {
	for _, a := range s.Current() {
		if s.Input.Takes(a) && a.Status == ActionCompleted {
			return a.Args
		}
	}
	return nil
}

// InWords returns how many of the model's newest answers were words, one after the other, without a call.
func (s *State) InWords() (n int) {
	for _, t := range slices.Backward(s.Turns) {
		if t.Calls > 0 || t.Correction != "" {
			break
		}
		n++
	}
	return n
}
