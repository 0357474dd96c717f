package loop

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

// effectSummary says what was done so far, and of what nobody knows, from what is on record: never from what the model
// says.
func (l *Loop) effectSummary(s *agent.State) string {
	var lines []string
	for _, a := range s.Actions {
		switch t := l.Tools[a.Tool]; {
		case !a.SideEffect:
		case a.Status == agent.ActionCompleted && t == nil: // it was withdrawn since
			lines = append(lines, "Did "+a.Tool+".")
		case a.Status == agent.ActionCompleted:
			lines = append(lines, t.Summary(a.Args))
		case a.Execution == agent.UnknownState:
			lines = append(lines, "It is not known whether this was done: "+l.title(a)+". Please check.")
		}
	}
	return strings.Join(lines, "\n")
}

// outcomeSummary is the account, and where the run was to do several things, what of them was not done and why.
func (l *Loop) outcomeSummary(s *agent.State) string {
	lines, wanted := l.outcomeLines(s)
	if wanted < 2 {
		return l.effectSummary(s)
	}
	return strings.Join(lines, "\n")
}

// outcomeLine says in one line what a run has come to, for the model of later ones.
func (l *Loop) outcomeLine(s *agent.State, end *agent.End) string {
	lines, _ := l.outcomeLines(s)
	if len(lines) == 0 {
		lines = []string{"Nothing was sent or changed."}
	}
	status := string(end.Status)
	if end.Error != nil {
		status += " (" + string(end.Error.Code) + ")"
	}
	line, _ := visible.Line(strings.Join(strings.Fields(status+": "+strings.Join(lines, " ")), " "))
	return agent.Cut(line, maxOutcome)
}

// maxOutcome is how long the outcome of an earlier run may be, in bytes.
const maxOutcome = 600

// outcomeLines are the account's lines, and those of what was not done; wanted is how many effects the run was to have.
func (l *Loop) outcomeLines(s *agent.State) (lines []string, wanted int) {
	if done := l.effectSummary(s); done != "" {
		lines = append(lines, done)
	}
	for _, a := range s.Actions {
		if !a.SideEffect || a.PolicyDecision == string(policy.Deny) && a.ApprovalID == "" {
			continue // the model asked for what it may not, and was told
		}
		wanted++
		if line := l.notDoneLine(a); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, wanted
}

// notDoneLine says that the action was not done and why, and nothing of one that was or of which nobody knows.
func (l *Loop) notDoneLine(a *agent.Action) string {
	switch {
	case a.Status == agent.ActionRejected:
		return "Not done, because you rejected it: " + l.describeCall(a) + "."
	case a.Status != agent.ActionFailed || a.Execution == agent.UnknownState || a.Error == nil:
		return ""
	}
	if why := notDoneReasons[a.Error.Code]; why != "" && a.Error.Class == fault.Policy {
		return "Not done, because " + why + ": " + l.describeCall(a) + "."
	}
	return "Not done: " + l.describeCall(a) + ". " + a.Error.Message
}

// notDoneReasons says why the loop itself gives an action up.
var notDoneReasons = map[fault.Code]string{
	fault.CodeExpired: "the approval expired",
	codeCancelled:     "the run was cancelled",
	codeDeadline:      "the run took too long",
}

// verifiedSummary says what was done where not every effect that the model asked for was, or where its words could be
// taken for ours, and is empty elsewhere: the model may say that it is done, but a summary follows the record (hostile
// case MO-019).
func (l *Loop) verifiedSummary(s *agent.State, said string) string {
	missed := slices.ContainsFunc(s.Actions, func(a *agent.Action) bool {
		mattered := a.SideEffect || l.Tools[a.Tool] == nil
		return mattered && (a.Status == agent.ActionFailed || a.Status == agent.ActionRejected)
	})
	if !missed && !spoofsSummary(said) {
		return ""
	}
	if l.effectSummary(s) != "" {
		return agent.Cut("On record:\n"+l.outcomeSummary(s), agent.MaxMessageText/2)
	}
	return "On record: nothing was sent or changed."
}

// describeCall is the action's title with the first details of its card, so that one of several can be told from the
// others.
func (l *Loop) describeCall(a *agent.Action) string {
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
			details = append(details, f.Label+": "+agent.Cut(f.Value, 80))
		}
	}
	if len(details) == 0 {
		return p.Title
	}
	return p.Title + " (" + strings.Join(details, ", ") + ")"
}

func multiline(f tool.Field) bool { return f.Long || strings.ContainsAny(f.Value, "\r\n") }
