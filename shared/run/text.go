package run

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/model"
)

// Text returns the whole answer of a run that has completed, where End.Summary has as much of it as a message carries.
// It ends with what is on record where an effect took place, or may have taken place, that the model's words could
// belie; where nothing took place it is the model's words alone. A run that was ended without them has its summary.
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
	if len(s.Turns) == 0 { // it has compressed its thread
		return summary
	}
	last := s.Turns[len(s.Turns)-1]
	p, err := model.Parse(last.Content)
	switch {
	case last.Calls > 0 || last.Correction != "" || err != nil: // the server's own words
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
