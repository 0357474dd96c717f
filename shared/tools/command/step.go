package command

import "github.com/countersign-run/countersign/shared/agent/tool"

// step returns the command as a step of its run, with exactly the output that the model received.
func step(a Args, out *Result) tool.Step {
	// the ruling sets the class
	s := tool.Step{Kind: tool.StepCommand, Reasoning: a.Reasoning, Command: a.Command}
	if out == nil {
		return s
	}
	s.Output, s.ExitCode, s.Truncated, s.TimedOut = out.Output, &out.ExitCode, out.Truncated, out.TimedOut
	s.DurationMS, s.Cwd = out.DurationMs, out.Cwd
	s.LeftBehind, s.Ended = out.LeftBehind, out.Ended
	return s
}

// listStep returns the list as a step of its run. Each of its commands is a step within that step.
func listStep(l List, out *ListResult) tool.Step {
	s := tool.Step{Kind: tool.StepCommand, Reasoning: l.Reasoning, Command: l.text("\n")}
	for i, a := range l.each() {
		a.Reasoning = ""
		if out == nil || i >= len(out.Commands) { // the result cannot be read
			s.Commands = append(s.Commands, step(a, nil))
			continue
		}
		line := out.Commands[i]
		one := step(a, line.Result)
		switch {
		case line.NotRun:
			one.Kind = tool.StepAborted
		case line.Result != nil:
			if one.ExitCode != nil && *one.ExitCode != 0 {
				one.Kind = tool.StepError
			}
			s.Output += headed(i, a.Command) + one.Output
			s.ExitCode, s.Cwd, s.TimedOut = one.ExitCode, one.Cwd, one.TimedOut
			s.Truncated = s.Truncated || one.Truncated
			s.DurationMS += one.DurationMS
			s.LeftBehind, s.Ended = s.LeftBehind+one.LeftBehind, append(s.Ended, one.Ended...)
		}
		s.Commands = append(s.Commands, one)
	}
	return s
}

// completeStep returns the step that shows the end of a task.
func completeStep(in Summary, _ *Words) tool.Step {
	return tool.Step{Kind: tool.StepComplete, Output: in.Summary}
}
