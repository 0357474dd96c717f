package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/conversation"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// noQueue is the queue of a run that ends with its request.
type noQueue struct{}

func (noQueue) Resume(context.Context, string, string) error {
	return errors.New("chat: a run in memory is not resumed")
}
func (noQueue) Close() error { return nil }

// run moves the conversation as far as it goes without the page and without an approval.
func (c *Chat) run(ctx context.Context, r Request, h *history, req loop.StartRequest, emit journal.Sink) (*Reply,
	error) {
	admitted, err := c.Ledger.Admit(ctx, r.UID, c.Core.UserLimits, req.Prompt != "", r.Region)
	if err != nil {
		return nil, err
	}
	r.Region, h.region = admitted.Region, admitted.Region
	l, err := c.loop(ctx, r, admitted.Usage)
	if err != nil {
		return nil, err
	}
	req.UID, req.Agent, req.Origin, req.Region = r.UID, r.agent.Name, r.Origin, r.Region
	v, err := l.Start(ctx, req, emit)
	if err != nil {
		return nil, err
	}
	defer c.settle(ctx, l, r.UID, v.RunID, admitted)
	for range r.agent.Limits.ModelCalls + 1 {
		conv, err := l.Conversation(ctx, r.UID, v.RunID)
		switch {
		case err != nil:
			return nil, err
		case conv.End != nil:
			return c.ended(r, h, conv)
		case len(conv.Calls) == 0:
			return nil, fault.New(fault.Tool, "out_of_time", "The request timed out. Please try again.")
		}
		if err := conv.Contents.Fit(MaxHistory); err != nil {
			return nil, err
		}
		h.contents = conv.Contents.JSON()
		answers, pending, err := c.carryOut(ctx, r, h, conv)
		if err != nil {
			return nil, err
		}
		if len(pending) > 0 {
			return c.reply(r.UID, h, &Reply{Type: "tool-calls", Calls: pending})
		}
		if err := l.AnswerCalls(ctx, r.UID, v.RunID, answers...); err != nil {
			return nil, err
		}
		if v, err = l.Advance(ctx, v.RunID, emit); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Model, "too_many_calls",
		"The assistant reached its step limit before it could finish.")
}

// settle counts what the request has used of the model. A failure is only logged: the user still gets the answer.
//
// It is a commit of its own, beside the one that admitted the request, and cannot be spared. The first must be there
// before the model is called, or concurrent requests would all see the same rest of a limit and all pass. What the
// request uses is known only afterwards, and a request keeps nothing that a later one could be relied on to count: the
// history is its page's, which may never come back, or come back twice with the same one. Counting beforehand the most
// that a request may use, without ever giving the rest back, would use up a user's day in a few messages.
func (c *Chat) settle(ctx context.Context, l *loop.Loop, uid, runID string, admitted run.Admission) {
	used, err := l.Usage(ctx, uid, runID)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		err = admitted.Use(ctx, max(0, used.Calls-1), used.Tokens)
	}
	if err != nil {
		l.Log.WarnContext(ctx, "what a chat used of the model could not be counted", "error", err)
	}
}

// settleTime is how long the count of a request's tokens may delay its answer.
const settleTime = 5 * time.Second

// loop returns a loop on a store of this request alone, which holds what its user has used of the model. The core
// decides whether an action with an effect needs an approval, so here such an action is a call that is answered from
// outside, like the page's.
func (c *Chat) loop(ctx context.Context, r Request, spent run.UserUsage) (*loop.Loop, error) {
	set := maps.Clone(r.tools)
	for name, t := range r.agent.Of(c.Core.Tools) {
		if set[name] = t; !runsHere(r.agent.Spec(t)) {
			set[name] = t.AsRemote()
		}
	}
	its, limits := *r.agent, c.Core.UserLimits
	its.Tools, its.Ask = nil, nil // all of them: those of the page and the actions
	its.Limits.Contents = min(cmp.Or(its.Limits.Contents, MaxHistory), MaxHistory)
	its.Instructions = func(ctx context.Context, s agents.State) (string, error) {
		s.Page = r.PageState
		return r.agent.Instructions(ctx, s)
	}
	its.Limits.AnswerTTL = its.Limits.Deadline // the page answers in another request, and thereby in another run
	limits.RunsPerMinute = 0                   // the ledger has checked it
	user, err := strictjson.Marshal(run.User{UID: r.UID, Usage: spent})
	if err != nil {
		return nil, err
	}
	own := memory.New(c.Core.Now)
	if _, err := own.Commit(ctx, store.Create(document.UserPath(r.UID), nil, user)); err != nil {
		return nil, err
	}
	return loop.New(journal.Env{Store: own, Queue: noQueue{}, Model: verbatimModel{c.Core.Model}, Tools: set,
		Agents: agents.Set{its.Name: &its}, UserLimits: limits, Log: c.Core.Log, Now: c.Core.Now,
		Random: c.Core.Random}), nil
}

// runsHere reports whether a call of the tool may be made at once and without a record: it has no effect and needs no
// approval.
func runsHere(t tool.Spec) bool { return !t.SideEffect && t.Approval == tool.NotRequired }

// carryOut starts the actions with an effect, and returns either the answers to all open calls or what waits.
func (c *Chat) carryOut(ctx context.Context, r Request, h *history,
	conv *conversation.Conversation) (answers []effect.CallAnswer,
	pending []Pending, err error) {
	h.calls = make([]call, len(conv.Calls))
	if err := h.name(conv.Calls); err != nil {
		return nil, nil, err
	}
	var effects []*effectCall
	for i, open := range conv.Calls {
		switch k := &h.calls[i]; {
		case open.Response != nil:
			k.setResponse(*open.Response)
		case r.tools[open.Action.Tool] != nil:
			k.Page = true
		default:
			effects = append(effects, &effectCall{call: k, action: open.Action, model: open.Model})
		}
	}
	if err := (&effectStarter{c, r, h}).startAll(ctx, effects); err != nil {
		return nil, nil, err
	}
	waiting := map[*call]*loop.CallResult{}
	for _, e := range effects {
		waiting[e.call] = e.called
		if e.call.known() {
			answers = append(answers,
				effect.CallAnswer{ActionID: e.action.ID, Result: e.call.Result, Error: e.call.Error})
		}
	}
	for i := range h.calls {
		if k := &h.calls[i]; !k.known() {
			pending = append(pending, h.waiting(i, waiting[k]))
		}
	}
	return answers, pending, nil
}

// name sets an id for each call that the page may use: the model's own where those are distinct.
func (h *history) name(calls []conversation.TurnCall) error {
	taken := map[string]bool{}
	for i, c := range calls {
		id := c.Action.CallID
		if id == "" || taken[id] {
			id = fmt.Sprintf("call-%d-%d", len(h.contents), i)
		}
		taken[id] = true
		h.calls[i].ID = id
	}
	return h.match()
}

// ended returns the reply at the end of a run.
func (c *Chat) ended(r Request, h *history, conv *conversation.Conversation) (*Reply, error) {
	if p := conv.End.Error; p != nil {
		failed := fault.New(p.Class, p.Code, "%s", p.Message)
		if p.Code == fault.CodeBudget {
			failed = failed.After(run.UntilTomorrow(c.Core.Now()))
		}
		return nil, failed
	}
	if err := conv.Contents.Fit(MaxHistory); err != nil {
		return nil, err
	}
	return c.reply(r.UID, &history{memo: h.memo, region: r.Region, contents: conv.Contents.JSON()},
		&Reply{Type: "response", Message: conv.End.Summary})
}
