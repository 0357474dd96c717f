package loop

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// StartRequest is a user's request to start a run.
type StartRequest struct {
	UID    string
	Agent  string   // name; empty: the assistant
	Origin string   // the web origin of the request, or empty
	Via    *run.Via // another program's agent that acts for the user, or nil
	Prompt string
	// SystemNote is information from the server for the model, before the prompt. It does not count as the user's
	// words.
	SystemNote string
	Waiting    []run.Message // the proposals that still wait, with History; SystemNote numbers them
	Terminal   string        // the user's terminal, for an agent with OnTerminal
	ThreadID   string        // empty: a new thread
	// Title is the title of ThreadID, which is created if it does not exist; empty: it must exist.
	Title    string
	Opens    bool                        // ThreadID is created if it does not exist, with a title from the prompt
	Key      string                      // the Idempotency-Key, or empty
	BodyHash string                      // hash of the request, compared if the key was used before
	Region   run.Region                  // the user's, as far as the client sent it
	Email    *string                     // the user's verified address; "": not verified; nil: unknown
	History  *conversation.ClientHistory // the conversation, if the client keeps it instead of the store
	Until    time.Time                   // after this time another process continues; zero: the function's time
	Compress bool                        // the run only compresses the thread
	Call     *Call                       // the call of a run without a model (StartCall)

	// The run stores the fields below, for every process that continues it (run.Input).
	Instructions string            // replace the agent's; at most 256 KiB
	Tools        []string          // the agent's tools that the model may call; nil: all
	Barred       []string          // tools that the model may never call
	Answer       json.RawMessage   // JSON Schema of an object: the typed answer (tool.Answer); nil: the answer is text
	Thoughts     bool              // the client shows the model's thoughts
	Session      *run.Session      // required for an agent that plans, nil for any other
	PageTools    []run.PageTool    // in addition to the agent's, checked by chat.PageTools; at most 128 KiB
	PageContext  []run.PageContext // what the page says about itself: at most 100 parts and 64 KiB
}

// MaxPrompt is the maximum length of a client's prompt, in bytes (contract §1).
const MaxPrompt = 32 << 10

// maxInstructions is the maximum length of a request's instructions, in bytes. They are stored in the run's document.
const maxInstructions = 256 << 10

// maxPageTools is the maximum size of a page's tool definitions, in bytes. They are stored in the run's document.
const maxPageTools = 128 << 10

// Limits of a page's context, which is stored in the run's document.
const (
	maxPageContext  = 64 << 10 // bytes
	maxPageContexts = 100
)

// check returns a ValidationError if the request does not fit the agent or exceeds a limit.
func (r StartRequest) check(its *registry.Agent) error {
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

// Start stores a run and advances it as far as it goes on its own. For a key that was used before, it returns the run
// of that key and starts nothing. These errors mean that no run was stored:
//   - AuthError not_found: the thread or the terminal is not the user's, or this process does not know the agent.
//   - PolicyError too_many: the user has too many open approvals or has reached a limit.
//   - PolicyError idempotency_key_reused: the key was used with another body, or its run was deleted.
//   - PolicyError run_open, terminal_busy: the thread or the terminal is reserved for an open run; the cause is a
//     [run.OpenError].
//   - ValidationError: the terminal is missing or not needed; instructions, page tools or page context are too long;
//     the schema of the answer is unusable.
//
// Later errors are recorded in the run.
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
		return nil // the key's first request advances the run, or has done so
	}
	return moveHere(ctx, ex)
}

// moveHere advances the run as far as it goes on its own. If another function advances it, moveHere publishes a resume.
func moveHere(ctx context.Context, ex *journal.Execution) error {
	if st, _ := ex.Next(); st == run.StepElsewhere {
		ex.Publish(ctx)
		return nil
	}
	_, err := advance(ctx, ex)
	// by another process, which may have taken over after this one paused for longer than its lease
	if journal.Held(err) {
		return nil
	}
	return err
}
