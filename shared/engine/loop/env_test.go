package loop_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/quota"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/store/firestore"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// env is everything that a loop uses, under the test's control.
type env struct {
	t     testing.TB
	now   time.Time
	store store.Store
	loop  *loop.Loop

	ticks   func() time.Time    // the clock, in place of now
	forward func(time.Duration) // sets the store's clock, if it is not the test's

	account func() (tool.Place, error) // the account in which the sending tools act now

	model *script.Model
	rec   *records.Records

	patience time.Duration // how long runs wait for the model
	quota    quota.Limits  // the model's quota, which all processes share
	post     quota.Limits  // the quota of the service Post, in the same way

	call time.Duration // the limit of one call of a function; 0 means no limit
	slow time.Duration // the duration of an effect

	mu      sync.Mutex
	naps    []nap // the heartbeats that wait for the test's clock
	queue   []string
	effects []string // the effects that the provider executed
	next    []string // the provider's next answers: ok, ambiguous, lost, transient, refuse, reauth
	settle  []string // the next answers of Reconcile: done, not_done, unknown, down

	asked  map[string]queue.Message // the newest message about each run
	shards sync.Map                 // the shards that have had a run
}

var began = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

func newEnv(t testing.TB) *env {
	w := &env{t: t, now: began}
	st, err := embedded.OpenMemory(w.clock)
	return w.on(cleanup.Close(t, st, err), func(time.Duration) {})
}

// newFirestoreEnv is an env over the Firestore emulator, with a clock that can be set forward.
func newFirestoreEnv(t testing.TB) *env {
	st, err := firestore.Open(context.Background(), "demo-"+strings.ToLower(crand.Text()), "")
	shifted, forward := faulty.Shift(steady(cleanup.Close(t, st, err)))
	return (&env{t: t, now: time.Now()}).on(shifted, forward)
}

// onEachStore runs a test on both stores.
func onEachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *env)) {
	t.Run("embedded", func(t *testing.T) { test(t, newEnv) })
	t.Run("firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
		test(t, newFirestoreEnv)
	})
}

// on makes the env on a store. forward sets the store's clock.
func (w *env) on(st store.Store, forward func(time.Duration)) *env {
	nothing := func(context.Context, *faulty.Call, faulty.Next) error { return nil }
	w.store = faulty.Wrap(st, faulty.Commits(faulty.Before(w.noteShards)), faulty.Of(w.findsNothing, nothing))
	w.forward, w.asked = forward, map[string]queue.Message{}
	w.account = func() (tool.Place, error) { return tool.Place{}, nil }
	w.model = script.New()
	w.rec = &records.Records{Store: st, Now: w.clock}
	w.loop = w.process()
	return w
}

// noteShards records the shards of the runs that a commit writes.
func (w *env) noteShards(c *faulty.Call) {
	for _, o := range c.Writes {
		if collection, id := store.SplitPath(o.Doc.Path); collection == document.Runs {
			w.shards.Store(document.Shard(id), true)
		}
	}
}

// findsNothing reports whether the call is a sweep's query of a shard that has had no run. This applies to nearly all
// of a sweep's 64 queries, and they would take most of the time of these tests.
func (w *env) findsNothing(c *faulty.Call) bool {
	if c.Method != faulty.Query || c.Query.Collection != document.Runs || len(c.Query.Where) == 0 ||
		c.Query.Where[0].Field != "dueShard" {
		return false
	}
	_, had := w.shards.Load(c.Query.Where[0].Value)
	return !had
}

// process returns the loop of another process on the same store.
func (w *env) process() *loop.Loop {
	return loop.New(unit.Env{Store: w.store, Queue: w, Model: w.model, Now: w.clock, Random: lockedRand(w.t),
		Sleep: w.sleep, ModelPatience: w.patience,
		Quota: quota.New(quota.Config{Store: w.store, Limits: w.quota, Now: w.clock, Sleep: noWait}),
		Services: map[string]*quota.Budget{"Post": quota.New(quota.Config{Store: w.store, Limits: w.post,
			Now: w.clock, Sleep: noWait, Path: document.ServiceQuotaPath})},
		Tools:  tool.NewSet(w.send("send"), w.draft(), w.lookup()),
		Agents: registry.Set{run.Assistant: testAgent(run.Assistant, "You are a test.")}})
}

// noWait ends every wait at once.
func noWait(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// testAgent is an agent with all tools.
func testAgent(name, says string) *registry.Agent {
	return &registry.Agent{Name: name, Instructions: registry.WithRules(registry.Text(says)),
		History: registry.HistoryWords, OnReject: registry.RejectCompletes,
		Limits: registry.Limits{ModelCalls: 3, ApprovalTTL: 24 * time.Hour, Deadline: 72 * time.Hour,
			ModelTimeout: 30 * time.Second, ToolTimeout: 10 * time.Second, MaxOpen: 20, MaxPerDay: 60}}
}

// assistant is the agent of runs without a named agent.
func (w *env) assistant() *registry.Agent { return w.loop.Agents[run.Assistant] }

func (w *env) clock() time.Time {
	if w.ticks != nil {
		return w.ticks()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *env) tick(d time.Duration) {
	w.forward(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	w.naps = slices.DeleteFunc(w.naps, func(n nap) bool {
		if w.now.Before(n.until) {
			return false
		}
		close(n.over)
		return true
	})
}

// Resume makes the env its own queue.
func (w *env) Resume(_ context.Context, m queue.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, m.RunID)
	w.asked[m.RunID] = m
	return nil
}

func (w *env) Close() error { return nil }

// deliver moves every queued run until the queue is empty.
func (w *env) deliver(ctx context.Context) error {
	for {
		w.mu.Lock()
		if len(w.queue) == 0 {
			w.mu.Unlock()
			return nil
		}
		id := w.queue[0]
		w.queue = w.queue[1:]
		w.mu.Unlock()
		call, cancel := w.calling(ctx)
		m := w.asked[id]
		m.RunID = id
		_, err := w.loop.Resume(call, m, nil)
		cancel()
		if err != nil && !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			return err
		}
	}
}

// calling returns the context of one call of a function.
func (w *env) calling(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.call == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, w.call)
}

type randReader struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (r *randReader) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.r.Read(b)
}

func lockedRand(t testing.TB) *randReader {
	return &randReader{r: rand.New(rand.NewSource(int64(len(t.Name()))))}
}

type sendArgs struct {
	To   []string `json:"to" jsonschema:"who gets it"`
	Text string   `json:"text" jsonschema:"the text to send"`
}

type sendResult struct {
	ID string `json:"id"`
}

func (w *env) behave() string {
	if w.slow > 0 {
		time.Sleep(w.slow) // in a synctest bubble, where this takes no time
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.next) == 0 {
		return "ok"
	}
	b := w.next[0]
	w.next = w.next[1:]
	return b
}

func (w *env) did(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, what)
}

// effect is a provider that may lose its answer, before or after it acted.
func (w *env) effect(c tool.Call, in sendArgs) (sendResult, error) {
	what := fmt.Sprintf("send %s: %s", strings.Join(in.To, ","), in.Text)
	switch b := w.behave(); b {
	case "ambiguous":
		w.did(what)
		return sendResult{}, tool.Ambiguous(errors.New("the connection broke after it was sent"))
	case "lost":
		return sendResult{}, tool.Ambiguous(errors.New("the connection broke before it was sent"))
	case "transient":
		return sendResult{}, tool.Transient(errors.New("busy"))
	case "refuse":
		return sendResult{}, fault.New(fault.Tool, "refused", "The provider refused it.")
	case "reauth":
		return sendResult{}, fault.New(fault.Auth, fault.CodeReauth, "Please link your account again.")
	case "panic":
		w.did(what)
		panic("the tool's own")
	case "die":
		w.did(what)
		runtime.Goexit()
	case "hang":
		return sendResult{}, tool.Ambiguous(context.DeadlineExceeded)
	}
	w.did(what)
	return sendResult{ID: c.ActionID[:6]}, nil
}

// send is a side effect without a handle. Its Reconcile gives the test's answers, and reports an unknown outcome
// otherwise.
func (w *env) send(name string) *tool.Tool {
	return tool.Define(w.sendDef(name))
}

func (w *env) sendDef(name string) tool.Def[sendArgs, sendResult] {
	return tool.Def[sendArgs, sendResult]{
		Name: name, Description: "Sends a text.", SideEffect: true,
		Normalize: func(in sendArgs) (sendArgs, error) {
			if len(in.To) == 0 {
				return in, fault.Invalid("to", "somebody must get it")
			}
			return in, nil
		},
		Targets: func(in sendArgs) []tool.Target { return tool.Addresses(in.To) },
		Place:   func(context.Context, tool.Scope) (tool.Place, error) { return w.account() },
		Preview: func(in sendArgs) tool.Preview {
			return tool.Preview{Title: fmt.Sprintf("Send %q to %s", in.Text, strings.Join(in.To, ", "))}
		},
		Summary: func(in sendArgs) string { return "Sent it to " + strings.Join(in.To, ", ") + "." },
		Execute: func(_ context.Context, c tool.Call, in sendArgs) (sendResult, error) { return w.effect(c, in) },
		Reconcile: func(_ context.Context, c tool.Call, in sendArgs) (tool.Verdict, sendResult, string, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if len(w.settle) == 0 {
				return tool.Unknown, sendResult{}, "The provider keeps no record.", nil
			}
			s := w.settle[0]
			w.settle = w.settle[1:]
			if s == "down" {
				return "", sendResult{}, "", errors.New("down")
			}
			return tool.Verdict(s), sendResult{ID: c.ActionID[:6]}, "The provider does not say.", nil
		},
	}
}

// draft is a side effect with a handle that the provider uses up, as for an e-mail draft. It always knows the outcome.
func (w *env) draft() *tool.Tool {
	d := w.sendDef("draft")
	used := map[string]bool{}
	d.Prepare = func(_ context.Context, c tool.Call, _ sendArgs) (string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		h := fmt.Sprintf("h%d", len(used)+1)
		used[h] = false
		return h, nil
	}
	execute := d.Execute
	d.Execute = func(ctx context.Context, c tool.Call, in sendArgs) (sendResult, error) {
		w.mu.Lock()
		gone := used[c.Handle]
		w.mu.Unlock()
		if gone {
			return sendResult{}, tool.Ambiguous(errors.New("gone"))
		}
		before := len(w.effects)
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			used[c.Handle] = len(w.effects) > before
		}()
		return execute(ctx, c, in)
	}
	d.Reconcile = func(_ context.Context, c tool.Call, in sendArgs) (tool.Verdict, sendResult, string, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if used[c.Handle] {
			return tool.Done, sendResult{ID: c.ActionID[:6]}, "", nil
		}
		return tool.NotDone, sendResult{}, "", nil
	}
	return tool.Define(d)
}

type lookupArgs struct {
	Word string `json:"word"`
}

type lookupResult struct {
	Found string `json:"found"`
}

func (w *env) lookup() *tool.Tool {
	return tool.Define(tool.Def[lookupArgs, lookupResult]{
		Name: "lookup", Description: "Looks a word up.",
		Execute: func(_ context.Context, _ tool.Call, in lookupArgs) (lookupResult, error) {
			if in.Word == "missing" {
				return lookupResult{}, fault.New(fault.Tool, "no_entry", "There is no such word.")
			}
			return lookupResult{Found: "about " + in.Word}, nil
		},
	})
}

// open returns the user's pending approvals, oldest first.
func (w *env) open(uid string) []run.ApprovalView {
	w.t.Helper()
	aps, _, err := w.rec.Pending(context.Background(), uid, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, j := 0, len(aps)-1; i < j; i, j = i+1, j-1 {
		aps[i], aps[j] = aps[j], aps[i]
	}
	return aps
}
