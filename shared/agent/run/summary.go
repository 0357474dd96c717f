package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// EffectSummary returns one line for each effect so far, including those that ran without success, and one for each
// effect whose outcome is unknown. It uses the recorded events, never the model's words.
func EffectSummary(tools tool.Set, s *State) string {
	var lines []string
	for _, a := range s.Actions {
		switch t := tools[a.Tool]; {
		case !a.SideEffect:
		case a.Status == ActionCompleted && t == nil: // the tool was removed after the call
			lines = append(lines, "Did "+a.Tool+".")
		case a.Status == ActionCompleted:
			lines = append(lines, t.Summary(a.Args)+exitOf(t, a))
		case a.Ran && a.Error != nil:
			lines = append(lines, "Failed after it started: "+describeCall(tools, a)+". "+a.Error.Message+
				" Its effects until then remain.")
		case a.Execution == UnknownState:
			lines = append(lines, "It is not known whether this was done: "+ActionTitle(tools, a)+". Please check.")
		}
	}
	return strings.Join(lines, "\n")
}

// exitOf returns a sentence about a command's exit code, or "" for exit code 0.
func exitOf(t *tool.Tool, a *Action) string {
	code := t.Note(a.Args, a.Result)["exit"]
	if code == "" || code == "0" {
		return ""
	}
	return " It ended with the exit code " + code + "."
}

// doneSummary returns the lines about what took place so far: the effects, and the calls that the run's client ran.
func doneSummary(tools tool.Set, s *State) string {
	lines := append([]string{EffectSummary(tools, s)}, clientLines(tools, s)...)
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// clientLines returns a line about the calls that the run's client, such as a page, ran, and one about those that it
// may have run. Only the client knows whether they changed anything.
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
		lines = append(lines, "The page ran "+counted(done)+".")
	}
	if len(unknown) > 0 {
		lines = append(lines, "It is not known whether the page ran "+counted(unknown)+".")
	}
	return lines
}

// asksPerson reports whether the tool's calls are questions to the user. Only these tools set their own waiting time.
func asksPerson(t *tool.Tool) bool { return t != nil && t.Wait > 0 }

// counted joins the names, each once, with the number of its occurrences.
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

// OutcomeSummary returns the lines about what took place. If the run was to have several effects, it adds those that
// were not done, with the reasons. It returns "" if a final call's text is the answer and there was no effect.
func OutcomeSummary(tools tool.Set, s *State) string {
	if finalCall(s) != nil && EffectSummary(tools, s) == "" {
		return ""
	}
	return outcomes(tools, s)
}

// finalCall returns the call of the newest turn whose success ended the run ([tool.Spec.Final]), or nil.
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

// RecordLines returns what a run did and did not do, from the recorded events. The text is cut to half the size of a
// message.
func RecordLines(tools tool.Set, s *State) string {
	lines, _ := outcomeLines(tools, s)
	if len(lines) == 0 {
		return "Nothing was sent or changed in this run."
	}
	return clip.Text(strings.Join(lines, "\n"), MaxMessageText/2)
}

// OutcomeLine returns one line about how a run ended, for the model in later runs of the thread. It has at most
// MaxOutcome bytes.
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

// Heading returns a title for the thread of a run that had exactly one effect, or "".
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

// MaxOutcome is the maximum length of an outcome line, in bytes.
const MaxOutcome = 600

// outcomeLines returns lines about completed and missing effects. wanted is the number of effects that the run was to
// have, plus the number of lines about its client.
func outcomeLines(tools tool.Set, s *State) (lines []string, wanted int) {
	if done := doneSummary(tools, s); done != "" {
		lines = append(lines, done)
	}
	wanted = len(clientLines(tools, s))
	for _, a := range s.Actions {
		if !a.SideEffect || a.PolicyDecision == string(policy.Deny) && a.ApprovalID == "" {
			continue // the policy denied the call, and the model read that as the response
		}
		wanted++
		if line := notDoneLine(tools, a); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, wanted
}

// notDoneLine returns a line that states that the action was not done, and why. It returns "" for an action that was
// done or whose outcome is unknown.
func notDoneLine(tools tool.Set, a *Action) string {
	switch {
	case a.Status == ActionRejected && a.Decision == Undo:
		return "Not done, because you took your approval back: " + describeCall(tools, a) + "."
	case a.Status == ActionRejected && a.Decision == TakeBack:
		return "Not done, because you took it back in the conversation: " + describeCall(tools, a) + "."
	case a.Status == ActionRejected:
		return "Not done, because you rejected it: " + describeCall(tools, a) + "."
	case a.Status != ActionFailed || a.Execution == UnknownState || a.Error == nil || a.Ran:
		return ""
	}
	if why := notDoneReasons[a.Error.Code]; why != "" && a.Error.Class == fault.Policy {
		return "Not done, because " + why + ": " + describeCall(tools, a) + "."
	}
	return "Not done: " + describeCall(tools, a) + ". " + a.Error.Message
}

// notDoneReasons maps the error codes of the run's own decisions to reasons.
var notDoneReasons = map[fault.Code]string{
	fault.CodeExpired:   "the approval expired",
	CodeCancelled:       "it was cancelled",
	codeNotRun:          "an earlier step was not done",
	codeDeadline:        "its deadline passed",
	fault.CodeAgentGone: "its agent is no longer available",
}

// VerifiedSummary returns a summary of the completed effects, for an answer that may be wrong about them. It returns ""
// if the answer is not in doubt. An answer is in doubt in three cases: a requested effect did not take place or the
// user edited it; the answer could be mistaken for the server's own words; or it probably claims something and nothing
// was done. The summary follows the recorded events (hostile case MO-019).
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

// describeCall returns the action's title with the first two details of its preview, so that similar actions can be
// distinguished.
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

// waitingCall returns a postponed call, or nil.
func waitingCall(s *State) *Action {
	for _, a := range s.Actions {
		if a.Runnable() && !a.NotBefore.IsZero() {
			return a
		}
	}
	return nil
}

// waitsBecause maps the reason for a call's wait to the summary of its run.
var waitsBecause = map[WaitsFor]string{
	"":             "A call waits, because its service accepts no calls for now. It is made again.",
	WaitsForQuota:  "A call waits, because the quota that all users share is used up for now. It is made again.",
	WaitsForResult: "A call waits, because what it looks for is not there yet. It is made again.",
}

// ProgressSummary describes the progress of a run that has not ended. title returns the title of an action.
func ProgressSummary(s *State, title func(*Action) string) string {
	open := s.Open()
	switch {
	case s.End != nil:
		return s.End.Summary
	case len(open) == 0 && s.Waits.Count > 0:
		return "The model is overloaded or its quota is used up. The run will try again."
	case len(open) == 0 && waitingCall(s) != nil:
		return cmp.Or(waitsBecause[waitingCall(s).WaitsFor], waitsBecause[""]) // a later release may know more reasons
	case len(open) == 0:
		return "The assistant is working on it."
	}
	var lines []string
	for _, a := range open {
		lines = append(lines, WaitingFor(a, title(a)))
	}
	return strings.Join(lines, "\n")
}

// WaitingFor describes what a waiting action is waiting for. title is the action's title.
func WaitingFor(a *Action, title string) string {
	switch a.Kind {
	case KindReview:
		return "Please check whether this was done: " + title
	case KindCall:
		return "Waiting for an answer: " + title
	}
	return "Waiting for your approval: " + title
}

// ActionTitle returns a title for the action in the server's words, from a new preview. The title on an approval card
// is the one that was made when the approval was requested.
func ActionTitle(tools tool.Set, a *Action) string {
	if t := tools[a.Tool]; t != nil {
		if p, err := t.Preview(a.Args); err == nil {
			return p.Title
		}
	}
	return "an action of " + a.Tool
}
