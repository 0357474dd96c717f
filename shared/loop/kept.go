package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// Kept is a conversation that the caller keeps: a run is begun from it on a store that knows nothing, and goes on as if it
// had never stopped. The caller answers for its being what Conversation gave.
type Kept struct {
	Earlier []json.RawMessage // up to the user's last words, or all of it where Ask.Prompt brings new ones
	Turns   []KeptTurn        // the model's answers since
}

// KeptTurn is one answer of the model and what is known of its calls.
type KeptTurn struct {
	Content   json.RawMessage
	Responses []*model.Response // one for each call, in order; nil where it waits
}

// Conversation is a run in the form of Kept.
type Conversation struct {
	Contents *model.Contents // verbatim; where calls wait, the last content is the model's that asks for them
	Calls    []OpenCall      // of that content, all of them; nil where nothing waits
	End      *agent.End      // nil while something waits
}

// OpenCall is a call of a turn of which at least one waits.
type OpenCall struct {
	Action   *agent.Action
	Response *model.Response // nil where it waits
	Model    string          // that asks for it
}

// Conversation gives the user's run in a form that can be kept.
func (l *Loop) Conversation(ctx context.Context, uid, runID string) (*Conversation, error) {
	m := l.mover(runID, nil)
	if err := m.loadOwn(ctx, uid); err != nil {
		return nil, err
	}
	contents, err := m.contents()
	if err != nil {
		return nil, err
	}
	c := &Conversation{Contents: contents, End: m.state.End}
	if c.End != nil || len(m.state.Open()) == 0 {
		return c, nil
	}
	responses := m.responses(len(m.state.Turns))
	for i, a := range m.state.Current() {
		call := OpenCall{Action: a, Model: m.state.Turns[a.Turn-1].Model}
		if a.Over() {
			call.Response = &responses[i]
		}
		c.Calls = append(c.Calls, call)
	}
	return c, nil
}

// Answer is what somebody else says became of a call that waits for them (agent.KindCall).
type Answer struct {
	ActionID string
	Result   json.RawMessage // where it was done
	Error    string          // where it was not; a sentence for the model
}

// Answers records what became of waiting calls, and runs nothing. Errors: AuthError not_found; PolicyError
// already_resolved where one does not wait, and then nothing is recorded.
func (l *Loop) Answers(ctx context.Context, uid, runID string, answers ...Answer) error {
	m := l.mover(runID, nil)
	if err := m.loadOwn(ctx, uid); err != nil {
		return err
	}
	return m.transition(ctx, func(d *draft) error {
		d.keepLease = true
		for _, given := range answers {
			a := d.state.Action(given.ActionID)
			if a == nil || !a.Waiting() || a.Kind != agent.KindCall {
				return fault.New(fault.Policy, fault.CodeAlreadyResolved, "The run does not wait for this.")
			}
			if err := d.event(agent.Event{Type: agent.ActionFinished, ActionID: a.ID, Finished: given.finished()}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a Answer) finished() *agent.Finished {
	if a.Error != "" {
		f := refusal(fault.New(fault.Tool, "failed", "%s", a.Error))
		return &f
	}
	f := success(a.Result)
	return &f
}

// await leaves a call to whoever answers it.
func (m *mover) await(ctx context.Context, id string) error {
	return m.transition(ctx, func(d *draft) error {
		if a := d.state.Action(id); !a.Runnable() || d.run.Lease.Held(m.owner, d.now) {
			return nil
		}
		return d.await(id)
	})
}

func (d *draft) await(id string) error {
	return d.event(agent.Event{Type: agent.ActionWaits, ActionID: id, Wait: &agent.Wait{Kind: agent.KindCall, ExpiresAt: d.run.Deadline}})
}

// restore takes a kept conversation over as the run's own events.
func (d *draft) restore(k *Kept) error {
	if len(k.Turns) == 0 {
		return nil
	}
	if err := d.become(agent.Planning); err != nil {
		return err
	}
	for _, t := range k.Turns {
		if err := d.restoreTurn(t); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) restoreTurn(t KeptTurn) error {
	said, err := model.Parse(t.Content)
	if err != nil {
		return err
	}
	turn := &agent.Turn{Model: d.m.Model.Name(), Content: t.Content, Text: said.Text, Calls: len(said.Calls)}
	if err := d.event(agent.Event{Type: agent.ModelAnswered, Turn: turn}); err != nil {
		return err
	}
	for i, c := range said.Calls {
		id := agent.ActionID(d.run.ID, len(d.state.Turns), i, 0)
		plan := &agent.Plan{Turn: len(d.state.Turns), Index: i, CallID: c.ID, Tool: shown(c.Name), Args: c.Args}
		if known := d.m.Tools[c.Name]; known != nil {
			plan.SideEffect = known.SideEffect
		}
		if err := d.event(agent.Event{Type: agent.ActionPlan, ActionID: id, Plan: plan}); err != nil {
			return err
		}
		if t.Responses[i] == nil {
			err = d.await(id)
		} else {
			err = d.event(agent.Event{Type: agent.ActionFinished, ActionID: id, Finished: Answer{Result: t.Responses[i].Result, Error: t.Responses[i].Error}.finished()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
