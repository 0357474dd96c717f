package notice

import (
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Question returns in words what waits, without a word of what it is about.
func Question(a run.Approval) string {
	switch {
	case a.Kind == run.KindPlan:
		return "Confirm a plan?"
	case a.Kind == run.KindReview:
		return "Was it done? Please look."
	case a.Tool == "gmail_send" && people(a) == 1:
		return "Approve a mail to one person?"
	case a.Tool == "gmail_send":
		return fmt.Sprintf("Approve a mail to %d people?", people(a))
	case a.Tool == "calendar_event_create":
		return "Approve an event in your calendar?"
	case a.Tool == "terminal_run":
		return "Approve a command?"
	}
	return "Approve what an agent wants to do?"
}

// people counts whom a mail goes to: its card has their addresses one a line.
func people(a run.Approval) (n int) {
	for _, f := range a.Preview.Fields {
		if f.Label == "To" || f.Label == "Cc" || f.Label == "Bcc" {
			n += 1 + strings.Count(f.Value, "\n")
		}
	}
	return n
}
