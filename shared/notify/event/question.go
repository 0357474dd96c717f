package event

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Question returns a question that names the kind of the waiting approval, without its content.
func Question(a run.Approval) string {
	switch {
	case a.Kind == run.KindPlan:
		return "Confirm a plan?"
	case a.Kind == run.KindReview:
		return "Was it done? Please look."
	case a.Tool == "gmail_send" && people(a) == 1:
		return "Approve an e-mail to one person?"
	case a.Tool == "gmail_send":
		return fmt.Sprintf("Approve an e-mail to %d people?", people(a))
	case a.Tool == "gmail_draft":
		return "Approve a draft of an e-mail?"
	case a.Tool == "gmail_modify":
		return "Approve a change of labels in your mail?"
	case a.Tool == "calendar_event_create":
		return "Approve an event in your calendar?"
	case a.Tool == "calendar_event_update":
		return "Approve a change to an event in your calendar?"
	case a.Tool == "calendar_respond":
		return "Approve an answer to an invitation?"
	case a.Tool == "terminal_run":
		return "Approve a command?"
	}
	return "Approve what an agent wants to do?"
}

// people counts the recipients of an e-mail. The card lists their addresses, one per line.
func people(a run.Approval) (n int) {
	for _, f := range a.Preview.Fields {
		if f.Label == "To" || f.Label == "Cc" || f.Label == "Bcc" {
			n += 1 + strings.Count(f.Value, "\n")
		}
	}
	return n
}
