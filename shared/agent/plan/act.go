package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
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
	s.Observed += len(a.Observation) - len(was.Observation)
	*was = a
	if was.uses() {
		s.uses[s.keys[a.ID]]++
	}
}

// The numbers of times after which a task is stuck.
const (
	sameObservations = 4
	sameErrors       = 3
)

// repeated says what the calls of the current task show again and again, or nothing. What one answer asks for twice is
// no second step.
func (t *TaskState) repeated() string {
	acts := t.Acts[t.begun:]
	for i, a := range acts {
		n, step := 0, -1
		for _, before := range acts[:i+1] {
			if before.step != step && a.shows(before) {
				n, step = n+1, before.step
			}
		}
		switch {
		case a.Error == nil && n >= sameObservations:
			return fmt.Sprintf("The same call was made %d times, and showed the same each time.", n)
		case a.Error != nil && n >= sameErrors:
			return fmt.Sprintf("The same error came %d times: %s", n, a.Error.Message)
		}
	}
	return ""
}

// Stuck returns why the current task, or the planning of changes, must be given up, for its user, or "" if it may go
// on.
func (s *Session) Stuck() string {
	switch {
	case s.Current == nil && s.cause == changes && s.Phase() == Planning && s.CallsLeft() == 0:
		return fmt.Sprintf("No usable plan came in %d answers.", MaxPlanningCalls)
	case s.Current == nil:
		return ""
	case s.Current.Steps >= MaxSteps:
		return cmp.Or(s.Current.repeated(), fmt.Sprintf("The task was not done after %d steps.", MaxSteps))
	}
	return s.Current.repeated()
}

// shows reports whether both are over and have shown the same: an action with the same observation, or the same error.
// What is wrong with the arguments, or with what they name, is another error with other arguments.
func (a *Act) shows(other *Act) bool {
	if !a.Over || !other.Over || a.Tool != other.Tool || (a.Error == nil) != (other.Error == nil) {
		return false
	}
	sameArgs := bytes.Equal(a.Args, other.Args)
	if a.Error == nil {
		return sameArgs && bytes.Equal(a.Observation, other.Observation)
	}
	ofArgs := a.Error.Class == string(fault.Validation) || a.Error.Code == string(fault.CodeNotFound)
	return *a.Error == *other.Error && (sameArgs || !ofArgs)
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
