package run

import (
	"slices"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// aborts are the codes of actions that were not carried out, or not to their end, because somebody said so or did not
// say anything in time.
var aborts = []fault.Code{CodeCancelled, codeNotRun, fault.CodeExpired}

// StepOf returns how the action is shown as a step, or nil where its tool's calls are not. What became of the action
// counts for more than what its tool says.
func StepOf(tools tool.Set, a *Action) *tool.Step {
	t := tools[a.Tool]
	if t == nil {
		return nil
	}
	s := t.Step(a.Args, a.Result)
	if s == nil {
		return nil
	}
	if a.Args == nil {
		s.Command = a.Tried
	}
	if s.Class == "" {
		s.Class = a.Ruled.Of()
	}
	switch {
	case a.Status == ActionRejected,
		a.Status == ActionFailed && a.Error != nil && slices.Contains(aborts, a.Error.Code):
		s.Kind = tool.StepAborted
	case a.Status == ActionFailed:
		s.Kind = tool.StepError
	}
	return s
}
