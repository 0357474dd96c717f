package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// EffectSummary tells which effects took place so far, and which are unknown. It is made from the recorded events,
// never from what the model says.
func EffectSummary(tools tool.Set, s *State) string {
	var lines []string
	for _, a := range s.Actions {
		switch t := tools[a.Tool]; {
		case !a.SideEffect:
		case a.Status == ActionCompleted && t == nil: // the tool was removed since
			lines = append(lines, "Did "+a.Tool+".")
		case a.Status == ActionCompleted:
			lines = append(lines, t.Summary(a.Args))
		case a.Execution == UnknownState:
			lines = append(lines, "It is not known whether this was done: "+ActionTitle(tools, a)+". Please check.")
		}
	}
	return strings.Join(lines, "\n")
}

// doneSummary tells what took place so far: the effects, and what the run's client carried out.
func doneSummary(tools tool.Set, s *State) string {
	lines := append([]string{EffectSummary(tools, s)}, clientLines(tools, s)...)
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// clientLines tells what the run's client, such as a page, carried out, and what it may have: whether that changed
// something, the client alone knows.
func clientLines(tools tool.Set, s *State) (lines []string) {
	var done, unknown []string
	for _, a := range s.Actions {
		switch {
		case a.SideEffect || a.Kind != KindCall || asksPerson(tools[a.Tool]):
		case a.Status == ActionCompleted:
			done = append(done, a.Tool)
		case a.Status == ActionFailed && a.Execution == NotStarted && !a.Waiting():
			unknown = append(unknown, a.Tool)
		}
	}
	if len(done) > 0 {
		lines = append(lines, "The page carried out "+counted(done)+".")
	}
	if len(unknown) > 0 {
		lines = append(lines, "It is not known whether the page carried out "+counted(unknown)+".")
	}
	return lines
}

// asksPerson reports whether the tool's calls are questions to the user: they wait for a time of their own.
func asksPerson(t *tool.Tool) bool { return t != nil && t.Wait > 0 }

// counted lists names, each once, with how often it occurs.
func counted(names []string) string {
	times := map[string]int{}
	var list []string
	for _, name := range names {
		if times[name]++; times[name] == 1 {
			list = append(list, name)
		}
	}
	for i, name := range list {
		if n := times[name]; n > 1 {
			list[i] = fmt.Sprintf("%s (%d times)", name, n)
		}
	}
	return strings.Join(list, ", ")
}

// OutcomeSummary returns the summary of what took place and, where the run was to have several effects, those that were
// not done and why. The words of a final call are the answer, so what the client did beside it is left out.
func OutcomeSummary(tools tool.Set, s *State) string {
	if finalCall(s) != nil && EffectSummary(tools, s) == "" {
		return ""
	}
	return outcomes(tools, s)
}

// finalCall returns the call of the newest turn whose success ends the run ([tool.Spec]), or nil.
func finalCall(s *State) *Action {
	for _, a := range s.Current() {
		if a.Final && a.Status == ActionCompleted {
			return a
		}
	}
	return nil
}

func outcomes(tools tool.Set, s *State) string {
	lines, wanted := outcomeLines(tools, s)
	if wanted < 2 {
		return doneSummary(tools, s)
	}
	return strings.Join(lines, "\n")
}

// RecordLines tells what a run has done and what it has not, from the recorded events.
func RecordLines(tools tool.Set, s *State) string {
	lines, _ := outcomeLines(tools, s)
	if len(lines) == 0 {
		return "Nothing was sent or changed in this run."
	}
	return clip.Text(strings.Join(lines, "\n"), MaxMessageText/2)
}

// OutcomeLine tells in one line how a run ended, for the model in later runs of the thread.
func OutcomeLine(tools tool.Set, s *State, end *End) string {
	lines, _ := outcomeLines(tools, s)
	if len(lines) == 0 {
		lines = []string{"Nothing was sent or changed."}
	}
	status := string(end.Status)
	if end.Error != nil {
		status += " (" + string(end.Error.Code) + ")"
	}
	line, _ := visible.Line(strings.Join(strings.Fields(status+": "+strings.Join(lines, " ")), " "))
	return clip.Text(line, MaxOutcome)
}

// Heading returns what a run has done that did one thing, as a thread's title, or "".
func Heading(tools tool.Set, s *State) string {
	var one *Action
	for _, a := range s.Actions {
		switch {
		case !a.SideEffect || a.Status != ActionCompleted && a.Execution != UnknownState:
		case one != nil || a.Execution == UnknownState || tools[a.Tool] == nil:
			return ""
		default:
			one = a
		}
	}
	if one == nil {
		return ""
	}
	return tools[one.Tool].Heading(one.Args)
}

// MaxOutcome is the length of an outcome line, in bytes.
const MaxOutcome = 600

// outcomeLines returns the lines of what took place, and those of what was not done; wanted is how many effects
// the run was to have, and what its client did.
func outcomeLines(tools tool.Set, s *State) (lines []string, wanted int) {
	if done := doneSummary(tools, s); done != "" {
		lines = append(lines, done)
	}
	wanted = len(clientLines(tools, s))
	for _, a := range s.Actions {
		if !a.SideEffect || a.PolicyDecision == string(policy.Deny) && a.ApprovalID == "" {
			continue // the policy denied it, and the model got that as the response
		}
		wanted++
		if line := notDoneLine(tools, a); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, wanted
}

// notDoneLine returns the line that says that the action was not done and why, or "" for one that was done or whose
// outcome is unknown.
func notDoneLine(tools tool.Set, a *Action) string {
	switch {
	case a.Status == ActionRejected && a.Decision == Undo:
		return "Not done, because you took your approval back: " + describeCall(tools, a) + "."
	case a.Status == ActionRejected:
		return "Not done, because you rejected it: " + describeCall(tools, a) + "."
	case a.Status != ActionFailed || a.Execution == UnknownState || a.Error == nil:
		return ""
	}
	if why := notDoneReasons[a.Error.Code]; why != "" && a.Error.Class == fault.Policy {
		return "Not done, because " + why + ": " + describeCall(tools, a) + "."
	}
	return "Not done: " + describeCall(tools, a) + ". " + a.Error.Message
}

// notDoneReasons tells why the loop itself gives an action up.
var notDoneReasons = map[fault.Code]string{
	fault.CodeExpired:   "the approval expired",
	CodeCancelled:       "it was cancelled",
	codeNotRun:          "an earlier step was not done",
	codeDeadline:        "the time for it was over",
	fault.CodeAgentGone: "the agent that was asked is no longer available",
}

// VerifiedSummary returns the summary of what was done where an effect that the model asked for did not take place, or
// not as it was asked for because its user edited it, where the model's words could be taken for the server's own, or
// where they likely claim something and nothing was done. It is empty otherwise. The model may claim that something was
// done; the verified summary follows the recorded events (hostile case MO-019).
func VerifiedSummary(tools tool.Set, s *State, answer string) string {
	missed := slices.ContainsFunc(s.Actions, func(a *Action) bool {
		mattered := a.SideEffect || tools[a.Tool] == nil && !s.Input.Takes(a) && !s.Input.OfPage(a.Tool)
		edited := a.SideEffect && a.Edited && a.Status == ActionCompleted
		return mattered && (a.Status == ActionFailed || a.Status == ActionRejected) || edited
	})
	effects, done := EffectSummary(tools, s), doneSummary(tools, s)
	doubtful := spoofsSummary(answer) || imitates(answer, strings.Split(effects, "\n")) || done == "" && claims(answer)
	switch {
	case !missed && !doubtful:
		return ""
	case done == "":
		return "On record: nothing was sent or changed."
	}
	return clip.Text("On record:\n"+outcomes(tools, s), MaxMessageText/2)
}

// describeCall returns the action's title with the first details of its preview, so that one of several can be told
// from the others.
func describeCall(tools tool.Set, a *Action) string {
	t := tools[a.Tool]
	if t == nil {
		return ActionTitle(tools, a)
	}
	p, err := t.Preview(a.Args)
	if err != nil {
		return ActionTitle(tools, a)
	}
	var details []string
	for _, f := range p.Fields {
		if len(details) < 2 && !multiline(f) {
			details = append(details, f.Label+": "+clip.Text(f.Value, 80))
		}
	}
	if len(details) == 0 {
		return p.Title
	}
	return p.Title + " (" + strings.Join(details, ", ") + ")"
}

func multiline(f tool.Field) bool { return f.Long || strings.ContainsAny(f.Value, "\r\n") }

// ProgressSummary describes the progress of a run that has not ended; title returns what an action is called.
func ProgressSummary(s *State, title func(*Action) string) string {
	open := s.Open()
	switch {
	case s.End != nil:
		return s.End.Summary
	case len(open) == 0:
		return "The assistant is working on it."
	}
	var lines []string
	for _, a := range open {
		lines = append(lines, WaitingFor(a, title(a)))
	}
	return strings.Join(lines, "\n")
}

// WaitingFor describes what a waiting action of that title waits for.
func WaitingFor(a *Action, title string) string {
	switch a.Kind {
	case KindReview:
		return "Please check whether this was done: " + title
	case KindCall:
		return "Waiting for an answer: " + title
	}
	return "Waiting for your approval: " + title
}

// ActionTitle describes the action in the server's words, by a preview that is made for it. Its card, where there is
// one, has the title that its user was shown.
func ActionTitle(tools tool.Set, a *Action) string {
	if t := tools[a.Tool]; t != nil {
		if p, err := t.Preview(a.Args); err == nil {
			return p.Title
		}
	}
	return "an action of " + a.Tool
}
