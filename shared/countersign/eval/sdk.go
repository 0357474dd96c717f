package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/internal/bridge"
	"github.com/countersign-run/countersign/shared/tools/skill"
)

// Program is an agent of package countersign for evaluations, from [Of].
type Program struct {
	agent *countersign.Agent
	seen  Agent

	mu     sync.Mutex
	stages map[string]*Stage // by session
}

// Of returns the agent with these options for an evaluation. Its tools are never called, except those that only read
// and that [Options.Reads] names, and the case decides in place of Options.Approve. Its sessions are in memory.
func Of(o countersign.Options) (*Program, error) {
	p := &Program{stages: map[string]*Stage{}}
	p.seen = Agent{Name: cmp.Or(o.Name, "agent"), Begin: p.begin,
		Tools: map[string]bool{tool.FinalAnswer: false, skill.Activate: false, skill.ReadFile: false}}
	if o.Model != "" {
		p.seen.Name += ", " + o.Model
	}
	tools := make([]*countersign.Tool, len(o.Tools))
	for i, t := range o.Tools {
		if t != nil { // New reports it
			tools[i] = bridge.Replace(t, p.standIn).(*countersign.Tool)
		}
	}
	o.Tools, o.Store, o.DecisionKeys = tools, nil, nil
	o.Approve = func(_ context.Context, a countersign.Approval) (countersign.Decision, error) {
		s, err := p.stage(a.SessionID)
		switch {
		case err != nil:
			return countersign.Decision{}, err
		case a.Review:
			return countersign.WasDone(), nil
		case s.Approves(a.Tool):
			return countersign.Yes(), nil
		}
		return countersign.No("not now"), nil
	}
	var err error
	p.agent, err = countersign.New(o)
	return p, err
}

// Agent returns the agent for [Run].
func (p *Program) Agent() Agent { return p.seen }

// Close closes the agent.
func (p *Program) Close() error { return p.agent.Close() }

// begin is [Agent.Begin].
func (p *Program) begin(_ context.Context, s *Stage) (talk Conversation, err error) {
	if c := s.Case(); !c.Now.IsZero() || c.TimeZone != "" || c.Language != "" {
		return talk, errors.New("now, timeZone and language are for agents of a deployment; remove them from the " +
			"case, because an agent of a program has its own instructions")
	}
	session := p.agent.NewSession()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stages[session.ID()] = s
	end := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.stages, session.ID())
		return nil
	}
	return Conversation{Send: (&talkWith{session, 0}).send, Close: end}, nil
}

// stage returns the stage of a session.
func (p *Program) stage(session string) (*Stage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stages[session]
	if s == nil {
		return nil, fmt.Errorf("eval: no conversation has the session %s", session)
	}
	return s, nil
}

// standIn returns the tool as it is in an evaluation.
func (p *Program) standIn(t *tool.Tool) *tool.Tool {
	p.seen.Tools[t.Name] = t.SideEffect // New makes the tools, one after the other
	return t.StandIn(func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		s, err := p.stage(c.ThreadID)
		switch {
		case err != nil:
			return nil, err
		case s.Runs(t.Name, t.SideEffect):
			return t.Execute(ctx, c)
		}
		result, failure := s.Result(Call{t.Name, c.Args})
		if failure != "" {
			return nil, fault.New(fault.Tool, "tool_error", "%s", failure)
		}
		return result, nil
	})
}

// talkWith is a conversation with a [Program].
type talkWith struct {
	session *countersign.Session
	read    int // messages of earlier turns
}

// send is [Conversation.Send].
func (t *talkWith) send(ctx context.Context, prompt string) (answer string, calls []Call, err error) {
	res, err := t.session.Send(ctx, prompt)
	if res != nil {
		answer = res.Text
	}
	all, wrong := t.session.Messages(context.WithoutCancel(ctx))
	if errors.Is(wrong, countersign.ErrNoSession) { // the first prompt was refused
		wrong = nil
	}
	for _, m := range all[min(t.read, len(all)):] {
		for _, c := range m.Calls {
			calls = append(calls, Call{c.Name, c.Args})
		}
	}
	t.read = len(all)
	return answer, calls, errors.Join(err, wrong)
}
