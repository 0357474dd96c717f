package countersign

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Session is one conversation of one user. It is safe for concurrent use, and has at most one open run.
type Session struct {
	agent *Agent
	id    string
	model string // for prompts; empty: the agent's
}

// maxPrompt is the size limit of a prompt, in bytes.
const maxPrompt = 256 << 10

// NewSession returns a new session of the agent's user. Its first run stores it.
func (a *Agent) NewSession() *Session { return &Session{agent: a, id: run.NewID(rand.Reader)} }

// Resume returns a stored session of the agent's user. The error is [ErrNoSession] if no session has the ID, and also
// if the session belongs to another user or agent, so that callers cannot distinguish these cases.
func (a *Agent) Resume(ctx context.Context, id string) (*Session, error) {
	if err := a.usable(); err != nil {
		return nil, err
	}
	s := &Session{agent: a, id: id}
	if _, _, err := s.stored(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// WithModel returns the same session with another model for the prompts that are sent with it: the agent's own, or one
// of Options.Models. Sending returns an error for any other name. A run keeps the model that it began with.
func (s *Session) WithModel(name string) *Session { return &Session{s.agent, s.id, name} }

// ID returns the session's ID, for [Agent.Resume].
func (s *Session) ID() string { return s.id }

// Send sends a prompt of at most 256 KiB, with its files, to the agent. It returns when the run has ended or waits. If
// the run had begun before an error, the result has its state. If ctx is cancelled, the call detaches from the run as
// described at [Session.SendStream]. The error is an [*OpenError] if an earlier run of the session has not ended, the
// unchanged error of Options.InstructionsFunc or Options.Approve, or an [*Error].
func (s *Session) Send(ctx context.Context, prompt string, files ...Attachment) (*Result, error) {
	return s.complete(ctx, func(ctx context.Context) (*move, error) { return s.sending(ctx, prompt, files, nil) })
}

// SendStream is [Session.Send] with a sequence of the run's events as they happen. Its last element is an error or a
// *[Finished]. If you leave the loop early or cancel ctx, the model's call stops. A running effect finishes and is
// recorded, and [Session.Continue] continues the rest. You can range over the sequence once.
func (s *Session) SendStream(ctx context.Context, prompt string, files ...Attachment) iter.Seq2[Event, error] {
	return s.stream(ctx, func(ctx context.Context) (*move, error) { return s.sending(ctx, prompt, files, nil) })
}

// Continue continues the session's run. Use it for a run that was interrupted or abandoned by its caller, in this
// process or another, or whose approvals were decided meanwhile. While another process advances the run, Continue
// waits. While this process runs a tool of the run, Continue returns an [*OpenError] at once, because a tool that calls
// it would wait for itself. For a run that has ended, it yields only its *[Finished] or its error. You can range over
// the sequence once, as with [Session.SendStream].
func (s *Session) Continue(ctx context.Context) iter.Seq2[Event, error] {
	return s.stream(ctx, s.continuing)
}

// Cancel ends the session's open run, if it has one: at once, or after the step that another call is making.
// Completed effects remain.
func (s *Session) Cancel(ctx context.Context) error {
	return s.end(ctx, func(*OpenError) bool { return true })
}

// Abandon ends the session's open run, if it has one, so that another can begin. Its waiting calls count as not done.
// The error is an [*OpenError] while a process advances the run; use [Session.Cancel] then.
func (s *Session) Abandon(ctx context.Context) error {
	return s.end(ctx, func(e *OpenError) bool { return e.Status != Running })
}

func (s *Session) end(ctx context.Context, may func(*OpenError) bool) error {
	if err := s.agent.usable(); err != nil {
		return err
	}
	t, _, err := s.stored(ctx)
	if err != nil || t.OpenRun == "" {
		return err
	}
	open, err := s.openError(ctx, t.OpenRun)
	if err != nil {
		return public(err)
	}
	if !may(open) {
		return open
	}
	_, err = s.agent.core.loop.Cancel(ctx, s.agent.user, t.OpenRun)
	return public(err)
}

// complete advances a run until it rests, and ignores its events.
func (s *Session) complete(ctx context.Context, prepare func(context.Context) (*move, error)) (*Result, error) {
	if err := s.agent.usable(); err != nil {
		return nil, err
	}
	ctx, stop := s.agent.core.bound(ctx)
	defer stop()
	m, err := prepare(ctx)
	if err != nil {
		return nil, why(ctx, err)
	}
	for {
		v, err := m.step(ctx, nil)
		if m.left(ctx, v, err) {
			return m.sofar(), m.failed(ctx, err)
		}
		r, err := m.decideOpen(ctx, v, nil)
		switch {
		case err != nil:
			return m.sofar(), why(ctx, err)
		case !r.more:
			return m.result(r)
		}
	}
}

// sending begins a run with a prompt, for an answer that is typed or text.
func (s *Session) sending(ctx context.Context, prompt string, with []Attachment, form json.RawMessage) (*move,
	error) {
	switch {
	case visible.Blank(prompt):
		return nil, fault.Invalid("prompt", "the prompt is empty")
	case len(prompt) > maxPrompt:
		return nil, fault.Invalid("prompt", "the prompt has %d bytes; the limit is %d", len(prompt), maxPrompt)
	case !utf8.ValidString(prompt):
		return nil, fault.Invalid("prompt", "the prompt is not UTF-8")
	}
	files, err := s.agent.filesOf(with)
	if err != nil {
		return nil, err
	}
	text, err := s.told(ctx)
	if err != nil {
		return nil, err
	}
	a := s.agent
	req := loop.StartRequest{UID: a.user, Agent: a.core.name, ThreadID: s.id, Title: prompt}
	in := loop.Prompt{Text: prompt, Instructions: text, Answer: form, Files: files, Model: s.model}
	m := newMove(s)
	if m.invoked, err = a.core.invoke(&in); err != nil {
		return nil, err
	}
	m.begin = func(ctx context.Context, sink unit.Sink) (*run.View, error) {
		if err := a.upload(ctx, in.Files); err != nil {
			return nil, err
		}
		req.Sink = sink
		return a.core.loop.Start(ctx, req, in)
	}
	return m, nil
}

// told returns the instructions for the session's runs. It calls Options.InstructionsFunc once.
func (s *Session) told(ctx context.Context) (string, error) {
	c := s.agent.core
	if c.options.InstructionsFunc == nil {
		return c.withSkills(c.options.Instructions), nil
	}
	t := c.texts.of(s.agent.user + "\x00" + s.id)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		text, err := c.options.InstructionsFunc(ctx, c.contextFor(s.agent.user, s.id))
		if err != nil {
			return "", programError{err}
		}
		t.text, t.known = c.withSkills(text), true
	}
	return t.text, nil
}

// texts are the results of Options.InstructionsFunc, by session.
type texts struct {
	mu  sync.Mutex
	all map[string]*text
}

// text is the result for one session.
type text struct {
	mu    sync.Mutex
	known bool
	text  string
}

// maxTexts is the number of sessions whose text is remembered. For a session beyond them, Options.InstructionsFunc is
// called again.
const maxTexts = 10_000

// of returns the entry for a session.
func (t *texts) of(session string) *text {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.all[session]; known != nil {
		return known
	}
	if t.all == nil {
		t.all = map[string]*text{}
	}
	for old := range t.all {
		if len(t.all) < maxTexts {
			break
		}
		delete(t.all, old)
	}
	t.all[session] = &text{}
	return t.all[session]
}

// continuing continues the session's last run.
func (s *Session) continuing(ctx context.Context) (*move, error) {
	t, last, err := s.stored(ctx)
	if err != nil {
		return nil, err
	}
	m := newMove(s)
	if m.runID = t.OpenRun; m.runID == "" {
		m.runID = last.ID
	}
	if m.runID != "" && s.agent.core.inTool(m.runID) { // the waiting caller may be the tool itself
		open, err := s.openError(ctx, m.runID)
		if err != nil {
			return nil, public(err)
		}
		return nil, open
	}
	m.begin = m.resume
	return m, nil
}

// stored reads the session and its last run. The error is ErrNoSession if the session belongs to another user or
// agent.
func (s *Session) stored(ctx context.Context) (t run.Thread, last run.Run, err error) {
	if !run.ValidID(s.id) {
		return t, last, ErrNoSession
	}
	st := s.agent.core.loop.Store
	d, err := document.Get(ctx, st, document.ThreadPath(s.id), &t)
	switch {
	case err != nil:
		return t, last, public(unit.StoreError(err))
	case !d.Exists() || t.UID != s.agent.user || t.Deleting:
		return t, last, ErrNoSession
	}
	if id := t.LastRun(); id != "" {
		if _, err := document.Get(ctx, st, document.RunPath(id), &last); err != nil {
			return t, last, public(unit.StoreError(err))
		}
	}
	if last.Agent != s.agent.core.name {
		return t, last, ErrNoSession
	}
	return t, last, nil
}

// SessionInfo is a session as [Agent.Sessions] lists it.
type SessionInfo struct {
	SessionID    string
	FilePath     string // of the store's database file; empty if the store has none
	StartTime    time.Time
	LastUpdated  time.Time
	MessageCount int    // the number of prompts, answers and questions
	Summary      string // the first prompt, shortened
	Status       Status // of the last run; it shows which runs a crash interrupted
}

// sessionPage is the number of sessions that are read at a time.
const sessionPage = 50

// Sessions yields the user's sessions with this agent, most recently used first.
func (a *Agent) Sessions(ctx context.Context) iter.Seq2[SessionInfo, error] {
	return func(yield func(SessionInfo, error) bool) {
		if err := a.usable(); err != nil {
			yield(SessionInfo{}, err)
			return
		}
		st := a.core.loop.Store
		for d, err := range document.All(ctx, st, document.ThreadsOf(a.user, sessionPage)) {
			var t run.Thread
			if err == nil {
				err = document.Decode(d, &t)
			}
			if err != nil {
				yield(SessionInfo{}, public(unit.StoreError(err)))
				return
			}
			info, listed, err := a.infoOf(ctx, t)
			if err != nil {
				yield(SessionInfo{}, public(err))
				return
			}
			if listed && !yield(info, nil) {
				return
			}
		}
	}
}

// infoOf returns the session's list entry, and reports whether it is this agent's session.
func (a *Agent) infoOf(ctx context.Context, t run.Thread) (info SessionInfo, listed bool, err error) {
	ex := a.core.loop.NewExecution(t.LastRun(), nil)
	if err := ex.Load(ctx); err != nil || ex.Run.Agent != a.core.name {
		return info, false, err
	}
	info = SessionInfo{SessionID: t.ID, StartTime: t.CreatedAt, LastUpdated: t.UpdatedAt,
		MessageCount: int(t.Log.Count), Summary: t.Title, Status: statusOf(ex)}
	if f, ok := a.core.options.Store.(interface{ File() string }); ok {
		info.FilePath = f.File()
	}
	return info, true, nil
}

// Approvals yields the user's waiting approvals in all their sessions with this agent, newest first.
func (a *Agent) Approvals(ctx context.Context) iter.Seq2[Approval, error] {
	return func(yield func(Approval, error) bool) {
		if err := a.usable(); err != nil {
			yield(Approval{}, err)
			return
		}
		open := document.ApprovalsOf(a.user, string(run.ApprovalOpen), sessionPage)
		for d, err := range document.All(ctx, a.core.loop.Store, open) {
			var ap run.Approval
			if err == nil {
				err = document.Decode(d, &ap)
			}
			if err != nil {
				yield(Approval{}, public(unit.StoreError(err)))
				return
			}
			if ap.Agent == a.core.name && d.ReadTime.Before(ap.ExpiresAt) && !yield(approvalOf(ap.View()), nil) {
				return
			}
		}
	}
}

// Resolve records the decision about an approval. [Session.Continue] then executes the call, in this process or
// another. Repeating the same decision changes nothing. The error is an [*Error] with one of these codes: stale_view if
// the call no longer matches its preview, already_resolved, expired, not_applicable, or denied by Options.Policy; or of
// [ClassValidation] for invalid edited arguments.
func (a *Agent) Resolve(ctx context.Context, ap Approval, d Decision) error {
	if err := a.usable(); err != nil {
		return err
	}
	err := a.resolve(ctx, ap, d)
	if f := (*fault.Error)(nil); errors.As(err, &f) || err == nil {
		return public(err)
	}
	return public(unit.StoreError(err))
}
