package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/actions"
	"github.com/countersign-run/countersign/shared/app/agents"
	"github.com/countersign-run/countersign/shared/app/fetch"
	"github.com/countersign-run/countersign/shared/app/gemini"
	"github.com/countersign-run/countersign/shared/app/repositories"
	"github.com/countersign-run/countersign/shared/app/servers"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/countersign"
	"github.com/countersign-run/countersign/shared/countersign/eval"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/memory"
)

// parts are the parts of a deployment that advance runs and have tools.
var parts = app.With(gemini.Part, actions.Part, tools.Part, repositories.Parts, agents.Part, fetch.Part,
	servers.Programs)

// deployment has the agents of a deployment, in this process.
type deployment struct {
	cfg     config.Config
	agent   string     // for cases that name none
	judge   eval.Judge // nil: none
	tools   map[string]bool
	own     tool.Set        // the tools of the program
	served  toolbox.Dynamic // the tools of MCP servers; nil: none
	closers []io.Closer

	mu     sync.Mutex
	apps   map[time.Time]*app.App // by the time at which they begin; zero: the present
	stages map[string]*eval.Stage // by thread
}

// open reads the settings, and opens the deployment once, to report mistakes in the settings.
func open(ctx context.Context, f flags, getenv func(string) string) (*deployment, error) {
	settings := map[string]string{}
	if f.agents != "" {
		settings["AGENTS"] = f.agents
	}
	d := &deployment{agent: f.agent, apps: map[time.Time]*app.App{},
		stages: map[string]*eval.Stage{}}
	if f.offline {
		stop, err := serveDemo(settings)
		if err != nil {
			return nil, err
		}
		d.closers = append(d.closers, stop)
	}
	cfg, err := config.Load(func(name string) string {
		if v, ok := settings[name]; ok {
			return v
		}
		return getenv(name)
	}, config.Model)
	if err != nil {
		return nil, errors.Join(noKey(err), d.Close())
	}
	cfg.Store, cfg.Queue, cfg.Hold = "embedded", "embedded", 0
	cfg.MaxRunsPerMinute, cfg.MaxModelCallsPerDay, cfg.MaxTokensPerDay = 0, 0, 0 // limits of a user
	cfg.MaxOpenApprovals, cfg.MaxApprovalsPerDay = 0, 0
	d.cfg = cfg
	if !f.offline {
		j := eval.NewJudge(countersign.Gemini(countersign.GeminiConfig{APIKey: cfg.GeminiAPIKey.Reveal(),
			BaseURL: cfg.GeminiBaseURL, VertexProject: cfg.VertexProject, VertexLocation: cfg.VertexLocation,
			VertexEndpoint: cfg.VertexEndpoint}), f.judge, cfg.GeminiModel)
		d.judge = j.Judge
		d.closers = append(d.closers, j)
	}
	a, err := d.at(ctx, time.Time{})
	d.known(ctx)
	if err == nil && a.API.Loop.Agents.Get(f.agent) == nil {
		err = fmt.Errorf("-agent is %q; the agents are %v", f.agent, a.API.Loop.Agents.Names())
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// noKey adds a hint to the error about a missing key: how to run without one.
func noKey(err error) error {
	if missing, ok := errors.AsType[config.Problems](err); ok && len(missing) == 1 &&
		missing[0].Variable == "GEMINI_API_KEY" {
		return fmt.Errorf("%w; or -offline, for the demo model", err)
	}
	return err
}

// at returns the deployment whose clock began at a time.
func (d *deployment) at(ctx context.Context, begin time.Time) (*app.App, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.apps[begin]; a != nil {
		return a, nil
	}
	now := time.Now
	if opened := time.Now(); !begin.IsZero() {
		now = func() time.Time { return begin.Add(time.Since(opened)) }
	}
	app.Embedded = func(string, func() time.Time) (store.Store, error) { return memory.New(now), nil }
	a, err := app.New(ctx, d.cfg, slog.New(slog.DiscardHandler), parts, app.WithClock(now), app.WithEnv(d.change))
	if err == nil {
		d.apps[begin] = a
		d.closers = append(d.closers, closer(a.Close))
	}
	return a, err
}

// change replaces the tools with simulated ones.
func (d *deployment) change(env *unit.Env) {
	env.Decisions = nil // a key of Cloud KMS would be asked for each decision of a case
	d.own = env.Tools
	for name, t := range env.Tools {
		env.Tools[name] = d.standIn(t)
	}
	if env.Dynamic != nil {
		env.Dynamic = served{env.Dynamic, d}
	}
	d.served = env.Dynamic
}

// waits are enough calls of Await for every MCP server to have answered or failed: one call waits 3 s, and a server has
// 10 s. Later calls return at once.
const waits = 4

// known lists the tools, after the MCP servers have answered or failed.
func (d *deployment) known(ctx context.Context) {
	d.tools = map[string]bool{tool.FinalAnswer: false, toolbox.TakeBackTool: false}
	all := maps.Clone(d.own)
	if d.served != nil {
		for range waits {
			d.served.Await(ctx)
		}
		maps.Copy(all, d.served.Tools())
	}
	for name, t := range all {
		d.tools[name] = t.SideEffect
	}
}

// served are the simulated tools of MCP servers.
type served struct {
	toolbox.Dynamic
	d *deployment
}

func (s served) Tools() tool.Set {
	all := maps.Clone(s.Dynamic.Tools())
	for name, t := range all {
		all[name] = s.d.standIn(t)
	}
	return all
}

// standIn returns the tool as it is in an evaluation.
func (d *deployment) standIn(t *tool.Tool) *tool.Tool {
	return t.StandIn(func(ctx context.Context, c tool.Call) (json.RawMessage, error) {
		d.mu.Lock()
		s := d.stages[c.ThreadID]
		d.mu.Unlock()
		switch {
		case s == nil:
			return nil, fault.New(fault.Tool, "not_run", "Not run in an evaluation.")
		case s.Runs(t.Name, t.SideEffect):
			return t.Execute(ctx, c)
		}
		result, failure := s.Result(eval.Call{Tool: t.Name, Args: c.Args})
		if failure != "" {
			return nil, fault.New(fault.Tool, "tool_error", "%s", failure)
		}
		return result, nil
	})
}

// evaluated returns the deployment as [eval.Run] sees it.
func (d *deployment) evaluated() eval.Agent {
	return eval.Agent{Name: d.agent + ", " + d.cfg.GeminiModel, Tools: d.tools, Begin: d.begin}
}

// Close closes everything in reverse order.
func (d *deployment) Close() error {
	var failed []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		failed = append(failed, d.closers[i].Close())
	}
	return errors.Join(failed...)
}

type closer func() error

func (c closer) Close() error { return c() }

// begin is [eval.Agent.Begin].
func (d *deployment) begin(ctx context.Context, s *eval.Stage) (none eval.Conversation, err error) {
	a, err := d.at(ctx, s.Case().Now)
	if err != nil {
		return none, err
	}
	name := cmp.Or(s.Case().Agent, d.agent)
	agent := a.API.Loop.Agents.Get(name)
	switch {
	case agent == nil:
		return none, fmt.Errorf("agent: there is no agent %s; the agents are %v", name, a.API.Loop.Agents.Names())
	case agent.History == registry.HistoryNone || agent.Plans || agent.OnTerminal:
		return none, fmt.Errorf("agent: %s works with a web page, a terminal or a plan; an evaluation has only prompts",
			name)
	}
	t := &talk{d: d, loop: a.API.Loop, agent: name, thread: run.NewID(rand.Reader), stage: s}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stages[t.thread] = s
	return eval.Conversation{Send: t.send, Close: t.close}, nil
}

// talk is a conversation with an agent. Each conversation has its own user, who is named like the thread.
type talk struct {
	d      *deployment
	loop   *loop.Loop
	agent  string
	thread string
	stage  *eval.Stage
}

// close is [eval.Conversation.Close].
func (t *talk) close() error {
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	delete(t.d.stages, t.thread)
	return nil
}

// maxMoves limits how often a run can continue after decisions.
const maxMoves = 100

// send is [eval.Conversation.Send].
func (t *talk) send(ctx context.Context, prompt string) (answer string, calls []eval.Call, err error) {
	c := t.stage.Case()
	v, err := t.loop.Start(ctx, loop.StartRequest{UID: t.thread, Agent: t.agent, ThreadID: t.thread, Opens: true,
		Title: prompt, Locale: run.Locale{TimeZone: c.TimeZone, Language: c.Language}}, loop.Prompt{Text: prompt})
	if err != nil {
		return "", nil, err
	}
	id, rejected := v.RunID, false
	for range maxMoves {
		if v, _, err = t.loop.Get(ctx, t.thread, id); err != nil || len(v.Waiting) == 0 {
			break
		}
		for _, ap := range v.Waiting {
			yes := t.stage.Approves(ap.Tool)
			rejected = rejected || !yes
			if err = t.decide(ctx, ap, yes); err != nil {
				break
			}
		}
		if err == nil {
			_, err = t.loop.Advance(ctx, id, nil)
		}
		if err != nil && !unit.Held(err) {
			break
		}
	}
	calls, wrong := t.calls(context.WithoutCancel(ctx), id)
	if err = errors.Join(err, wrong); err != nil {
		return "", calls, err
	}
	return outcome(v, rejected, calls)
}

// outcome returns the run's answer. A run that failed because the user rejected a call has ended as it should.
func outcome(v *run.View, rejected bool, calls []eval.Call) (string, []eval.Call, error) {
	switch {
	case v.Status == run.Completed && v.Text() != "":
		return v.Text(), calls, nil
	case v.Status == run.Completed, v.Status == run.Failed && rejected:
		return v.Summary, calls, nil
	case v.Status == run.Failed:
		return v.LastWords(), calls, fmt.Errorf("%s %s: %s", v.ErrorCode, v.ErrorReason, v.Message)
	}
	return v.LastWords(), calls, fmt.Errorf("the run has not ended; its status is %s", v.Status)
}

// decide answers a card.
func (t *talk) decide(ctx context.Context, ap run.ApprovalView, yes bool) error {
	d := run.Reject
	switch {
	case ap.Kind == run.KindReview:
		d = run.ConfirmDone
	case yes:
		d = run.ApproveOnce
	}
	_, err := t.loop.Resolve(ctx, approval.Resolution{UID: t.thread, ApprovalID: ap.ApprovalID, Decision: d})
	return err
}

// calls returns the calls of the run's model.
func (t *talk) calls(ctx context.Context, id string) (all []eval.Call, err error) {
	ex := t.loop.NewExecution(id, nil)
	if err := ex.LoadOwned(ctx, t.thread); err != nil {
		return nil, err
	}
	for _, turn := range ex.State.Turns {
		said, err := model.Parse(turn.Content)
		if err != nil {
			return all, err
		}
		for _, c := range said.Calls {
			all = append(all, eval.Call{Tool: c.Name, Args: c.Args})
		}
	}
	return all, nil
}
