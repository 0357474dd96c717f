package loop

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// effectSummary tells which effects took place so far, and which are unknown. It is made from the recorded events,
// never from what the model says.
func (l *Loop) effectSummary(s *run.State) string {
	var lines []string
	for _, a := range s.Actions {
		switch t := l.Tools[a.Tool]; {
		case !a.SideEffect:
		case a.Status == run.ActionCompleted && t == nil: // the tool was removed since
			lines = append(lines, "Did "+a.Tool+".")
		case a.Status == run.ActionCompleted:
			lines = append(lines, t.Summary(a.Args))
		case a.Execution == run.UnknownState:
			lines = append(lines, "It is not known whether this was done: "+l.title(a)+". Please check.")
		}
	}
	return strings.Join(lines, "\n")
}

// outcomeSummary returns the summary of effects and, where the run was to have several, those that were not done and
// why.
func (l *Loop) outcomeSummary(s *run.State) string {
	lines, wanted := l.outcomeLines(s)
	if wanted < 2 {
		return l.effectSummary(s)
	}
	return strings.Join(lines, "\n")
}

// outcomeLine tells in one line how a run ended, for the model in later runs of the thread.
func (l *Loop) outcomeLine(s *run.State, end *run.End) string {
	lines, _ := l.outcomeLines(s)
	if len(lines) == 0 {
		lines = []string{"Nothing was sent or changed."}
	}
	status := string(end.Status)
	if end.Error != nil {
		status += " (" + string(end.Error.Code) + ")"
	}
	line, _ := visible.Line(strings.Join(strings.Fields(status+": "+strings.Join(lines, " ")), " "))
	return clip.Text(line, maxOutcome)
}

// maxOutcome is the length of an outcome line, in bytes.
const maxOutcome = 600

// outcomeLines returns the lines of the summary of effects, and those of what was not done; wanted is how many effects
// the run was to have.
func (l *Loop) outcomeLines(s *run.State) (lines []string, wanted int) {
	if done := l.effectSummary(s); done != "" {
		lines = append(lines, done)
	}
	for _, a := range s.Actions {
		if !a.SideEffect || a.PolicyDecision == string(policy.Deny) && a.ApprovalID == "" {
			continue // the policy denied it, and the model got that as the response
		}
		wanted++
		if line := l.notDoneLine(a); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, wanted
}

// notDoneLine returns the line that says that the action was not done and why, or "" for one that was done or whose
// outcome is unknown.
func (l *Loop) notDoneLine(a *run.Action) string {
	switch {
	case a.Status == run.ActionRejected:
		return "Not done, because you rejected it: " + l.describeCall(a) + "."
	case a.Status != run.ActionFailed || a.Execution == run.UnknownState || a.Error == nil:
		return ""
	}
	if why := notDoneReasons[a.Error.Code]; why != "" && a.Error.Class == fault.Policy {
		return "Not done, because " + why + ": " + l.describeCall(a) + "."
	}
	return "Not done: " + l.describeCall(a) + ". " + a.Error.Message
}

// notDoneReasons tells why the loop itself gives an action up.
var notDoneReasons = map[fault.Code]string{
	fault.CodeExpired:   "the approval expired",
	codeCancelled:       "the run was cancelled",
	codeDeadline:        "the run took too long",
	fault.CodeAgentGone: "the run's agent is no longer available",
}

// verifiedSummary returns the summary of what was done where an effect that the model asked for did not take place, or
// where the model's words could be taken for the server's own. It is empty otherwise. The model may claim that
// something was done; the verified summary follows the recorded events (hostile case MO-019).
func (l *Loop) verifiedSummary(s *run.State, answer string) string {
	missed := slices.ContainsFunc(s.Actions, func(a *run.Action) bool {
		mattered := a.SideEffect || l.Tools[a.Tool] == nil
		return mattered && (a.Status == run.ActionFailed || a.Status == run.ActionRejected)
	})
	if !missed && !spoofsSummary(answer) {
		return ""
	}
	if l.effectSummary(s) != "" {
		return clip.Text("On record:\n"+l.outcomeSummary(s), run.MaxMessageText/2)
	}
	return "On record: nothing was sent or changed."
}

// describeCall returns the action's title with the first details of its preview, so that one of several can be told
// from the others.
func (l *Loop) describeCall(a *run.Action) string {
	t := l.Tools[a.Tool]
	if t == nil {
		return l.title(a)
	}
	p, err := t.Preview(a.Args)
	if err != nil {
		return l.title(a)
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
