package command

import "github.com/countersign-run/countersign/shared/agent/tool"

// step returns the command as a step of its run, with exactly the output that the model received.
func step(a Args, out *Result) tool.Step {
	// its class comes from the ruling
	s := tool.Step{Kind: tool.StepCommand, Reasoning: a.Reasoning, Command: a.Command}
	if out == nil {
		return s
	}
	s.Output, s.ExitCode, s.Truncated, s.TimedOut = out.Output, &out.ExitCode, out.Truncated, out.TimedOut
	s.DurationMS, s.Cwd = out.DurationMs, out.Cwd
	s.LeftBehind, s.Ended = out.LeftBehind, out.Ended
	return s
}

// completeStep is the step that shows the end of a task.
func completeStep(in Summary, _ *Words) tool.Step {
	return tool.Step{Kind: tool.StepComplete, Output: in.Summary}
}
