package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The tools whose calls decide about a task that must end with green checks.
const (
	waitForChecks     = "github.waitForChecks"
	commitFiles       = "github.commitFiles"
	createPullRequest = "github.createPullRequest"
)

// MaxTries is the limit of Task.GreenWithin.
const MaxTries = 10

// A delivery is a commit that a session made, or a pull request that it opened.
type delivery struct {
	repo, branch string
	commit       string // its SHA, or "" if it is unknown
}

// delivery returns what the call made, or nil if it made neither a commit nor a pull request.
func (a *Act) delivery() *delivery {
	if a.Tool != commitFiles && a.Tool != createPullRequest || a.Execution == NotStarted || a.Execution == Failed {
		return nil
	}
	var in struct{ Owner, Repo, Branch, Head string }
	var out struct{ SHA string }
	_ = json.Unmarshal(a.Args, &in)
	_ = json.Unmarshal(a.Observation, &out)
	if a.Tool == createPullRequest {
		in.Branch = in.Head[strings.Index(in.Head, ":")+1:]
	}
	return &delivery{strings.ToLower(in.Owner + "/" + in.Repo), in.Branch, out.SHA}
}

// delivered returns the session's newest delivery, or nil. A pull request has the commit that was made on its branch.
func (s *Session) delivered() (newest *delivery) {
	for _, a := range slices.Backward(s.log) {
		d := a.delivery()
		switch {
		case d == nil:
		case newest == nil && a.Tool == commitFiles:
			return d
		case newest == nil:
			newest = d
		case a.Tool == commitFiles && d.branch == newest.branch:
			newest.commit = d.commit
			return newest
		}
	}
	return newest
}

// isOf reports whether a wait for checks looked at the delivery: at its commit, or at its branch.
func (a *Act) isOf(d *delivery) bool {
	var in struct{ Owner, Repo, Ref string }
	if json.Unmarshal(a.Args, &in) != nil {
		return false
	}
	branch := strings.TrimPrefix(strings.TrimPrefix(in.Ref, "refs/"), "heads/")
	return in.Ref != "" && in.Ref == d.commit ||
		branch == d.branch && strings.EqualFold(in.Owner+"/"+in.Repo, d.repo)
}

// isGreen reports whether the task's newest wait for checks found all of them green, looked at the delivery if there is
// one, and no commit followed.
func (t *TaskState) isGreen(d *delivery) bool {
	for _, a := range slices.Backward(t.Acts) {
		switch {
		case a.Tool == waitForChecks && a.Over:
			return a.isGreen() && (d == nil || a.isOf(d))
		case a.Tool == commitFiles && a.Execution != NotStarted && a.Execution != Failed:
			return false
		}
	}
	return false
}

// wantsGreen returns the call that a task must still have that must end with green checks of the delivery.
func wantsGreen(d *delivery) string {
	if d == nil {
		return waitForChecks + " with green checks and without a later commit"
	}
	return fmt.Sprintf("%s with green checks of the branch %q and without a later commit", waitForChecks, d.branch)
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
