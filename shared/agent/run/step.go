package run

import (
	"slices"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// aborts lists the error codes of actions that were stopped, or expired without an answer.
var aborts = []fault.Code{CodeCancelled, codeNotRun, fault.CodeExpired}

// StepOf returns the action as a step, or nil if its tool's calls are not shown as steps. The outcome of the action
// overrides the kind that the tool gives the step.
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
