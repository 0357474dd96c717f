package countersign

import (
	"context"
	"crypto/rand"

	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/run"
)

// Session is one conversation of one user. It is safe for concurrent use; one run is moved in it at a time.
type Session struct {
	agent *Agent
	id    string
}

// NewSession returns a new session of the agent's user. It is stored by its first run.
func (a *Agent) NewSession() *Session { return &Session{agent: a, id: run.NewID(rand.Reader)} }

// ID returns the session's id, for [Agent.Resume].
func (s *Session) ID() string { return s.id }

// Send has the agent answer a prompt, and returns when the run has ended or waits. The result is there beside an error,
// too, as far as the run came.
func (s *Session) Send(ctx context.Context, prompt string) (*Result, error) {
	leave, err := s.agent.core.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	v, err := s.agent.core.loop.Start(ctx, loop.StartRequest{UID: s.agent.user, Agent: s.agent.core.name,
		Prompt: prompt, ThreadID: s.id, Title: prompt}, nil)
	if err != nil {
		return nil, public(err)
	}
	return &Result{SessionID: s.id, RunID: v.RunID, Status: Status(v.Status), Text: v.Summary}, nil
}
