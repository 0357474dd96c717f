package loop

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/conversation"
	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/tool"
)

// StartRequest is a user's request to the agent.
type StartRequest struct {
	UID    string
	Agent  string   // that carries it out; empty: the assistant
	Origin string   // the web origin that it came from, or empty
	Via    *run.Via // another program's agent that asks for the user, or nil
	Prompt string
	// what the model gets before the prompt: information from the server, not the user's words
	SystemNote string
	Terminal   string                      // the user's terminal that an agent with OnTerminal works on
	ThreadID   string                      // empty: a new thread
	Title      string                      // of ThreadID, which is created if it does not exist; empty: it must exist
	Opens      bool                        // ThreadID is created if it does not exist, and called by the prompt
	Key        string                      // the Idempotency-Key, or empty
	BodyHash   string                      // of the request, compared where the key was used before
	Region     run.Region                  // of the user, as far as the client sent it
	Email      *string                     // the user's, "" for one that nobody vouches for; nil: nothing is said of it
	History    *conversation.ClientHistory // the conversation, where the client keeps it and not the store
	Until      time.Time                   // after which another process goes on with it; zero: the function's time
	Compress   bool                        // nothing is asked: what the model is told of the thread is made smaller
	Call       *Call                       // what is to be done without calling the model (StartCall)

	// The run keeps these, whoever goes on with it (run.Input).
	Instructions string            // in place of the agent's; at most 256 KiB
	Tools        []string          // that its model is offered, of those that the agent has; nil: all of them
	Barred       []string          // that its model is not offered in any case
	Answer       json.RawMessage   // JSON Schema of an object: the form of the answer (tool.Answer); nil: words
	Session      *run.Session      // of an agent that plans, and of no other
	PageTools    []run.PageTool    // beside the agent's, checked (chat.PageTools); at most 128 KiB
	PageContext  []run.PageContext // what the page says of itself: at most 100 parts, and 64 KiB
}

// MaxPrompt is the longest prompt that a client may send, in bytes (contract §1).
const MaxPrompt = 32 << 10

// maxInstructions is how long the instructions of a request may be, in bytes: they lie in the run's document.
const maxInstructions = 256 << 10

// maxPageTools is how long what a page says of its tools may be, in bytes: it lies there too.
const maxPageTools = 128 << 10

// How much a page may say of itself: it lies there too.
const (
	maxPageContext  = 64 << 10 // bytes
	maxPageContexts = 100
)

// check checks what a request brings for a run of the agent.
func (r StartRequest) check(its *agents.Agent) error {
	switch {
	case its.OnTerminal && r.Terminal == "":
		return fault.Invalid("terminalId", "the agent %s works on a terminal, and none is named", its.Name)
	case !its.OnTerminal && r.Terminal != "":
		return fault.Invalid("terminalId", "the agent %s works on no terminal", its.Name)
	case r.Terminal != "" && !run.ValidID(r.Terminal):
		return fault.Invalid("terminalId", "invalid ID")
	case its.Plans && r.Session == nil:
		return fault.Invalid("agent", "the agent %s works in sessions, which begin at /plans", its.Name)
	case !its.Plans && r.Session != nil:
		return fault.Invalid("agent", "the agent %s makes no plans", its.Name)
	}
	if len(r.Instructions) > maxInstructions {
		return fault.Invalid("instructions", "%d bytes; the limit is %d", len(r.Instructions),
			maxInstructions)
	}
	size := 0
	for _, t := range r.PageTools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if size > maxPageTools {
		return fault.Invalid("tools", "%d bytes; the limit is %d", size, maxPageTools)
	}
	size = 0
	for _, c := range r.PageContext {
		size += len(c.Description) + len(c.Value)
	}
	if len(r.PageContext) > maxPageContexts || size > maxPageContext {
		return fault.Invalid("context", "%d parts with %d bytes; the limits are %d and %d",
			len(r.PageContext), size, maxPageContexts, maxPageContext)
	}
	if r.Answer == nil {
		return nil
	}
	_, err := tool.Answer(r.Answer)
	return err
}

// Start stores a run and moves it as far as it goes alone. For a key that was used before it returns the run that the
// key started, and starts nothing. Errors before the run is stored: AuthError not_found for a thread or a terminal that
// is not the user's and for an agent that is not here, PolicyError too_many for the caps, idempotency_key_reused for a
// key with another body or of a run that was deleted, run_open or terminal_busy with a [run.OpenError] as its cause for
// a thread or a terminal that is kept for an open run, ValidationError for a terminal that is missing or not needed,
// instructions, tools or context of a page that are too long and an answer's schema that is unusable. After that,
// errors are recorded in the run.
func (l *Loop) Start(ctx context.Context, req StartRequest, emit journal.Sink) (*run.View, error) {
	id := run.NewID(l.Random)
	if req.Key != "" {
		id = run.KeyedRunID(req.UID, req.Key)
	}
	ex := l.NewExecution(id, emit)
	ex.Until = req.Until
	if err := start(ctx, ex, req); err != nil {
		return nil, err
	}
	return currentView(ctx, ex)
}

func start(ctx context.Context, ex *journal.Execution, req StartRequest) (err error) {
	defer func() { journal.EndTrace(ex, err) }()
	its := ex.Agents.Get(req.Agent)
	if its == nil {
		return fault.NotFound()
	}
	if err := req.check(its); err != nil {
		return err
	}
	threadID := req.ThreadID
	if threadID == "" {
		threadID = run.NewThreadID(ex.ID)
	}
	ex.Mark = run.NewID(ex.Random)[:13]
	if err := createRun(ctx, ex, req, threadID); err != nil {
		return err
	}
	effect.LeaveEarlier(ctx, ex)
	if st, _ := ex.Next(); st != run.StepElsewhere && ex.Run.Lease.Owner != ex.Owner {
		return nil // the key's first request moves the run, or has moved it
	}
	return moveHere(ctx, ex)
}

// moveHere moves the run as far as it goes alone, or asks for it where another function moves it.
func moveHere(ctx context.Context, ex *journal.Execution) error {
	if st, _ := ex.Next(); st == run.StepElsewhere {
		ex.Publish(ctx)
		return nil
	}
	_, err := advance(ctx, ex)
	if journal.Held(err) { // by another process, maybe since this one was stopped for longer than its lease
		return nil
	}
	return err
}
