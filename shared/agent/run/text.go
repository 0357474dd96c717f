package run

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
)

// Text returns the whole answer of a completed run. End.Summary holds only as much of it as fits in a message. If an
// effect took place, or may have, the answer ends with the record. Otherwise it is only the model's words. For a run
// without words of the model, Text returns the summary. For a run that has not completed, it returns "".
func (s *State) Text() string {
	if s.End == nil || s.End.Status != Completed {
		return ""
	}
	summary, acted := s.End.Summary, s.acted()
	if final := finalCall(s); final != nil {
		words := allFinalWords(s)
		before, ends := strings.CutSuffix(summary, finalWords(s))
		switch {
		case words == "" || acted && !ends:
			return summary
		case acted:
			return before + words
		}
		return words
	}
	if len(s.Turns) == 0 { // the run only compressed its thread
		return summary
	}
	last := s.Turns[len(s.Turns)-1]
	p, err := model.Parse(last.Content)
	switch {
	case last.Calls > 0 || last.Correction != "" || err != nil: // the server wrote the summary
		return summary
	case acted:
		return p.Text + summary[min(s.End.Words, len(summary)):]
	}
	return p.Text
}

// acted reports whether an effect took place, or may have.
func (s *State) acted() bool {
	return slices.ContainsFunc(s.Actions, func(a *Action) bool {
		return a.SideEffect && (a.Status == ActionCompleted || a.Execution == UnknownState)
	})
}
