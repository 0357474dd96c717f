package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// trialed is an env whose commits and effects are checked by a witness, and whose processes can be killed and stopped.
type trialed struct {
	*env
	ctx     context.Context
	witness *witness
	past    []string // all messages that were ever published
	drafts  map[string]*madeDraft
	machine *machine
	revoked bool // the user has withdrawn the account's permission
	links   int  // the number of accounts linked so far, one after the other; the last is the one linked now
	stopped []*process
	random  *randReader
}

// madeDraft is a draft at the provider of the tool with a handle.
type madeDraft struct {
	action, text string
	gone, sent   bool
}

// clerk is the agent whose calls run in strict order.
const clerk = "clerk"

// maker is the exclusive agent whose calls run in sequence. Half of its answers have a form.
const maker = "maker"

// modelAgents are the agents of the random histories.
var modelAgents = []string{run.Assistant, clerk, maker}

func newTrialed(t testing.TB, w *env) *trialed {
	m := &trialed{env: w, ctx: context.Background(), witness: newWitness(w.store),
		random: &randReader{r: rand.New(rand.NewSource(1))}}
	w.store, w.rec = m.witness, &records.Records{Store: m.witness, Now: w.clock}
	w.loop.Store, w.loop.Queue, w.loop.Random = m.witness, m, m.random
	w.assistant().Limits.MaxOpen = 4
	w.loop.Agents[clerk] = testAgent(clerk, "You are a clerk.")
	w.loop.Agents[clerk].Limits.MaxOpen, w.loop.Agents[clerk].Order = 4, registry.Strict
	w.loop.Agents[maker] = testAgent(maker, "You are a maker.")
	w.loop.Agents[maker].Limits.MaxOpen, w.loop.Agents[maker].Order = 4, registry.Sequential
	w.loop.Agents[maker].Exclusive, w.loop.Agents[maker].OnReject = true, registry.RejectContinues
	for _, name := range modelAgents { // no lease is renewed beside a process that stands still
		w.loop.Agents[name].Limits.LongestTool = w.loop.Agents[name].Limits.ToolTimeout
	}
	denied, err := address.ParsePatterns("denied.org")
	if err != nil {
		t.Fatal(err)
	}
	w.loop.Rules.Denied = denied
	w.loop.Tools = tool.NewSet(tool.Define(m.sendDef()), tool.Define(m.draftDef()), w.lookup(), remote(t), sign(t),
		tool.Define(m.commandDef()))
	w.account = func() (tool.Place, error) {
		if m.revoked {
			return tool.Place{}, fault.New(fault.Auth, fault.CodeReauth, "Please link your account again.")
		}
		return m.linked(), nil
	}
	limits := w.assistant().Limits
	m.witness.world = m
	m.witness.tools, m.witness.max = w.loop.Tools, loopBounds{limits.ModelCalls, limits.MaxOpen}
	return m
}

// linked returns the account that is linked at present.
func (m *trialed) linked() tool.Place {
	return tool.Place{Label: "From", Name: fmt.Sprintf("ana%d@example.com", m.links), ID: fmt.Sprint(m.links)}
}

// begin empties the env for a new sequence, which starts on the morning of a later day.
func (m *trialed) begin() error {
	if err := m.witness.wipe(m.ctx); err != nil {
		return err
	}
	m.shards.Clear()
	m.queue, m.past, m.stopped, m.drafts, m.revoked = nil, nil, nil, map[string]*madeDraft{}, false
	m.effects, m.next, m.settle, m.machine = nil, nil, nil, newMachine()
	m.model = script.New()
	m.now = m.moment() // the emulator's clock runs while the test's stands still, and the sweep uses the test's
	m.tick(m.now.Truncate(24 * time.Hour).Add(33 * time.Hour).Sub(m.now))
	return m.setMachine(machineDoc{})
}

// moment returns the store's time.
func (m *trialed) moment() time.Time {
	docs, err := m.store.Get(m.ctx, document.UserPath(ana))
	if err != nil {
		return m.clock()
	}
	return docs[0].ReadTime
}

// Resume queues a message. The change that it is about must have been committed before.
func (m *trialed) Resume(ctx context.Context, msg queue.Message) error {
	m.past = append(m.past, msg.RunID)
	if p := processOf(ctx); p != nil && p.decides != "" {
		m.witness.published(p.decides)
	}
	return m.env.Resume(ctx, msg)
}

// sentAs is the text that the provider receives for a call.
func sentAs(args json.RawMessage) string { return string(args) }

// sendDef is the env's tool without a handle. It may find that it acted, but never that it did not.
func (m *trialed) sendDef() tool.Def[sendArgs, sendResult] {
	d := m.env.sendDef("send")
	d.Execute = func(ctx context.Context, c tool.Call, in sendArgs) (sendResult, error) {
		return m.act(ctx, "send", c, in, sentAs(c.Args))
	}
	d.Reconcile = func(_ context.Context, c tool.Call, _ sendArgs) (tool.Verdict, sendResult, string, error) {
		switch m.answers() {
		case "down":
			return "", sendResult{}, "", errors.New("down")
		case "done":
			if len(m.witness.effects[c.ActionID]) > 0 {
				return tool.Done, sendResult{ID: c.ActionID[:6]}, "", nil
			}
		}
		return tool.Unknown, sendResult{}, "The provider keeps no record.", nil
	}
	return d
}

// draftDef is a tool whose handle the provider uses up, as for an e-mail draft. Its user may edit or delete the draft.
func (m *trialed) draftDef() tool.Def[sendArgs, sendResult] {
	d := m.env.sendDef("draft")
	d.Prepare = func(_ context.Context, c tool.Call, _ sendArgs) (string, error) {
		if err := tool.SamePlace(c.Place, m.linked()); err != nil {
			return "", err
		}
		h := fmt.Sprintf("h%d", len(m.drafts)+1)
		m.drafts[h] = &madeDraft{action: c.ActionID, text: sentAs(c.Args)}
		return h, nil
	}
	d.Execute = func(ctx context.Context, c tool.Call, in sendArgs) (sendResult, error) {
		processOf(ctx).beforeEffect()
		made := m.drafts[c.Handle]
		switch {
		case made == nil || made.gone || made.sent:
			return sendResult{}, tool.Ambiguous(errors.New("the draft is not there"))
		case made.text != sentAs(c.Args):
			return sendResult{}, fault.New(fault.Policy, fault.CodeIntegrity,
				"The draft was changed, so it was not sent.")
		}
		return m.act(ctx, "draft", c, in, made.text)
	}
	d.Reconcile = func(_ context.Context, c tool.Call, _ sendArgs) (tool.Verdict, sendResult, string, error) {
		made := m.drafts[c.Handle]
		switch {
		case c.Place != m.linked():
			return tool.Unknown, sendResult{}, "Another account is linked by now.", nil
		case m.answers() == "down":
			return "", sendResult{}, "", errors.New("down")
		case made != nil && made.sent:
			return tool.Done, sendResult{ID: c.ActionID[:6]}, "", nil
		case made == nil || made.gone:
			return tool.Unknown, sendResult{}, "The draft is gone.", nil
		}
		return tool.NotDone, sendResult{}, "", nil
	}
	return d
}

// answers returns the provider's answer to a reconcile.
func (m *trialed) answers() string {
	if len(m.settle) == 0 {
		return ""
	}
	s := m.settle[0]
	m.settle = m.settle[1:]
	return s
}

// act is the provider. The process may die before its answer.
func (m *trialed) act(ctx context.Context, name string, c tool.Call, in sendArgs, text string) (sendResult, error) {
	p := processOf(ctx)
	p.beforeEffect()
	if err := tool.SamePlace(c.Place, m.linked()); err != nil {
		return sendResult{}, err
	}
	before := len(m.effects)
	out, err := m.effect(c, in)
	if len(m.effects) > before {
		m.witness.did(c, name, text)
		if made := m.drafts[c.Handle]; made != nil {
			made.sent = true
		}
		p.afterEffect()
	}
	return out, err
}

// Generate is the scripted model, which also answers after the end of the script. It must not be called for a run whose
// last answer was not handled. It waits for the commit before it, so that only one goroutine runs at any time.
func (m *trialed) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if model.AwaitCommit(ctx) != nil {
		return nil, model.FromContext(ctx)
	}
	m.witness.asked(processOf(ctx).runID)
	if m.model.Left() == 0 {
		m.model.Then(script.Turn{Text: "Done."})
	}
	reply, err := m.model.Generate(ctx, req, delta)
	if fault.Is(err, fault.Model, model.CodeRefused) {
		m.witness.broken(invariants.OneAnswer, "a request that the service would refuse: %v", errors.Unwrap(err))
	}
	return reply, err
}

// Name is the script's.
func (m *trialed) Name() string { return m.model.Name() }

// mishap is what happens to a process at its n-th commit, or at its effect.
type mishap string

const (
	noMishap      mishap = ""
	diesBefore    mishap = "dies before the commit"
	diesAfter     mishap = "dies after the commit"
	losesAnswer   mishap = "does not hear of its commit"
	losesCommit   mishap = "cannot reach the store"
	stopsBefore   mishap = "is stopped before the commit"
	diesAtEffect  mishap = "dies after the effect"
	stopsAtEffect mishap = "is stopped before the effect"
)

// process is one invocation of a function. It runs on a goroutine of its own, so that it can be stopped and abandoned.
// Only one process runs at any time, so a sequence is the same each time it is played.
type process struct {
	m        *trialed
	runID    string // if it is known in advance
	decides  string // the approval that the process decides
	starts   bool   // the process starts a run with a key
	mishap   mishap
	left     int       // commits until the mishap
	stops    chan bool // to the test: true when the process is stopped, false when it is over
	goes     chan bool // from the test: true to continue, false to die
	panicked any       // the value of a panic that the test did not cause
	outcome  func(v *run.View, err error)
	wasLate  bool // the process was stopped once, so its clock stood still
}

type processKey struct{}

func processOf(ctx context.Context) *process {
	p, _ := ctx.Value(processKey{}).(*process)
	return p
}

// life is the way in which a process is started.
type life struct {
	runID, decides string
	starts         bool
	mishap         mishap
	at             int // the commit
	skew           time.Duration
	outcome        func(v *run.View, err error) // receives the result of a process that did not die
}

// run starts a process and waits until it is over, dead or stopped. It reports whether the process reached its end.
func (m *trialed) run(l life, f func(context.Context, *loop.Loop) (*run.View, error)) (over bool) {
	p := &process{m: m, runID: l.runID, decides: l.decides, starts: l.starts, mishap: l.mishap,
		left: l.at, stops: make(chan bool), goes: make(chan bool), outcome: l.outcome}
	dying := *m.loop
	dying.Store, dying.Model = faulty.Wrap(m.witness, unwatched, faulty.Commits(p.commit)), m
	dying.Now = func() time.Time { return m.clock().Add(l.skew) }
	finished := false
	go func() {
		defer func() { p.stops <- false }()
		defer func() {
			if r := recover(); r != nil && r != (faulty.Killed{}) {
				p.panicked = r
			}
		}()
		v, err := f(context.WithValue(m.ctx, processKey{}, p), &dying)
		finished = true
		p.hear(v, err)
	}()
	return p.wait() && finished
}

// hear checks the result. No user may see an internal error.
func (p *process) hear(v *run.View, err error) {
	if err != nil && fault.As(err).Code == fault.CodeInternal {
		p.m.witness.broken(invariants.LegalEdges, "run %s: %v", p.runID, err)
	}
	if p.outcome != nil {
		p.outcome(v, err)
	}
}

// wait lets the process run until it is over (true) or stopped.
func (p *process) wait() bool {
	if <-p.stops {
		p.m.stopped = append(p.m.stopped, p)
		return false
	}
	if p.panicked != nil {
		panic(p.panicked)
	}
	return true
}

// release lets a stopped process continue, or ends it.
func (m *trialed) release(i int, lives bool) {
	p := m.stopped[i]
	m.stopped = append(m.stopped[:i:i], m.stopped[i+1:]...)
	p.wasLate = true
	p.goes <- lives
	p.wait()
}

func (p *process) stop() {
	p.mishap = noMishap
	p.stops <- true
	if !<-p.goes {
		runtime.Goexit() // a panic within a tool would be caught
	}
}

// commit is the hook of the process's commits, with its mishap.
func (p *process) commit(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	if ofOutput(c) {
		return next(ctx)
	}
	p.left--
	now := p.mishap
	if p.left != 0 {
		now = noMishap
	}
	switch now {
	case diesBefore:
		return faulty.KillBefore(ctx, c, next)
	case losesCommit:
		return faulty.Down(ctx, c, next)
	case stopsBefore:
		p.stop()
	}
	p.m.witness.late = p.wasLate
	err := next(ctx)
	p.m.witness.late = false
	switch {
	case now == diesAfter:
		panic(faulty.Killed{})
	case now == losesAnswer && err == nil:
		return store.ErrUnavailable
	}
	return err
}

func (p *process) beforeEffect() {
	if p.mishap == stopsAtEffect {
		p.stop()
	}
}

func (p *process) afterEffect() {
	if p.mishap == diesAtEffect {
		runtime.Goexit()
	}
}

// advance delivers a message, and reports whether it was acknowledged.
func (m *trialed) advance(l life) (acknowledged bool) {
	l.outcome = func(_ *run.View, err error) {
		acknowledged = err == nil || fault.Is(err, fault.Auth, fault.CodeNotFound)
	}
	r := m.witness.runs[l.runID]
	stopped := r != nil && r.state.Cancelled && l.mishap == noMishap
	m.machine.lost = false
	over := m.run(l, func(ctx context.Context, p *loop.Loop) (*run.View, error) { return p.Advance(ctx, l.runID, nil) })
	if stopped && over && !m.machine.lost {
		m.witness.leftRunning(r)
	}
	return acknowledged
}

// drain delivers queued messages until none is left, or until the rest is held by live processes.
func (m *trialed) drain() {
	for tries := 0; len(m.queue) > 0 && tries < 200; tries++ {
		id := m.queue[0]
		m.queue = m.queue[1:]
		if !m.advance(life{runID: id}) {
			m.queue = append(m.queue, id)
		}
	}
}

// rest removes all faults and lets everything reach its end. within is the time that this may take.
func (m *trialed) rest(within time.Duration) {
	for range 2 {
		m.tick(within / 2)
		if _, err := m.loop.Sweep(m.ctx); err != nil {
			m.witness.broken(invariants.Liveness, "the sweep: %v", err)
		}
		m.drain()
	}
}

// waiting returns the approvals that can be decided, oldest first.
func (m *trialed) waiting() (out []run.Approval) {
	for _, id := range m.witness.order {
		if r := m.witness.runs[id]; r != nil && r.state.End == nil {
			for _, a := range r.state.Open() {
				if ap, there := m.witness.approvals[a.ApprovalID]; there && !a.WaitsForClient() {
					out = append(out, ap)
				}
			}
		}
	}
	return out
}

// clientCall is a call that waits for its client, as the client sees it.
type clientCall struct {
	tool.Call
	Tool string
}

// clientCalls returns the calls that wait for the client.
func (m *trialed) clientCalls() (out []clientCall) {
	for _, id := range m.witness.order {
		if r := m.witness.runs[id]; r != nil && r.state.End == nil {
			for _, a := range r.state.Open() {
				if a.WaitsForClient() {
					call := tool.Call{UID: r.uid, RunID: id, ActionID: a.ID, Args: a.Args, Place: a.Place}
					out = append(out, clientCall{call, a.Tool})
				}
			}
		}
	}
	return out
}

func args(to []string, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"to":["%s"],"text":%q}`, strings.Join(to, `","`), text))
}
