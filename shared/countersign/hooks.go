package countersign

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Hooks are functions of the program that an agent calls around its model and its tools. Each may be nil. A hook can
// inspect, change the text that the model reads, or stop; it cannot approve a call. The arguments of a call cannot be
// changed, because a person has approved exactly them. A hook that panics counts as one that returns an error, and the
// error has the stack.
//
// An agent calls the hooks of one session one after the other, and those of several sessions at once. After a crash, a
// request or a call is made again with its hooks. The SessionContext of BeforeModel and AfterModel has no ActionID, and
// it has no RunID in the call of [Session.Send] that begins the run.
type Hooks struct {
	// BeforeModel is called before each request to the model, and can change it. An error stops the call that moves the
	// run, such as Session.Send, which returns this error. The model is not asked. Session.Continue asks again.
	BeforeModel func(ctx context.Context, s *SessionContext, r *ModelRequest) error
	// AfterModel is called with each answer before the agent uses it, and can change its text. The text then reaches a
	// stream in one piece. An error has the effect of an error of BeforeModel, and the answer is dropped.
	AfterModel func(ctx context.Context, s *SessionContext, a *ModelAnswer) error
	// BeforeTool is called when a call is about to run, after its approval if it needs one. After an error,
	// the call does not run, and the run continues: the model reads the text of a [ToolError], or that the tool
	// failed. [ToolFinished] has the error.
	BeforeTool func(ctx context.Context, s *SessionContext, c CallInfo) error
	// AfterTool is called when a call has returned, and can change the result that is stored and that the model reads.
	// An error of it takes the place of the result, and is joined to an error of the tool. An effect remains done.
	AfterTool func(ctx context.Context, s *SessionContext, c CallInfo, r *ToolResult) error
}

// ModelRequest is one request to the model. A change applies to this request alone; the session keeps the original.
type ModelRequest struct {
	Instructions    string
	Contents        []json.RawMessage // Gemini contents, oldest first; the service refuses invalid ones
	Tools           []string          // names of the tools that the model may call; some can be taken away
	Temperature     *float32          // 0 to 2; nil: the service's default
	MaxOutputTokens int               // maximum of one answer; 0: the service's maximum
}

// ModelAnswer is one answer of the model.
type ModelAnswer struct {
	Text   string // can be changed; must not be empty if there are no calls
	Calls  []CallInfo
	Usage  Usage
	Model  string // the version of the model that answered
	Finish string // STOP, or another finish reason of the service
}

// CallInfo is a call that the model requests.
type CallInfo struct {
	Tool   string
	Effect bool            // the tool comes from [DefineEffect], or a server declares that it changes something
	Args   json.RawMessage // in an answer: as the model sent them, not validated; else canonical, as approved
}

// ToolResult is the outcome of a call.
type ToolResult struct {
	Result json.RawMessage // can be changed to other JSON; nil after an error
	Err    error           // the error that the tool returned; cannot be changed
}

// hookedModel calls the hooks around the model.
type hookedModel struct {
	model.Wrapped
	core *core
}

// Generate implements [model.Model].
func (m hookedModel) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	hooks := m.core.options.Hooks
	if hooks.BeforeModel != nil {
		if err := m.before(ctx, hooks, &req); err != nil {
			return nil, err
		}
	}
	if hooks.AfterModel == nil {
		return m.Model.Generate(ctx, req, delta)
	}
	reply, err := m.Model.Generate(ctx, req, nil) // nothing may be shown before the hook has seen it
	if err != nil || reply.Correction != "" {
		return reply, err
	}
	if err := m.after(ctx, hooks, reply); err != nil {
		return nil, err
	}
	if delta != nil && reply.Text != "" {
		delta(reply.Text)
	}
	return reply, nil
}

func (m hookedModel) before(ctx context.Context, hooks Hooks, req *model.Request) error {
	r := &ModelRequest{Instructions: req.System, Contents: make([]json.RawMessage, len(req.Contents)),
		Temperature: req.Settings.Temperature, MaxOutputTokens: int(req.Settings.MaxOutputTokens)}
	for i, raw := range req.Contents {
		r.Contents[i] = slices.Clone(raw)
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	if err := tool.Guard("the hook BeforeModel", func() error {
		return hooks.BeforeModel(ctx, m.core.contextIn(ctx), r)
	}); err != nil {
		return stopMove(ctx, err)
	}
	kept := map[string]bool{req.Settings.Forced: true} // the service refuses a forced tool that it does not know
	for _, name := range r.Tools {
		kept[name] = true
	}
	var tools []tool.Spec
	for _, t := range req.Tools {
		if kept[t.Name] {
			tools = append(tools, t)
		}
	}
	req.System, req.Contents, req.Tools = r.Instructions, r.Contents, tools
	req.Settings.Temperature = r.Temperature
	req.Settings.MaxOutputTokens = int32(min(max(r.MaxOutputTokens, 0), maxOutputTokens))
	return nil
}

func (m hookedModel) after(ctx context.Context, hooks Hooks, reply *model.Reply) error {
	a := &ModelAnswer{Text: reply.Text, Usage: Usage(reply.Usage), Model: reply.Model, Finish: reply.Finish}
	for _, c := range reply.Calls {
		t := m.core.tools[c.Name]
		a.Calls = append(a.Calls, CallInfo{c.Name, t != nil && t.SideEffect, slices.Clone(c.Args)})
	}
	if err := tool.Guard("the hook AfterModel", func() error {
		return hooks.AfterModel(ctx, m.core.contextIn(ctx), a)
	}); err != nil {
		return stopMove(ctx, err)
	}
	if a.Text == reply.Text {
		return nil
	}
	content, err := model.WithText(reply.Content, a.Text)
	if err == nil && a.Text == "" && len(reply.Calls) == 0 {
		err = fault.New(fault.Model, model.CodeEmpty, "The hook AfterModel removed the whole answer.")
	}
	reply.Content, reply.Text = content, a.Text
	return err
}

// hooked returns the tool with the hooks around its calls.
func (c *core) hooked(t *tool.Tool) *tool.Tool {
	hooks := c.options.Hooks
	if hooks.BeforeTool == nil && hooks.AfterTool == nil || t.Waits() {
		return t
	}
	return t.Around(func(ctx context.Context, call tool.Call, execute tool.Execute) (json.RawMessage, error) {
		s := c.contextOf(call)
		shown := func() CallInfo { return CallInfo{t.Name, t.SideEffect, slices.Clone(call.Args)} }
		if hooks.BeforeTool != nil {
			if err := tool.Guard("the hook BeforeTool", func() error {
				return hooks.BeforeTool(ctx, s, shown())
			}); err != nil {
				return nil, hookError(err)
			}
		}
		result, err := execute(ctx, call)
		if hooks.AfterTool == nil {
			return result, err
		}
		r := &ToolResult{Result: result}
		if err != nil {
			r.Err = veryError(err)
		}
		wrong := tool.Guard("the hook AfterTool", func() error { return hooks.AfterTool(ctx, s, shown(), r) })
		switch {
		case err != nil && wrong != nil:
			return nil, &modelError{err, errors.Join(veryError(err), wrong)}
		case err != nil:
			return nil, err
		case wrong == nil && !json.Valid(r.Result):
			wrong = errors.New("the hook AfterTool left a result that is not JSON")
		}
		if wrong != nil {
			return nil, c.afterToolError(ctx, t, call, wrong)
		}
		return strictjson.Portable(r.Result), nil
	})
}

// afterToolError returns the error of AfterTool for a call that succeeded. An effect is recorded as done.
func (c *core) afterToolError(ctx context.Context, t *tool.Tool, call tool.Call, err error) error {
	if !t.SideEffect {
		return hookError(err)
	}
	noteResult(ctx, call.ActionID, err)
	return tool.Unread(err)
}

// hookError returns an error of a hook with the words that the model reads.
func hookError(err error) error {
	var said *ToolError
	if errors.As(err, &said) {
		return &modelError{fault.New(fault.Tool, "tool_error", "%s", said.Message).Because(err), err}
	}
	return &modelError{fault.New(fault.Tool, "failed", "The tool failed.").Because(err), err}
}
