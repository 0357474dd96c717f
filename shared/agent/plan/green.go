package plan

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The tools by whose calls a task that must end with green checks is judged.
const (
	waitForChecks = "github.waitForChecks"
	commitFiles   = "github.commitFiles"
)

// MaxTries is the limit of Task.GreenWithin.
const MaxTries = 10

// isGreen reports whether the task's newest wait for checks found all of them green, and no commit followed.
func (t *TaskState) isGreen() bool {
	for _, a := range slices.Backward(t.Acts) {
		switch {
		case a.Tool == waitForChecks && a.Over:
			return a.isGreen()
		case a.Tool == commitFiles && a.Execution != NotStarted && a.Execution != Failed:
			return false
		}
	}
	return false
}

// notGreen returns, in words for the user, why a task must be given up whose checks were not green in all of its tries;
// or "".
func (t *TaskState) notGreen() string {
	tries := 0
	for _, a := range t.Acts[t.begun:] {
		if a.Tool == waitForChecks && a.Over && a.Error == nil && !a.isGreen() {
			tries++
		}
	}
	if t.GreenWithin == 0 || tries < t.GreenWithin {
		return ""
	}
	return fmt.Sprintf("The checks were not green after %s.", inTries(tries))
}

// isGreen reports whether a wait returned that all checks succeeded.
func (a *Act) isGreen() bool {
	var got struct{ State string }
	return a.Error == nil && json.Unmarshal(a.Observation, &got) == nil && got.State == "success"
}

func inTries(n int) string {
	if n == 1 {
		return "one try"
	}
	return fmt.Sprintf("%d tries", n)
}
