package loop

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// request builds the request to the model that the run asks next.
func request(ctx context.Context, ex *unit.Execution) (model.Request, error) {
	return requestTo(ctx, ex, conversation.PresentModel(ex))
}

// requestTo builds the request to the named model: instructions, tools, settings, history, prompt, and this run's own
// turns. A forced tool is forced only once, so that the model can then answer with its result.
func requestTo(ctx context.Context, ex *unit.Execution, name string) (model.Request, error) {
	agent := ex.Agents.Get(ex.Run.Agent)
	contents, recorded, err := conversation.Contents(ctx, ex, name, present(ex, agent))
	if err != nil {
		return model.Request{}, err
	}
	if n := agent.Limits.Contents; n > 0 {
		if err := contents.Fit(n); err != nil {
			return model.Request{}, err
		}
	}
	if err := conversation.ReadFiles(ctx, ex, contents.JSON()); err != nil {
		return model.Request{}, unit.StoreError(err)
	}
	system, err := instructions(ctx, ex, agent, recorded)
	if err != nil {
		return model.Request{}, fault.As(err)
	}
	req := model.Request{System: system, Contents: contents.JSON(), Tools: ex.Toolbox.Offered(ex.Run, ex.State)}
	if ex.State.Plan != nil {
		req.Settings = sessionSettings(ex, agent)
	} else {
		req.Settings, req.NoTools = settings(ex.State, agent, req.Tools)
		req.Settings.Thoughts = ex.State.Input.Thoughts || agent.Model.Thoughts
	}
	req.Settings.Name = name
	return req, nil
}

// settings returns the model settings for the next turn. In the last turn the model must not call a tool; in a run with
// a typed answer it must call the tool that takes the answer.
func settings(s *run.State, agent *registry.Agent, offered []tool.Spec) (set model.Settings, noTools bool) {
	set = agent.Model
	turn, most := len(s.Turns)+1, agent.Limits.ModelCalls
	missing := func(name string) bool {
		return !slices.ContainsFunc(offered, func(t tool.Spec) bool { return t.Name == name })
	}
	if set.Forced != "" && (turn > 1 || missing(set.Forced)) {
		set.Forced = ""
	}
	if s.Input.Answer == nil {
		set.Allowed = slices.DeleteFunc(slices.Clone(set.Allowed), missing)
		return set, turn >= most && most > 1
	}
	if len(set.Allowed) > 0 {
		set.Allowed = slices.DeleteFunc(append(slices.Clone(set.Allowed), tool.FinalAnswer), missing)
	}
	if turn >= most || s.InWords() > 1 {
		set.Forced = tool.FinalAnswer
	}
	return set, false
}

// instructions returns the run's own instructions or else the agent's, and an explanation of the records in the history
// if there are any. It uses the time of the run, so that every turn gets the same text.
func instructions(ctx context.Context, ex *unit.Execution, agent *registry.Agent, recorded bool) (s string,
	err error) {
	if s = ex.State.Input.Instructions; s == "" {
		s, err = agent.Instructions(ctx, stateOf(ex))
	}
	if ex.State.Plan != nil {
		if agent.Present != nil {
			s = strings.TrimSpace(s) + "\n\n" + agent.Present(stateOf(ex))
		}
		phase, wrong := conversation.SessionInstructions(ex)
		return strings.TrimSpace(s + "\n\n" + phase), cmp.Or(err, wrong)
	}
	if recorded {
		s += conversation.RecordInstructions(ex.State.Input.Mark)
	}
	return s, err
}

// present returns the text that the model reads behind the history: the agent's text of the present, the user's notes,
// and the page's context. It is the same for every turn of the run.
func present(ex *unit.Execution, agent *registry.Agent) string {
	text := ""
	if ex.State.Plan == nil && agent.Present != nil {
		text = agent.Present(stateOf(ex))
	}
	in := ex.State.Input
	return strings.TrimSpace(text + conversation.Notes(in.Notes) + conversation.PageContext(in.PageContext))
}

// stateOf returns what instructions can depend on.
func stateOf(ex *unit.Execution) registry.State {
	return registry.State{CreatedAt: ex.Run.CreatedAt, Locale: ex.Run.Locale, Preferences: ex.State.Input.Preferences}
}
