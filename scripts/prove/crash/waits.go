package crash

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// waitScenarios are scenarios in which a session waits for the checks of a commit, and then opens its issue. No process
// works on the session while it waits. The sweep makes a worker look at the checks again.
var waitScenarios = []scenario{
	{"plan waits", longTTL, []step{start(0), decide("approve_once"), deliver, lookAgain, turnGreen}, anIssues, once,
		false, 0, 0},
	{"plan waits and is cancelled", longTTL, []step{start(0), decide("approve_once"), deliver, cancelWait, deliver},
		anIssues, never, false, 0, 0},
}

// waits reports whether the session of the scenario waits for checks.
func (s scenario) waits() bool {
	return slices.ContainsFunc(s.steps, func(s step) bool {
		return s.name == turnGreen.name || s.name == cancelWait.name
	})
}

// checksPause replaces the half minute between two looks at the checks. A call is postponed by at least a second.
const checksPause = time.Second

// check sets the state of the check for which the session waits.
func (t *trial) check(status, conclusion string) {
	t.env.cloud.GitHub.AddCheck(t.uid, "web", branch, fakegithub.Check{Name: "test", Status: status,
		Conclusion: conclusion})
}

// pauses reports whether the session waits for its checks or has ended.
func (t *trial) pauses() bool {
	return t.over(0) || slices.ContainsFunc(t.view(0).Actions, func(a testkit.Action) bool {
		return a.Tool == github.WaitForChecks && !a.NotBefore.IsZero()
	})
}

// look makes the sweep continue the session after its pause.
func (t *trial) look(to *process) {
	t.env.worker = to
	proof.Must(wait.For(t.ctx, checksPause))
	_, err := t.env.sweeper.Sweep(t.ctx)
	proof.Must(err)
	proof.Must(t.env.deliver(t.ctx, to))
}

var lookAgain = step{"look while the checks run", (*trial).pauses, (*trial).look}

var turnGreen = step{"look after the checks", (*trial).pauses, func(t *trial, to *process) {
	t.check("completed", "success")
	t.look(to)
}}

var cancelWait = step{"cancel the wait", (*trial).pauses, cancel.do}
