package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Record stores the current state of a call. It must be called when the call is proposed, and again after each change.
// Calls of one task stay with that task. Calls of the tools of this package are ignored.
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

// Limits of repetition. A task that reaches one is stuck.
const (
	sameObservations = 4
	sameErrors       = 3
)

// repeated returns what the current task's calls have repeated too often, or "". Equal calls in the same model answer
// count once.
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
			return fmt.Sprintf("The same call returned the same result %d times.", n)
		case a.Error != nil && n >= sameErrors:
			return fmt.Sprintf("The same error occurred %d times: %s", n, a.Error.Message)
		}
	}
	return ""
}

// Stuck returns, in words for the user, why the current task or the planning of changes must be given up. It returns ""
// if it can continue.
func (s *Session) Stuck() string {
	switch {
	case s.Current != nil && s.Current.notGreen() != "":
		return s.Current.notGreen()
	case s.Current == nil && s.cause == changes && s.Phase() == Planning && s.CallsLeft() == 0:
		return fmt.Sprintf("The model proposed no usable plan in %d answers.", MaxPlanningCalls)
	case s.Current == nil:
		return ""
	case s.Current.Steps >= MaxSteps:
		return cmp.Or(s.Current.repeated(), fmt.Sprintf("The task was not done after %d steps.", MaxSteps))
	}
	return s.Current.repeated()
}

// shows reports whether both calls are over and had the same outcome: the same call with the same observation, or the
// same error. An error about the arguments, or about what they name, counts as the same only with the same arguments.
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

// missing returns the sorted names of the effects that the task must have and that are not recorded as done, and the
// green checks of the delivery, if the task must have them and they are not recorded either.
func (t *TaskState) missing(d *delivery) []string {
	var out []string
	for _, name := range t.Effects {
		had := func(a *Act) bool { return a.Tool == name && a.Effect && a.Over && a.Execution == Succeeded }
		if !slices.ContainsFunc(t.Acts, had) {
			out = append(out, name)
		}
	}
	if t.GreenWithin > 0 && !t.isGreen(d) {
		out = append(out, wantsGreen(d))
	}
	return out
}

// uses reports whether the call counts against its grant. It does once it has started, unless it is proven that nothing
// happened.
func (a *Act) uses() bool {
	return a.Grant != "" && a.Execution != NotStarted && a.Execution != "" && a.Execution != Failed
}

// grantKey returns the key of the confirmed plan's grant with the ID, or "".
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
