package chat

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/conversation"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
)

// run advances the conversation until it needs the page or an approval.
func (c *Chat) run(ctx context.Context, r Request, h *history, in loop.Prompt, emit unit.Sink) (*Reply,
	error) {
	l, v, countUsage, err := c.begin(ctx, r, h, in, emit)
	if err != nil {
		return nil, err
	}
	defer countUsage()
	for range r.agent.Limits.ModelCalls + 1 {
		conv, err := l.Conversation(ctx, r.UID, v.RunID)
		if err == nil {
			err = conv.Contents.Fit(MaxHistory)
		}
		if err != nil {
			return nil, err
		}
		h.keep(conv.Contents.JSON(), v.RunID, r.Files)
		switch {
		case conv.End != nil:
			return c.ended(r, h, conv.End)
		case len(conv.Calls) == 0:
			return nil, fault.New(fault.Tool, "out_of_time", "The request timed out. Please try again.")
		}
		answers, err := c.carryOut(ctx, r, h, conv.Calls)
		if err != nil {
			return nil, err
		}
		if pending := h.pending(); len(pending) > 0 {
			return c.reply(r.UID, h, &Reply{Type: "tool-calls", Calls: pending})
		}
		if v, err = l.AnswerAndGoOn(ctx, r.UID, v.RunID, emit, answers...); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Model, "too_many_calls",
		"The assistant reached its step limit before it could finish.")
}

// begin counts a request in the ledger and advances it, in a separate loop, until it needs the user or a time. settle
// counts the model usage of the request up to that time.
func (c *Chat) begin(ctx context.Context, r Request, h *history, in loop.Prompt,
	emit unit.Sink) (l *loop.Loop, v *run.View, countUsage func(), err error) {
	admitted, err := c.Ledger.Admit(ctx, r.UID, c.Core.UserLimits, in.Text != "", r.Locale)
	if err != nil {
		return nil, nil, nil, err
	}
	r.Locale, h.locale = admitted.Locale, admitted.Locale
	if l, err = c.loop(ctx, r, h, admitted.Usage); err != nil {
		return nil, nil, nil, err
	}
	req := loop.StartRequest{UID: r.UID, Agent: r.agent.Name, Origin: r.Origin, Locale: r.Locale, Sink: emit}
	if v, err = l.Start(ctx, req, in); err != nil {
		return nil, nil, nil, err
	}
	return l, v, func() { c.countUsage(ctx, l, r.UID, v.RunID, admitted) }, nil
}

// countUsage counts the request's model usage. A failure is only logged, because the user must still get the answer.
//
// This commit cannot be merged with the commit that admitted the request. The admission must be stored before the model
// call; otherwise concurrent requests would all see the same remaining limit and all pass. The usage is known only
// after the call. No later request can count it instead: the page keeps the history, and may never come back, or may
// send the same history twice. Counting the maximum in advance, without returning the unused part, would use up a
// user's daily limit in a few messages.
func (c *Chat) countUsage(ctx context.Context, l *loop.Loop, uid, runID string, admitted run.Admission) {
	used, err := l.Usage(ctx, uid, runID)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCountTime)
		defer cancel()
		err = admitted.Use(ctx, max(0, used.Calls-1), used.Tokens)
	}
	if err != nil {
		l.Log.WarnContext(ctx, "the model usage of a chat could not be counted", "error", err)
	}
}

// maxCountTime is the maximum time that counting a request's tokens may delay the answer.
const maxCountTime = 5 * time.Second

// loop returns a loop with a store for this request only. The store contains the user's model usage, and what leads to
// the conversation's files. An action with an effect is a call that is answered from outside, like a page's call,
// because the core decides whether it needs an approval.
func (c *Chat) loop(ctx context.Context, r Request, h *history, spent run.UserUsage) (*loop.Loop, error) {
	set := maps.Clone(r.tools)
	for name, t := range r.agent.Of(c.Core.Tools) {
		if set[name] = t; !runsHere(r.agent.Spec(t)) {
			set[name] = t.AsRemote()
		}
	}
	agent, limits := *r.agent, c.Core.UserLimits
	agent.Tools, agent.Ask = nil, nil // all tools of the set may be called
	// the request brings the history
	agent.History, agent.Compression = registry.HistoryNone, registry.Compression{}
	// these apply to the runs of effects
	agent.OnTerminal, agent.Exclusive = false, false
	agent.Limits.Contents = min(cmp.Or(agent.Limits.Contents, MaxHistory), MaxHistory)
	if present := agent.Present; present != nil {
		agent.Present = func(s registry.State) string {
			s.Page = r.PageState
			return present(s)
		}
	}
	agent.Limits.AnswerTTL = agent.Limits.Deadline // the page answers in another request, which is another run
	limits.RunsPerMinute = 0                       // the ledger has checked this limit
	user, err := strictjson.Marshal(run.User{UID: r.UID, Usage: spent})
	if err != nil {
		return nil, err
	}
	writes, err := c.fileWrites(ctx, r, h)
	if err != nil {
		return nil, err
	}
	own := memory.New(c.Core.Now)
	if _, err := own.Commit(ctx, append(writes, store.Create(document.UserPath(r.UID), nil, user))...); err != nil {
		return nil, err
	}
	l := loop.New(unit.Env{Store: own, Files: c.Core.Files, Queue: queue.None{}, Tools: set,
		Model:  verbatimModel{model.Wrapped{Model: c.Core.Model}},
		Agents: registry.Set{agent.Name: &agent}, UserLimits: limits, Recorder: c.Core.Recorder,
		Log: c.Core.Log, Now: c.Core.Now, Random: c.Core.Random})
	l.TakeBack = c.Core.TakeBack // the waiting runs are in the core
	return l, nil
}

// runsHere reports whether the tool may run at once and without a record, because it has no effect and needs no
// approval.
func runsHere(t tool.Spec) bool { return !t.SideEffect && t.Approval == tool.NotRequired }

// carryOut starts the actions with an effect, and returns the answers of those that have ended.
func (c *Chat) carryOut(ctx context.Context, r Request, h *history,
	turn []conversation.TurnCall) (answers []effect.CallAnswer, err error) {
	h.calls = make([]call, len(turn))
	if err := h.match(); err != nil {
		return nil, err
	}
	var effects []*call
	for i, asked := range turn {
		k := &h.calls[i]
		k.ID, k.action, k.askedBy = asked.Action.ID, asked.Action, asked.Model
		switch {
		case asked.Response != nil:
			k.setResponse(*asked.Response)
		case r.tools[k.action.Tool] != nil:
			k.Page = true
		default:
			effects = append(effects, k)
		}
	}
	if err := (&effectStarter{Chat: c, r: r, h: h}).startAll(ctx, effects); err != nil {
		return nil, err
	}
	for _, k := range effects {
		if k.known() {
			answers = append(answers, effect.CallAnswer{ActionID: k.ID, Result: k.Result, Error: k.Error})
		}
	}
	return answers, nil
}

// ended returns the reply for a run that has ended.
func (c *Chat) ended(r Request, h *history, end *run.End) (*Reply, error) {
	if err := c.failure(end); err != nil {
		return nil, err
	}
	return c.reply(r.UID, h, &Reply{Type: "response", Message: end.Summary, Record: end.Record, Moments: end.Moments})
}

// failure returns the error with which a run ended, or nil.
func (c *Chat) failure(end *run.End) error {
	p := end.Error
	if p == nil {
		return nil
	}
	failed := fault.New(p.Class, p.Code, "%s", p.Message)
	if p.Code == fault.CodeBudget {
		failed = failed.After(run.UntilTomorrow(c.Core.Now()))
	}
	return failed
}
