package plan_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// model is a simple reference model of a session: the waiting plan, the current plan, and the state of each task.
type model struct {
	again     bool   // the waiting card will be replaced
	waits     string // approval of the waiting plan
	waitsPlan []string
	lost      bool   // a plan is unreadable
	hash      string // hash of the newest proposed plan, until a change applies
	confirmed bool
	why       string // cause of the planning: "", "failed", "changes"
	order     []string
	task      map[string]plan.TaskStatus
	current   string
	grant     bool // the confirmed plan's grant is not revoked
	revisions int
	replans   int
	broken    bool
	ended     plan.Status
}

func (m *model) pending() string {
	for _, id := range m.order {
		if m.task[id] == plan.TaskPending {
			return id
		}
	}
	return ""
}

func (m *model) status() plan.Status {
	switch {
	case m.ended != "":
		return m.ended
	case m.broken:
		return plan.StatusFailed
	case m.waits != "":
		return plan.StatusAwaiting
	case !m.confirmed || m.why != "":
		return plan.StatusPlanning
	}
	return plan.StatusExecuting
}

func (m *model) runs() bool { return m.status() == plan.StatusExecuting }

// thePlans are the proposed plans, named by letters. The values are the IDs of their tasks.
var thePlans = map[string][]string{"A": {"t1", "t2"}, "B": {"t1", "t3"}, "C": {"t2", "t1", "t4"}, "unreadable": nil}

func planOf(t rapid.TB, name string) json.RawMessage {
	if name == "unreadable" {
		return json.RawMessage(`{"tasks":7}`)
	}
	p := plan.Plan{Repo: repo, Deadline: deadline, Grants: []plan.Grant{grant(1)}}
	p.Grants[0].ID = "g1"
	for _, id := range thePlans[name] {
		task := task(id)
		task.ID = id
		p.Tasks = append(p.Tasks, task)
	}
	return canonical(t, p)
}

// take applies the event to the model, and reports whether the event is permitted.
func (m *model) take(e plan.Event, name string) bool {
	switch {
	case m.lost: // any event is permitted
		return true
	case m.ended != "" || m.broken:
		return false
	}
	switch {
	case e.Proposed != nil:
		if m.waits != "" || m.current != "" || m.revisions == plan.MaxRevisions &&
			e.Proposed.Hash != m.hash && !m.again {
			return false
		}
		if name == "unreadable" {
			m.lost, m.broken = true, true
			return true
		}
		if m.runs() {
			m.why = "changes"
		}
		if !m.again {
			m.revisions = min(m.revisions+1, plan.MaxRevisions)
		}
		m.again = false
		m.waits, m.waitsPlan, m.hash = e.Proposed.ApprovalID, thePlans[name], e.Proposed.Hash
	case e.Confirmed != nil:
		left := slices.ContainsFunc(m.waitsPlan, func(id string) bool { return m.task[id] != plan.TaskCompleted })
		for id, status := range m.task {
			left = left && (status != plan.TaskCompleted || slices.Contains(m.waitsPlan, id))
		}
		if m.waits == "" || e.Confirmed.ApprovalID != m.waits || e.Confirmed.Hash != m.hash || !left {
			return false
		}
		m.stand(m.waitsPlan)
		m.waits, m.confirmed, m.why, m.grant = "", true, "", true
	case e.Closed != nil && e.Closed.How == plan.GivenUp:
		if m.waits != "" || m.why != "changes" {
			return false
		}
		m.why = ""
	case e.Closed != nil:
		if m.waits == "" || e.Closed.ApprovalID != m.waits {
			return false
		}
		if e.Closed.How == plan.Rejected || e.Closed.How == plan.Expired {
			m.broken = m.why != "changes"
			m.why = ""
		}
		m.waits, m.again = "", e.Closed.How == plan.Replaced
	case e.Changed != nil:
		return m.change(e.Changed.Changes[0])
	case e.Revoked != nil:
		if !m.confirmed || !m.grant || e.Revoked.GrantID != "g1" {
			return false
		}
		m.grant = false
	case e.Started != nil:
		if !m.runs() || m.current != "" || m.pending() == "" || m.pending() != e.Started.TaskID {
			return false
		}
		m.current = e.Started.TaskID
		m.task[m.current] = plan.TaskExecuting
	case e.Reflected != nil:
		return m.runs() && m.current != "" && m.current == e.Reflected.TaskID
	case e.Finished != nil:
		if !m.runs() || m.current == "" || m.current != e.Finished.TaskID || e.Finished.Status == plan.TaskPending {
			return false
		}
		m.task[m.current], m.current = e.Finished.Status, ""
		if e.Finished.Status == plan.TaskFailed {
			m.broken = m.replans == plan.MaxReplans || m.revisions == plan.MaxRevisions
			if !m.broken {
				m.replans, m.why = m.replans+1, "failed"
			}
		}
	}
	return true
}

func (m *model) stand(ids []string) {
	for id, status := range m.task {
		if !slices.Contains(ids, id) && status != plan.TaskObsolete {
			m.task[id] = plan.TaskObsolete
		}
	}
	for _, id := range ids {
		if m.task[id] != plan.TaskCompleted {
			m.task[id] = plan.TaskPending
		}
	}
	m.order = ids
}

// change applies a change of one task: it drops the task, or adds it at the end.
func (m *model) change(c plan.Change) bool {
	if !m.runs() || m.current != "" {
		return false
	}
	if c.Op == plan.Add {
		if _, known := m.task[c.Task.ID]; known {
			return false
		}
		m.stand(append(slices.Clone(m.order), c.Task.ID))
	} else {
		rest := slices.DeleteFunc(slices.Clone(m.order), func(id string) bool { return id == c.TaskID })
		alive := slices.ContainsFunc(rest, func(string) bool { return true })
		if m.task[c.TaskID] != plan.TaskPending || !alive {
			return false
		}
		m.stand(rest)
	}
	m.hash = ""
	return true
}

// TestSessionStates applies events in any order to a session (004-02). The session accepts exactly the events that the
// model accepts, has the same state, and does not change when it refuses an event.
func TestSessionStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := plan.NewSession(), &model{task: map[string]plan.TaskStatus{}}
		var taken []plan.Event
		for n := range rapid.IntRange(40, 120).Draw(t, "events") {
			if rapid.IntRange(0, 40).Draw(t, "end") == 23 { // not 0, which rapid draws often
				endBoth(t, s, m)
				continue
			}
			e, name := anyEvent(t, m, n)
			err := s.Apply(e)
			if legal := m.take(e, name); legal != (err == nil) {
				t.Fatalf("%s of %q: permitted by the model: %v; error of the session: %v", e.Type(), name, legal, err)
			}
			if err == nil {
				taken = append(taken, e)
			} else if m.ended == "" && !reflect.DeepEqual(s, folded(t, taken)) {
				t.Fatalf("the refused event %s changed the session", e.Type())
			}
			compare(t, s, m)
		}
	})
}

// endBoth ends the session as completed if everything is done, and otherwise as past its deadline.
func endBoth(t *rapid.T, s *plan.Session, m *model) {
	done := m.runs() && m.current == "" && m.pending() == ""
	if err := s.End(true, ""); (err == nil) != done {
		t.Fatalf("error of ending as completed: %v; everything is done: %v", err, done)
	}
	if done {
		m.ended = plan.StatusCompleted
		return
	}
	err := s.End(false, plan.CodeDeadline)
	if (err == nil) != (m.ended == "") {
		t.Fatalf("ended again: %v", err)
	}
	if m.ended == "" {
		m.ended, m.waits = plan.StatusDeadline, ""
	}
}

// anyEvent draws an event. Most are permitted, or nearly so. name is the name of the proposed plan.
func anyEvent(t *rapid.T, m *model, n int) (e plan.Event, name string) {
	id := rapid.SampledFrom([]string{m.current, m.pending(), m.current, m.pending(), "t1", "t4", "t9"}).Draw(t, "task")
	approval := rapid.SampledFrom([]string{m.waits, m.waits, m.waits, "another"}).Draw(t, "approval")
	switch rapid.IntRange(0, 11).Draw(t, "kind") {
	case 0, 1:
		name = rapid.SampledFrom([]string{"A", "B", "C", "A", "B", "C", "unreadable"}).Draw(t, "plan")
		e.Proposed = &plan.Proposed{Plan: planOf(t, name), Hash: "h" + name, ActionID: "a",
			ApprovalID: "p" + string(rune('A'+n))}
	case 2, 3, 4:
		hash := rapid.SampledFrom([]string{m.hash, m.hash, m.hash, "hA"}).Draw(t, "hash")
		e.Confirmed = &plan.Confirmed{ApprovalID: approval, Hash: hash}
	case 5:
		how := rapid.SampledFrom([]plan.How{plan.Refined, plan.Replaced, plan.Rejected,
			plan.Expired, plan.GivenUp, plan.GivenUp}).Draw(t, "how")
		e.Closed = &plan.Closed{ApprovalID: approval, How: how}
	case 6:
		added := task(id)
		added.ID = rapid.SampledFrom([]string{"t7", "t8", "t1"}).Draw(t, "added")
		e.Changed = &plan.Changed{Changes: []plan.Change{rapid.SampledFrom([]plan.Change{
			{Op: plan.Add, Task: &added}, {Op: plan.Obsolete, TaskID: id}}).Draw(t, "change")}}
	case 7:
		e.Revoked = &plan.Revoked{GrantID: rapid.SampledFrom([]string{"g1", "g2"}).Draw(t, "grant")}
	case 8, 9:
		e.Started = &plan.Started{TaskID: id}
	case 10:
		status := rapid.SampledFrom([]plan.TaskStatus{plan.TaskCompleted, plan.TaskCompleted, plan.TaskFailed,
			plan.TaskPending}).Draw(t, "status")
		e.Finished = &plan.Finished{TaskID: id, Status: status}
	default:
		e.Reflected = &plan.TaskReflected{TaskID: id}
	}
	return e, name
}

func folded(t *rapid.T, events []plan.Event) *plan.Session {
	s := plan.NewSession()
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func compare(t *rapid.T, s *plan.Session, m *model) {
	if s.Status() != m.status() {
		t.Fatalf("status %s, in the model %s", s.Status(), m.status())
	}
	if (s.Proposal != nil) != (s.Status() == plan.StatusAwaiting) {
		t.Fatalf("status %s, a plan waits: %v", s.Status(), s.Proposal != nil)
	}
	if s.Revision != m.revisions || s.Replans != m.replans {
		t.Fatalf("revision %d after %d new plannings; the model has %d and %d", s.Revision, s.Replans, m.revisions,
			m.replans)
	}
	executing := 0
	for _, task := range s.Tasks {
		if task.Status != m.task[task.ID] {
			t.Fatalf("task %s is %s, in the model %s", task.ID, task.Status, m.task[task.ID])
		}
		if task.Status == plan.TaskExecuting {
			executing++
		}
	}
	if executing > 1 || (executing == 1) != (s.Current != nil) {
		t.Fatalf("%d tasks in progress", executing)
	}
}

func TestApplyAfterEnd(t *testing.T) {
	for code, want := range map[fault.Code]plan.Status{plan.CodeDeadline: plan.StatusDeadline,
		fault.CodeInternal: plan.StatusFailed} {
		s := executing(t, plan.Plan{Tasks: []plan.Task{task("One")}})
		if err := s.End(true, ""); err == nil {
			t.Error("a session with a task in progress ended as completed")
		}
		if err := s.End(false, code); err != nil || s.Status() != want || s.Phase() != plan.Ended {
			t.Errorf("%s: %v, %s; want s.Status() %v, s.Phase() %v", code, err, s.Status(), want, plan.Ended)
		}
		if err := s.Apply(s.GiveUp("late")[0]); err == nil {
			t.Error("an event after the end was accepted")
		}
	}
}

func TestEventPayloads(t *testing.T) {
	for name, e := range map[string]plan.Event{"none": {},
		"two": {Started: &plan.Started{TaskID: "t1"}, Revoked: &plan.Revoked{GrantID: "g1"}}} {
		if err := plan.NewSession().Apply(e); err == nil || e.Type() != "" {
			t.Errorf("%s: %q, %v; want an error, e.Type() empty", name, e.Type(), err)
		}
	}
}
