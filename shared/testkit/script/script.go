// Package script provides a Model with scripted answers, for tests of its callers. It is as strict as the service: it
// checks each request by the rules of package fakegemini, and its answers have IDs and signatures that must come back
// unchanged.
package script

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Call is a function call of a Turn: a name and arguments. An empty ID is replaced by a generated one.
type Call = fakegemini.Call

// Turn is one scripted answer.
type Turn struct {
	Text       string
	Thought    string            // never shown
	Files      []fakegemini.File // pictures, after the text
	Calls      []Call
	Usage      model.Usage
	Err        error  // the answer is this error
	Correction string // the answer is this correction; Text may have been shown

	// Hook runs when the turn is requested, before the answer. It may inspect the request, look at the stored run,
	// block, or end ctx.
	Hook func(ctx context.Context, req model.Request)
}

// Model answers with its turns in order. It is safe for concurrent use.
type Model struct {
	mu       sync.Mutex
	turns    []Turn
	requests []model.Request

	name, service string
}

var _ model.Model = (*Model)(nil)

// New returns a Model with these turns.
func New(turns ...Turn) *Model { return &Model{turns: turns} }

// Then adds turns.
func (m *Model) Then(turns ...Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns = append(m.turns, turns...)
}

// Restart drops the recorded requests and the remaining turns, and continues with these turns.
func (m *Model) Restart(turns ...Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns, m.requests = turns, nil
}

// Become turns m into another model, or into a model of another service. Earlier signatures are no longer valid.
func (m *Model) Become(service, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.service, m.name = service, name
}

// Name returns "script", or the name from Become.
func (m *Model) Name() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.name, "script")
}

// Service returns the model's service, or "scripts".
func (m *Model) Service() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return cmp.Or(m.service, "scripts")
}

// Requests returns all requests, oldest first, including refused ones.
func (m *Model) Requests() []model.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Left returns the number of turns that were not requested: 0 at the end of a test that used its whole script.
func (m *Model) Left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.turns)
}

// Generate returns the next turn. A request that the service would refuse returns an error with the code refused and
// uses no turn, and so does a request after the last turn. The cause names the broken rule. A call that is dropped with
// the commit before it uses no turn.
func (m *Model) Generate(ctx context.Context, req model.Request, delta func(text string)) (*model.Reply, error) {
	if model.AwaitCommit(ctx) != nil {
		return nil, model.FromContext(ctx)
	}
	t, signer, seed, err := m.next(req)
	if err != nil {
		return nil, err
	}
	if t.Hook != nil {
		t.Hook(ctx, req)
	}
	switch {
	case ctx.Err() != nil:
		return nil, model.FromContext(ctx)
	case t.Err != nil:
		return nil, t.Err
	}
	if delta != nil {
		for _, word := range strings.SplitAfter(t.Text, " ") {
			if word != "" {
				delta(word)
			}
		}
	}
	return t.reply(signer, cmp.Or(req.Settings.Name, m.Name()), seed, req.NoTools)
}

func (m *Model) next(req model.Request) (t Turn, signer string, seed []byte, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	req.Contents = slices.Clone(req.Contents)
	m.requests = append(m.requests, req)
	if err := check(m.signer(req), req); err != nil {
		return Turn{}, "", nil, refused("The scripted model refuses the request: the service would answer 400.", err)
	}
	if len(m.turns) == 0 {
		return Turn{}, "", nil, refused("The scripted model has no turn left.", nil)
	}
	t, m.turns = m.turns[0], m.turns[1:]
	return t, m.signer(req), seedOf(req), nil
}

// signer returns the signer of the answer to the request: a default, unless a model or a service is named.
func (m *Model) signer(req model.Request) string {
	if m.service == "" && m.name == "" && req.Settings.Name == "" {
		return ""
	}
	return m.service + "/" + cmp.Or(req.Settings.Name, m.name)
}

// seedOf returns a seed that makes the IDs of a conversation's turns differ.
func seedOf(req model.Request) []byte {
	var b []byte
	for _, c := range req.Contents {
		b = append(b, c...)
	}
	return b
}

func check(signer string, req model.Request) error {
	if _, err := fakegemini.CheckBy(signer, req.Contents, fakegemini.Gemini3); err != nil {
		return err
	}
	var ds []fakegemini.Declaration
	for _, t := range req.Tools {
		ds = append(ds, fakegemini.Declaration{Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	return fakegemini.CheckDeclarations(ds)
}

func refused(message string, cause error) error {
	return fault.New(fault.Model, model.CodeRefused, "%s", message).Because(cause)
}

// reply returns what a client of Gemini would return for the turn.
func (t Turn) reply(signer, name string, seed []byte, noTools bool) (r *model.Reply, err error) {
	r = &model.Reply{Text: t.Text, Finish: "STOP", Usage: t.Usage, Model: name, Correction: t.Correction}
	if noTools && len(t.Calls) > 0 && r.Correction == "" {
		r.Finish, r.Correction = "UNEXPECTED_TOOL_CALL",
			"Your last answer called a function that may not be called now. Answer in words."
	}
	if r.Correction != "" {
		return r, nil
	}
	if t.Text == "" && len(t.Calls) == 0 && len(t.Files) == 0 {
		return nil, fault.New(fault.Model, model.CodeEmpty, "The model returned an empty answer.")
	}
	r.Content = fakegemini.Turn{Thought: t.Thought, Text: t.Text, Files: t.Files, Calls: t.Calls}.ContentBy(signer,
		seed, fakegemini.Gemini3)
	if r.Content, r.Files, err = model.TakeFiles(r.Content); err != nil {
		return nil, err
	}
	p, err := model.Parse(r.Content)
	if err != nil {
		return nil, err
	}
	r.Calls = p.Calls
	return r, nil
}
