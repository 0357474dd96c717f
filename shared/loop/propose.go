package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// Call is a call of a tool that a run consists of: no model is asked.
type Call struct {
	Tool string
	Args json.RawMessage
	Own  bool // the user makes it themselves, so nobody need be asked; what the policy denies stays denied

	Model string // that asked for it, for the record; empty for a call of the user's own
}

// Called is a run of one call as its caller sees it.
type Called struct {
	Run      *agent.RunView
	Tool     string
	Args     json.RawMessage     // canonical, as they are or would be carried out
	Approval *agent.ApprovalView // what waits for the user, or nil
	Response model.Response      // what became of the call, once the run is over
}

// Over reports whether the call has its outcome.
func (c *Called) Over() bool { return c.Run.Status == agent.Completed || c.Run.Status == agent.Failed }

// Propose stores a run of q.Call and moves it as far as it goes alone: it is judged, approved, carried out and recorded as
// a call of the model is, and survives what that survives. Errors before the run is stored: those of Start, AuthError
// not_found for a tool that is not there, ValidationError for arguments that do not fit.
func (l *Loop) Propose(ctx context.Context, q Ask) (*Called, error) {
	t := l.Tools[q.Call.Tool]
	if t == nil {
		return nil, fault.NotFound()
	}
	if _, err := t.Normalize(q.Call.Args); err != nil {
		return nil, err
	}
	id := agent.NewID(l.Random)
	if q.Key != "" {
		id = agent.KeyedRunID(q.UID, q.Key)
	}
	m := l.mover(id, nil)
	if err := m.start(ctx, q); err != nil {
		return nil, err
	}
	return m.called(ctx)
}

// Called gives a run that Propose began. The error is AuthError not_found for every other one.
func (l *Loop) Called(ctx context.Context, uid, runID string) (*Called, error) {
	m := l.mover(runID, nil)
	if err := m.loadOwn(ctx, uid); err != nil {
		return nil, err
	}
	if !m.state.Question.Direct {
		return nil, fault.NotFound()
	}
	return m.called(ctx)
}

func (m *mover) called(ctx context.Context) (*Called, error) {
	v, err := m.standing(ctx)
	if err != nil {
		return nil, err
	}
	c := &Called{Run: v}
	for _, a := range m.state.Current() {
		c.Tool, c.Args = a.Tool, a.Args
		if m.state.End != nil {
			c.Response = m.response(a)
		}
	}
	if m.state.End != nil {
		return c, nil
	}
	for _, a := range m.state.Open() {
		path := document.ApprovalPath(a.ApprovalID)
		if _, ok := m.docs[path]; !ok {
			if err := m.read(ctx, path); err != nil {
				return nil, err
			}
		}
		var ap agent.Approval
		if err := document.Decode(m.docs[path], &ap); err != nil {
			return nil, err
		}
		v := ap.View()
		c.Approval = &v
	}
	return c, nil
}

// placeOf asks where the call that the run begins with would act.
func (m *mover) placeOf(ctx context.Context, q Ask) (at place) {
	if q.Call != nil {
		at.Place, at.refusal = m.Tools[q.Call.Tool].Place(ctx, q.UID)
	}
	return at
}

// propose puts the call in the place of the model's first answer.
func (d *draft) propose(c *Call, at place) error {
	if err := d.become(agent.Planning); err != nil {
		return err
	}
	if err := d.event(agent.Event{Type: agent.ModelAnswered, Turn: &agent.Turn{Calls: 1, Model: c.Model}}); err != nil {
		return err
	}
	return d.judge(agent.Plan{Turn: 1, Tool: c.Tool, Own: c.Own}, c.Args, at)
}

// calledEnd ends a run of one call with what became of it.
func (l *Loop) calledEnd(s *agent.State) *agent.End {
	switch a := s.Current()[0]; {
	case a.Status == agent.ActionCompleted:
		return &agent.End{Status: agent.Completed, Summary: "Done."}
	case a.Status == agent.ActionRejected:
		return l.afterReject(s)
	default:
		return &agent.End{Status: agent.Failed, Summary: a.Error.Message, Error: a.Error}
	}
}
