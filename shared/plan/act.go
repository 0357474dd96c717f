package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/fault"
)

// Record has the session know a call as it is on record now. It is told of each call when it is proposed, and again
// whenever something becomes of it; calls of one task stay with that task. Calls that speak of the plan are no acts.
func (s *Session) Record(a Act) {
	if a.Tool == ProposeTool || a.Tool == ReflectTool {
		return
	}
	was := s.acts[a.ID]
	if was == nil {
		was = &Act{}
		s.acts[a.ID], s.log = was, append(s.log, was)
		if s.Current != nil {
			was.step = s.Current.Steps
			s.taskOf[a.ID], s.Current.Acts = s.Current, append(s.Current.Acts, was)
		}
	}
	a.step = was.step
	if was.uses() {
		s.uses[s.keys[a.ID]]--
	}
	if s.keys[a.ID] == "" || a.Grant != was.Grant {
		s.keys[a.ID] = grantKey(s, a.Grant)
	}
	ended := a.Over && !was.Over
	s.Observed += len(a.Observation) - len(was.Observation)
	*was = a
	if was.uses() {
		s.uses[s.keys[a.ID]]++
	}
	if ended && s.Current != nil && s.taskOf[a.ID] == s.Current {
		see(s, a)
	}
}

// The numbers of times after which a task is stuck (issue 14 §3).
const (
	sameObservations = 4
	sameErrors       = 3
)

// A sighting is how often something was seen in the steps of a task, and in which of them last.
type sighting struct{ times, step int }

// see notices when a call of the current task shows what was seen too often.
func see(s *Session, a Act) {
	sight := a.sight()
	if seen := s.seen[sight]; seen.times > 0 && seen.step == a.step {
		return // what one answer asks for twice is no second step
	}
	s.seen[sight] = sighting{s.seen[sight].times + 1, a.step}
	switch n := s.seen[sight].times; {
	case a.Error == nil && n >= sameObservations:
		s.stuck = fmt.Sprintf("The same call was made %d times, and showed the same each time.", n)
	case a.Error != nil && n >= sameErrors:
		s.stuck = fmt.Sprintf("The same error came %d times: %s", n, a.Error.Message)
	}
}

// Stuck returns why the current task, or the planning of changes, must be given up, for its user, or "" if it may go
// on.
func (s *Session) Stuck() string {
	switch {
	case s.Current == nil && s.cause == changes && s.Phase() == Planning && s.CallsLeft() == 0:
		return fmt.Sprintf("No usable plan came in %d answers.", MaxPlanningCalls)
	case s.Current == nil:
		return ""
	case s.stuck != "":
		return s.stuck
	case s.Current.Steps >= MaxSteps:
		return fmt.Sprintf("The task was not done after %d steps.", MaxSteps)
	}
	return ""
}

// sight is the same for calls that have shown the same: an action with the same observation, or the same error. What
// is wrong with the arguments, or with what they name, is another error with other arguments.
func (a Act) sight() string {
	h := sha256.New()
	switch {
	case a.Error == nil:
		fmt.Fprintf(h, "saw %q %q %q", a.Tool, a.Args, a.Observation)
	case a.Error.Class == string(fault.Validation) || a.Error.Code == string(fault.CodeNotFound):
		fmt.Fprintf(h, "err %q %q %q", a.Tool, a.Args, *a.Error)
	default:
		fmt.Fprintf(h, "err %q %q", a.Tool, *a.Error)
	}
	return string(h.Sum(nil))
}

// Missing returns the effects that the task must have had and that are not on record as done, sorted.
func (t *TaskState) Missing() []string {
	var out []string
	for _, name := range t.Effects {
		had := func(a *Act) bool { return a.Tool == name && a.Effect && a.Over && a.Execution == Succeeded }
		if !slices.ContainsFunc(t.Acts, had) {
			out = append(out, name)
		}
	}
	return out
}

// uses reports whether the act counts against its grant: it was begun, and is not proven to have done nothing.
func (a *Act) uses() bool {
	return a.Grant != "" && a.Execution != NotStarted && a.Execution != "" && a.Execution != Failed
}

// grantKey returns the key of the confirmed plan's grant with the id.
func grantKey(s *Session, id string) string {
	if s.Confirmed == nil || id == "" {
		return ""
	}
	i := slices.IndexFunc(s.Confirmed.Plan.Grants, func(g Grant) bool { return g.ID == id })
	if i < 0 {
		return ""
	}
	return s.Confirmed.Plan.Grants[i].key()
}
