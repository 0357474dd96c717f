package run

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Takes reports whether the call is the run's typed answer.
func (in Input) Takes(a *Action) bool { return in.Answer != nil && a.Tool == tool.FinalAnswer }

// Answer returns the run's typed answer: JSON that fits Input.Answer. It returns nil if the run has no typed answer or
// has not given it yet.
func (s *State) Answer() json.RawMessage {
	for _, a := range s.Current() {
		if s.Input.Takes(a) && a.Status == ActionCompleted {
			return a.Args
		}
	}
	return nil
}

// InWords returns the number of the model's newest consecutive answers that are text without a call.
func (s *State) InWords() (n int) {
	for _, t := range slices.Backward(s.Turns) {
		if t.Calls > 0 || t.Correction != "" {
			break
		}
		n++
	}
	return n
}
