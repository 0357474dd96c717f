package loop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"
	"text/tabwriter"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// cost is the cost of a step. A round trip to the store is one RPC of Firestore, as that store's own tests check.
type cost struct {
	reads, read      int // round trips that read, and documents in them
	commits, written int
	model, published int // calls of the model, messages to the queue
	before           int // the round trips that end before the model's first words can leave
}

// step is one step of Countersign.
type step struct {
	name  string
	ready func(p *proof) func() error // prepares the env for the step and returns the step
	costs cost
	least cost   // the least that the guarantees allow
	why   string // why the cost cannot be lower, or why a higher one is accepted
}

// steps are the promised costs of the steps that TestRoundTrips in shared/app does not count at Firestore's client.
// That test covers starting a run, stopping, approving and resuming. One more round trip or document needs a reason.
var steps = []step{
	{"a run with a tool that only reads", startsRun("lookup", ""),
		cost{1, 1, 4, 8, 2, 0, 2}, cost{1, 1, 4, 8, 2, 0, 2},
		"what the model said is stored before it is acted upon, and what the tool said before the model is told: the " +
			"run alone, twice"},
	{"a run with an effect that is always allowed", allowed("send"),
		cost{1, 1, 4, 11, 2, 0, 2}, cost{1, 1, 4, 11, 2, 0, 2},
		"the turn with the intent (run, audit, and the user, so that an entry taken back makes it fail), then the " +
			"outcome (run, audit)"},
	{"the same through a handle, as a mail's draft", allowed("draft"),
		cost{1, 1, 5, 12, 2, 0, 2}, cost{1, 1, 5, 12, 2, 0, 2},
		"the handle is made between the turn and the intent, and the turn is stored before anything is done about it"},
	{"an effect that needs no approval, whose output is kept", printing,
		cost{1, 1, 5, 13, 2, 0, 2}, cost{1, 1, 5, 13, 2, 0, 2},
		"the output's own document is made by the intent's commit, so that nothing of it outlives its run, " +
			"and what is " +
			"printed is one document, twice a second at most"},
	{"reject", decides(run.Reject),
		cost{2, 4, 1, 5, 0, 0, 0}, cost{2, 4, 1, 5, 0, 0, 0},
		"the run ends in the same commit, so its thread, which the run names, is read and written too"},
}

// proof is an env whose calls are all counted.
type proof struct {
	*env
	uid   string
	meter *meter
}

// meter counts the calls between the loop and its store, queue and model.
type meter struct {
	*faulty.Counter
	queue.Queue
	model.Model
	asked, published int
	first            faulty.Counts // the counts before the model was first called
}

func (m *meter) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	if err := model.AwaitCommit(ctx); err != nil {
		return nil, err
	}
	if m.asked++; m.asked == 1 {
		m.first = m.Take()
	}
	return m.Model.Generate(ctx, req, delta)
}

func (m *meter) Resume(ctx context.Context, msg queue.Message) error {
	m.published++
	return m.Queue.Resume(ctx, msg)
}

// Close closes nothing: the env does.
func (m *meter) Close() error { return nil }

// measured connects the env's loop through a meter.
func measured(w *env) *proof {
	p := &proof{env: w, uid: "ana", meter: &meter{Counter: faulty.Count(w.store), Queue: w}}
	w.loop.Store, w.loop.Queue, w.loop.Model = p.meter.Counter, p.meter, p.meter
	w.assistant().Limits.MaxOpen, w.assistant().Limits.MaxPerDay = 0, 0
	w.loop.UserLimits = run.Limits{RunsPerMinute: 10_000, CallsPerDay: 1_000_000, TokensPerDay: 1_000_000_000}
	return p
}

// take returns the counts since the last take.
func (p *proof) take() (c cost, read, written int) {
	rest, first := p.meter.Take(), p.meter.first
	c = cost{reads: first.Get.Trips + rest.Get.Trips + rest.Query.Trips,
		read:    first.Get.Docs + rest.Get.Docs + rest.Query.Docs,
		commits: first.Commit.Trips + rest.Commit.Trips, written: first.Commit.Docs + rest.Commit.Docs,
		model: p.meter.asked, published: p.meter.published, before: first.Get.Trips + first.Commit.Trips}
	p.meter.asked, p.meter.published, p.meter.first = 0, 0, faulty.Counts{}
	return c, first.Get.Bytes + rest.Get.Bytes, first.Commit.Bytes + rest.Commit.Bytes
}

func (p *proof) ask(tool, thread string) (*run.View, error) {
	p.meter.Model = &plain{}
	if tool != "" {
		p.meter.Model = &asked{tool: tool}
	}
	return p.loop.Start(context.Background(), loop.StartRequest{UID: p.uid, ThreadID: thread},
		loop.Prompt{Text: "do it"})
}

func (p *proof) must(tool, thread string) *run.View {
	p.t.Helper()
	v, err := p.ask(tool, thread)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *proof) decide(v *run.View, d run.Decision) error {
	_, err := p.loop.Resolve(context.Background(),
		approval.Resolution{UID: p.uid, ApprovalID: run.ApprovalID(v.RunID, 1), Decision: d})
	return err
}

// approved makes a run that was approved and waits to be resumed.
func (p *proof) approved(tool string, d run.Decision) {
	p.t.Helper()
	if err := p.decide(p.must(tool, ""), d); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proof) resume() error { return p.deliver(context.Background()) }

func startsRun(tool, again string) func(*proof) func() error {
	return func(p *proof) func() error {
		thread := ""
		if again != "" {
			thread = p.must("", "").ThreadID
		}
		return func() error { _, err := p.ask(tool, thread); return err }
	}
}

func allowed(tool string) func(*proof) func() error {
	return func(p *proof) func() error {
		p.approved(tool, run.ApproveAlways)
		if err := p.resume(); err != nil {
			p.t.Fatal(err)
		}
		return startsRun(tool, "")(p)
	}
}

func printing(p *proof) func() error {
	p.prints(func(c tool.Call) error { _, err := io.WriteString(c.Output, "one line\n"); return err }, nil)
	p.loop.Model = p.meter
	return startsRun("print", "")(p)
}

func decides(d run.Decision) func(*proof) func() error {
	return func(p *proof) func() error {
		v := p.must("send", "")
		return func() error { return p.decide(v, d) }
	}
}

func resumes(tool string) func(*proof) func() error {
	return func(p *proof) func() error {
		p.approved(tool, run.ApproveOnce)
		return p.resume
	}
}

// TestCost counts the requests of each step, and prints them beside the least that the guarantees allow (with -v).
func TestCost(t *testing.T) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| step\t| reads\t| commits\t| before the model\t| model\t| publishes\t| least\t| because\t|")
	fmt.Fprintln(w, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, s := range steps {
		p := measured(newEnv(t))
		do := s.ready(p)
		p.take()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		got, _, _ := p.take()
		if got != s.costs {
			t.Errorf("%s: %+v, promised %+v", s.name, got, s.costs)
		}
		if alone := costAlone(t, s); alone != got {
			t.Errorf("%s: %+v, and %+v where its thread is kept for it", s.name, got, alone)
		}
		fmt.Fprintf(w, "| %s\t| %d (%d)\t| %d (%d)\t| %d\t| %d\t| %d\t| %d (%d), %d (%d)\t| %s\t|\n", s.name, got.reads,
			got.read, got.commits, got.written, got.before,
			got.model, got.published, s.least.reads, s.least.read, s.least.commits, s.least.written, s.why)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("round trips (documents)\n%s", table.String())
}

// costAlone returns the cost of the step for an exclusive agent, which has one open run in a thread.
func costAlone(t *testing.T, s step) cost {
	p := measured(newEnv(t))
	p.assistant().Exclusive = true
	do := s.ready(p)
	p.take()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	c, _, _ := p.take()
	return c
}

// BenchmarkCost measures the same steps on each store, each for a user of their own.
//
//	go test ./shared/engine/loop -run '^$' -bench Cost -benchmem
func BenchmarkCost(b *testing.B) {
	b.Run("embedded", func(b *testing.B) { benchmarkSteps(b, newEnv) })
	b.Run("firestore", func(b *testing.B) {
		b.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(b))
		benchmarkSteps(b, newFirestoreEnv)
	})
}

func benchmarkSteps(b *testing.B, open func(testing.TB) *env) {
	for _, s := range steps {
		b.Run(s.name, func(b *testing.B) {
			p := measured(open(b))
			var read, written, n int
			for b.Loop() {
				b.StopTimer()
				p.uid = fmt.Sprintf("user%d", n)
				do := s.ready(p)
				p.take()
				b.StartTimer()
				if err := do(); err != nil {
					b.Fatal(err)
				}
				got, r, w := p.take()
				if got != s.costs {
					b.Fatalf("%+v, promised %+v", got, s.costs)
				}
				read, written, n = read+r, written+w, n+1
			}
			for unit, v := range map[string]int{"reads": s.costs.reads, "docs-read": s.costs.read,
				"commits": s.costs.commits, "docs-written": s.costs.written,
				"trips-before-model": s.costs.before, "model-calls": s.costs.model, "publishes": s.costs.published,
				"B-read": read / n, "B-written": written / n} {
				b.ReportMetric(float64(v), unit+"/op")
			}
		})
	}
}

// TestCostByThreadLength starts, approves and resumes runs on threads of several lengths. The round trips and documents
// are the same, and the bytes stay within the limit of a thread's newest part.
func TestCostByThreadLength(t *testing.T) {
	const line = 200
	names := []string{"ask", "approve", "resume"}
	costs, moved := map[int][]cost{}, map[int][]int{}
	lengths := []int{1, 110, 2_000}
	for _, n := range lengths {
		p := measured(newEnv(t))
		thread := p.threadOf(n, string(bytes.Repeat([]byte("x"), line)))
		p.take()
		v := p.must("send", thread)
		for i, do := range []func() error{func() error { return nil }, func() error {
			return p.decide(
				v, run.ApproveOnce)
		}, p.resume} {
			if err := do(); err != nil {
				t.Fatalf("%s, %d messages: %v", names[i], n, err)
			}
			c, read, written := p.take()
			costs[n], moved[n] = append(costs[n], c), append(moved[n], read+written)
		}
		t.Logf("%d messages: %v bytes to %v", n, moved[n], names)
		if !slices.Equal(costs[n], costs[lengths[0]]) {
			t.Errorf("%d messages: %+v, one message: %+v", n, costs[n], costs[lengths[0]])
		}
	}
	for i, name := range names {
		// The newest part of a thread is 20 to 60 messages, so two long threads differ by 40 in each document that
		// carries it.
		if a, b := moved[110][i], moved[2_000][i]; b-a > 5*40*line {
			t.Errorf("%s: %d bytes with 110 messages, %d with 2000", name, a, b)
		}
	}
}

// threadOf makes a thread of n messages and returns its id.
func (p *proof) threadOf(n int, text string) string {
	p.t.Helper()
	ctx := context.Background()
	id := p.must("", "").ThreadID
	docs, err := p.store.Get(ctx, document.ThreadPath(id))
	if err != nil {
		p.t.Fatal(err)
	}
	var th run.Thread
	if err := document.Decode(docs[0], &th); err != nil {
		p.t.Fatal(err)
	}
	th.Log = document.Log[run.Message]{}
	for range n {
		chunks, err := th.Add(run.Message{Role: run.RoleUser, Text: text, At: p.clock()})
		if err != nil {
			p.t.Fatal(err)
		}
		for _, c := range chunks {
			p.commit(store.Create(document.ChunkPath(docs[0].Path, "messages", c.First), nil, p.marshal(c.Items)))
		}
	}
	p.commit(store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, p.marshal(th)))
	return id
}

func (p *proof) commit(w store.Write) {
	p.t.Helper()
	if _, err := p.store.Commit(context.Background(), w); err != nil {
		p.t.Fatal(err)
	}
}

func (p *proof) marshal(v any) []byte {
	p.t.Helper()
	b, err := strictjson.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// plain is a model that answers with text.
type plain struct{}

func (*plain) Name() string { return "plain" }

func (*plain) Generate(context.Context, model.Request, func(string)) (*model.Reply, error) {
	return &model.Reply{Content: json.RawMessage(`{"role":"model","parts":[{"text":"Hello."}]}`), Text: "Hello.",
		Finish: "STOP", Model: "plain"}, nil
}
