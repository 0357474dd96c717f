package contents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

const uid = "ana"

// decision is a decision of the user that was accepted.
type decision struct {
	decision run.Decision
	comment  string
}

// scenario is one random story: a user, their threads, and processes that die.
type scenario struct {
	r         *rand.Rand
	now       time.Time
	store     store.Store
	life      process
	approvals map[string]store.Doc // the stored documents
	provider  *provider
	model     model.Model
	loop      *loop.Loop // in the process that is alive

	verbatim    bool // the agent gets earlier runs verbatim
	window      int  // the size of the model's context window in tokens
	generation  fakegemini.Generation
	signer      string          // the name of the present model
	changed     bool            // the model was changed
	asksSummary bool            // the present request is for a summary
	sent        map[string]bool // the models' answers
	kept        map[string]bool // the same answers without their thoughts, as later runs get them

	queue   []queue.Message
	threads []string
	runs    map[string]string // by prompt
	asked   []args            // the calls that the model requested
	tags    int
	answers int                 // number of answers of the direct model; its call IDs contain it
	decided map[string]decision // by approval
	edits   map[string]args     // by action

	count  map[string]int
	faults []string
}

// newScenario returns a story. over sends its requests; nil stands for a model without a network.
func newScenario(seed uint64, over *wire) *scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &scenario{r: r, now: time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC), runs: map[string]string{},
		decided: map[string]decision{}, edits: map[string]args{}, count: map[string]int{}}
	w.provider = &provider{r: r, did: map[string]args{}}
	w.approvals = map[string]store.Doc{}
	w.store = faulty.Wrap(memory.New(w.clock), w.stored, faulty.Commits(faulty.After(w.sawApprovals)))
	w.model, w.signer = direct{w}, "direct"
	w.sent, w.kept = map[string]bool{}, map[string]bool{}
	w.verbatim, w.window = r.IntN(2) == 0, pick(r, 4_000, 4_000, 4_000, 10_000, 10_000, 10_000, 20_000, 20_000, 150_000)
	w.provider.long = w.verbatim && w.window > 100_000
	if over == nil && r.IntN(3) == 0 {
		w.generation = fakegemini.Gemini2
	}
	if over != nil {
		over.walk, w.model = w, over
	}
	w.process()
	return w
}

func (w *scenario) clock() time.Time { return w.now }

func (w *scenario) flaky() (fails, done bool) { return w.r.IntN(60) == 0, w.r.IntN(2) == 0 }

func (w *scenario) fault(format string, values ...any) {
	w.faults = append(w.faults, clip.Text(fmt.Sprintf(format, values...), 1000))
}

// Resume implements the queue's interface.
func (w *scenario) Resume(_ context.Context, m queue.Message) error {
	w.queue = append(w.queue, m)
	return nil
}

// Close does nothing.
func (w *scenario) Close() error { return nil }

// Read makes the story the processes' source of randomness.
func (w *scenario) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(w.r.Uint32())
	}
	return len(b), nil
}

// process starts a process, sometimes of another release. Releases differ in how a rejection ends a run, in the limit
// of model calls, and in whether one of the tools still exists.
func (w *scenario) process() {
	w.life = process{}
	tools := w.provider.tools()
	if w.r.IntN(6) == 0 {
		w.count["tool withdrawn"]++
		delete(tools, pick(w.r, tools.Names()...))
	}
	history, compression := registry.HistoryWords, registry.Compression{}
	if w.verbatim {
		history = registry.HistoryVerbatim
		compression = registry.Compression{Window: w.window, Threshold: pick(w.r, 0.34, 0.5)}
		if w.r.IntN(8) == 0 {
			w.signer, w.changed = pick(w.r, "direct", "another"), true
		}
	}
	w.loop = loop.New(unit.Env{Store: w.store, Queue: w, Model: w.model, Tools: tools, Now: w.clock, Random: w,
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Agents: registry.Set{run.Assistant: {Instructions: registry.WithRules(registry.Text("You are a test.")),
			History: history, Compression: compression,
			OnReject: pick(w.r, registry.RejectContinues, registry.RejectContinues,
				registry.RejectCompletes, registry.RejectFails),
			Limits: registry.Limits{ModelCalls: pick(w.r, 3, 5, 8), ApprovalTTL: 24 * time.Hour,
				Deadline: 72 * time.Hour, ModelTimeout: 30 * time.Second, ToolTimeout: 10 * time.Second,
				MaxOpen: 30, MaxPerDay: 200}}}})
}

// scenario plays the given number of random steps.
func (w *scenario) scenario(ctx context.Context, steps int) {
	for range steps {
		w.step(ctx)
		if w.life.dead {
			w.count["process died"]++
			w.process()
		}
	}
}

func (w *scenario) step(ctx context.Context) {
	switch n := w.r.IntN(100); {
	case n < 16:
		w.ask(ctx)
	case n < 50:
		w.resolve(ctx)
	case n < 80:
		w.deliver(ctx)
	case n < 86:
		w.tick(time.Duration(w.r.IntN(180)) * time.Second)
		w.sweep(ctx)
	case n < 88:
		w.tick(time.Duration(w.r.IntN(30)) * time.Hour)
		w.sweep(ctx)
	case n < 89:
		w.cancel(ctx)
	case n < 90:
		w.compress(ctx)
	case n < 96:
		w.life.fuse, w.life.after = 1+w.r.IntN(6), w.r.IntN(2) == 0
	case n < 98:
		w.process()
	default:
		w.chat(ctx)
	}
}

// check accepts an expected error: the process died, or the request was refused.
func (w *scenario) check(what string, err error) {
	var f *fault.Error
	switch {
	case err == nil, errors.Is(err, errDied):
	case !errors.As(err, &f) || f.Code == fault.CodeInternal:
		w.fault("%s: %v", what, err)
	}
}

func (w *scenario) ask(ctx context.Context) {
	prompt := fmt.Sprintf("prompt %d", len(w.runs)+1)
	w.runs[prompt] = run.KeyedRunID(uid, prompt)
	thread := ""
	if len(w.threads) > 0 && w.r.IntN(4) > 0 {
		thread = pick(w.r, w.threads...)
		if len(w.open(thread)) > 0 {
			w.count["asked while something waits"]++
		}
	}
	v, err := w.loop.Start(ctx,
		loop.StartRequest{UID: uid, ThreadID: thread, Key: prompt, BodyHash: prompt}, loop.Prompt{Text: prompt})
	w.check("start", err)
	w.look(v)
	if err == nil && thread == "" {
		w.threads = append(w.threads, v.ThreadID)
	}
}

// compress compresses a thread on the user's request.
func (w *scenario) compress(ctx context.Context) {
	if len(w.threads) == 0 || !w.verbatim {
		return
	}
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: uid, ThreadID: pick(w.r, w.threads...)}, loop.Compress{})
	w.check("compress", err)
	w.look(v)
	w.count["compressed by hand"]++
}

// look checks that no run ended because its request could not be built.
func (w *scenario) look(v *run.View) {
	switch {
	case v == nil:
	case v.ErrorReason == "failed":
		w.fault("the model was not called: %s", v.Message)
	case v.ErrorReason == run.CodeContextFull:
		w.count["more than the model reads"]++
	}
}

// chat fills a thread, so that its older messages are cut.
func (w *scenario) chat(ctx context.Context) {
	for range 25 {
		w.ask(ctx)
	}
	w.count["long thread"]++
}

// open returns the pending approvals of the thread, or all if the thread is empty.
func (w *scenario) open(thread string) []run.Approval {
	var out []run.Approval
	for _, p := range slices.Sorted(maps.Keys(w.approvals)) {
		if a := w.approval(p); a.Status == run.ApprovalOpen && (thread == "" || a.ThreadID == thread) {
			out = append(out, a)
		}
	}
	return out
}

func (w *scenario) approval(path string) (a run.Approval) {
	if err := document.Decode(w.approvals[path], &a); err != nil {
		w.fault("%s cannot be read: %v", path, err)
	}
	return a
}

// resolve decides about a pending call, mostly validly.
func (w *scenario) resolve(ctx context.Context) {
	open := w.open("")
	if len(open) == 0 {
		return
	}
	ap := pick(w.r, open...)
	res := approval.Resolution{UID: uid, ApprovalID: ap.ID, Decision: pick(w.r, ap.Decisions...)}
	var edited args
	switch res.Decision {
	case run.ApproveEdited:
		edited = w.edit(ap)
		res.EditedArgs = json.RawMessage(encode(edited))
	case run.Reject:
		res.Comment = pick(w.r, "", "Not \"like\" this.", strings.Repeat("never ", 100))
	}
	_, err := w.loop.Resolve(ctx, res)
	w.check("resolve", err)
	if w.r.IntN(8) == 0 {
		_, err := w.loop.Resolve(ctx, res) // the same decision again
		w.check("resolve again", err)
	}
	after := w.approval(document.ApprovalPath(ap.ID))
	if taken := after.Decision == res.Decision; !taken {
		w.want(err != nil, "the decision %s was accepted, but is not recorded", res.Decision)
		return
	}
	w.count["decided "+string(res.Decision)]++
	w.decided[ap.ID] = decision{res.Decision, strings.TrimSpace(res.Comment)}
	if res.Decision == run.ApproveEdited {
		w.edits[ap.ActionID] = edited
	}
}

func (w *scenario) edit(ap run.Approval) args {
	var a args
	if err := json.Unmarshal(ap.Args, &a); err != nil {
		w.fault("the arguments of %s cannot be read: %v", ap.ID, err)
	}
	if w.r.IntN(6) == 0 {
		return args{Text: a.Text} // invalid
	}
	return args{To: []string{"carol@example.com"},
		Text: tagOf(a.Text) + "-edited " + strings.Repeat("long ", w.r.IntN(2)*w.r.IntN(100)*w.r.IntN(200))}
}

// deliver advances one run of the queue. Some messages are delivered twice.
func (w *scenario) deliver(ctx context.Context) {
	if len(w.queue) == 0 {
		return
	}
	i := w.r.IntN(len(w.queue))
	m := w.queue[i]
	if w.r.IntN(8) > 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	v, err := w.loop.Resume(ctx, m, nil)
	w.check("advance", err)
	w.look(v)
}

func (w *scenario) tick(d time.Duration) {
	before := len(w.open(""))
	w.now = w.now.Add(d)
	if d > 24*time.Hour && before > 0 {
		w.count["expired"]++
	}
}

func (w *scenario) sweep(ctx context.Context) {
	_, err := w.loop.Sweep(ctx)
	if !w.life.dead {
		w.check("sweep", err)
	}
	for range len(w.queue) {
		w.deliver(ctx)
	}
}

func (w *scenario) cancel(ctx context.Context) {
	if len(w.runs) == 0 {
		return
	}
	_, err := w.loop.Cancel(ctx, uid, pick(w.r, slices.Sorted(maps.Values(w.runs))...))
	w.check("cancel", err)
	w.count["cancelled"]++
}

// state returns the state of a run, folded from its events.
func (w *scenario) state(runID string) *run.State {
	_, events, err := w.loop.Get(context.Background(), uid, runID)
	if err != nil {
		w.fault("run %s cannot be read: %v", runID, err)
	}
	s, err := run.Fold(events)
	if err != nil {
		w.fault("run %s: %v", runID, err)
		return &run.State{}
	}
	return s
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
