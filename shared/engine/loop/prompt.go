package loop

import (
	"context"
	"encoding/json"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Prompt is the [Input] of a run in which the model answers the user.
type Prompt struct {
	Text     string
	Terminal string      // the user's terminal, for an agent with OnTerminal
	Client   *ClientSide // set if the client keeps the conversation instead of the store

	// The run stores the fields below, for every process that continues it (run.Input).
	Instructions string            // replace the agent's; at most 256 KiB
	Tools        []string          // the agent's tools that the model may call; nil: all
	Barred       []string          // tools that the model may never call
	Answer       json.RawMessage   // JSON Schema of an object: the typed answer (tool.Answer); nil: the answer is text
	Model        string            // the model to ask, among those that the operator offers; empty: the agent's
	Thoughts     bool              // the client shows the model's thoughts
	Files        []attachment.File // types checked by the caller
	PageTools    []run.PageTool    // in addition to the agent's, checked by chat.PageTools; at most 128 KiB
	PageContext  []run.PageContext // what the page says about itself: at most 100 parts and 64 KiB
}

// ClientSide is a conversation that the client keeps.
type ClientSide struct {
	History conversation.ClientHistory
	// SystemNote is information from the server for the model, before the prompt. It does not count as the user's
	// words.
	SystemNote string
	Waiting    []run.Message // the proposals that still wait; SystemNote numbers them
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

func (p Prompt) check(_ context.Context, ex *unit.Execution, agent *registry.Agent) error {
	if err := checkTerminal(agent, p.Terminal); err != nil {
		return err
	}
	if err := checkNoSession(agent); err != nil {
		return err
	}
	if p.Model != "" {
		if err := ex.CheckModel(agent, p.Model); err != nil {
			return err
		}
	}
	if len(p.Instructions) > maxInstructions {
		return fault.Invalid("instructions", "%d bytes; the limit is %d", len(p.Instructions),
			maxInstructions)
	}
	if err := attachment.CheckSizes("files", attachment.FactsOf(attachment.Describe(p.Files))); err != nil {
		return err
	}
	size := 0
	for _, t := range p.PageTools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if size > maxPageTools {
		return fault.Invalid("tools", "%d bytes; the limit is %d", size, maxPageTools)
	}
	size = 0
	for _, c := range p.PageContext {
		size += len(c.Description) + len(c.Value)
	}
	if len(p.PageContext) > maxPageContexts || size > maxPageContext {
		return fault.Invalid("context", "%d parts with %d bytes; the limits are %d and %d",
			len(p.PageContext), size, maxPageContexts, maxPageContext)
	}
	if p.Answer == nil {
		return nil
	}
	if _, err := tool.Answer(p.Answer); err != nil {
		return fault.Within("responseSchema", err)
	}
	return nil
}

func (p Prompt) needs(ex *unit.Execution, req StartRequest) needs {
	scope := tool.Scope{UID: req.UID, Terminal: p.Terminal}
	paths := ex.LinkedPaths(scope, req.Agent)
	if remembers(ex, req.Agent, run.Input{}) {
		paths = addPath(paths, document.NotesPath(req.UID))
	}
	paths = append(paths, uploadPaths(p.Files)...)
	return needs{message: p.Text, terminal: p.Terminal, paths: paths}
}

func (p Prompt) stored(tx *unit.Tx) *run.Input {
	if p.Answer == nil {
		p.Answer = tx.Ex.Agents.Get(tx.Run.Agent).ResponseSchema
	}
	input := &run.Input{Prompt: p.Text, Instructions: p.Instructions, Tools: p.Tools, Barred: p.Barred,
		PageTools: p.PageTools, PageContext: p.PageContext, Answer: p.Answer, Model: p.Model,
		Thoughts: p.Thoughts}
	input.FilesBefore = tx.Thread.Files
	if p.Client == nil {
		return seeThread(tx, input)
	}
	input.SystemNote, input.Waiting = p.Client.SystemNote, p.Client.Waiting
	input.Contents, input.FilesBefore = p.Client.History.Contents, p.Client.History.Files
	return input
}

func (p Prompt) begin(_ context.Context, tx *unit.Tx, _ approval.Places) error {
	if p.Client != nil {
		return conversation.Restore(tx, &p.Client.History)
	}
	leaveEarlier(tx)
	return nil
}
