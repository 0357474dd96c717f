package load

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestMain(m *testing.M) {
	if proof.Worked(Proof()) {
		return
	}
	realpart.AtOnce(4)
	leaktest.Main(m)
}

// seed is a seed of the soak: in the first second, none of its users leaves an approval to expire. That would take a
// minute, and L13 tests it.
const seed = 20261133

// TestMeasurements runs each measurement for a second. Its speed does not matter here; the invariants must hold.
func TestMeasurements(t *testing.T) {
	realpart.Long(t, "it measures for a second each")
	short := map[string]options{
		"L1": {Store: "embedded", Clients: 2}, "L2": {Clients: 2}, "L3": {Clients: 2}, "L4": {Clients: 10, Count: 2},
		"L5": {Clients: 2}, "L6": {Clients: 5}, "L7": {Clients: 5}, "L8": {Clients: 3}, "L9": {Clients: 2, Count: 5},
		"L11": {}, "L12": {Count: 5}, "L13": {Store: "embedded", Count: 5}, "L14": {Clients: 5}, "L15": {Clients: 5},
	}
	for _, m := range slices.Backward(measurements) { // the soak waits most, so it begins first
		o, ok := short[m.name]
		if !ok {
			continue
		}
		o.For = time.Second
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			r, err := m.with(o, seed).measure(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			holds(t, r)
		})
	}
}

// TestOutage runs L10, which stops its store. It starts its own store, even if a complete run of the tests shares one.
func TestOutage(t *testing.T) {
	realpart.Emulators.Take(t)
	t.Setenv("FIRESTORE_EMULATOR_HOST", "")
	at := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == "L10" })
	r, err := measurements[at].with(options{For: 4 * time.Second, Clients: 2}, seed).measure(t.Context())
	if errors.Is(err, emulators.ErrAbsent) {
		realpart.Emulators.Absent(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	holds(t, r)
}

// speed lists the targets that a machine that runs other tests may miss.
var speed = []string{"runs/s", "p50 ms", "p99 ms", "approve to final p95 ms", "approve to final p99 ms",
	"round trips/s", "slowest answer ms", "throughput of the storm to the calm, %", "first byte p95 ms",
	"health p99 ms", "pending p99 ms", "drained in s", "worked off in s", "RSS slope MiB/min",
	"out of order by more than 10 % of the backlog, %", "slowest 503 s", "throughput of the burst to the calm, %",
	"yes to final p99 to p50", "slowest recovery s", "answers of 503"}

func holds(t *testing.T, r *Report) {
	for _, p := range r.Problems {
		t.Error(p)
	}
	for _, target := range r.Targets {
		if !target.Met && !slices.Contains(speed, target.What) {
			t.Errorf("%s: %v, want %s (%v)", target.What, target.Got, target.Want, r.Figures)
		}
	}
	if len(r.Targets) == 0 || r.Limited == "" {
		t.Errorf("the report says nothing: %+v", r)
	}
}

// TestFreshActionApproved loses an e-mail of a user whose mailbox cannot be read. The user starts a new action.
func TestFreshActionApproved(t *testing.T) {
	lost := measurement{"lost", "a lost mail", options{Store: "embedded"}, inOneProcess,
		func(ctx context.Context, g *env, _ *Report) {
			g.begin(ctx)
			var sends atomic.Int32
			g.SetFault(func(op string) fakegoogle.Fault {
				if op == "gmail.drafts.send" && sends.Add(1) == 1 {
					return fakegoogle.Fault{Kind: fakegoogle.DraftDeleted}
				}
				return fakegoogle.Fault{}
			})
			proof.Must(g.live(ctx, "user-1", wishMail, &mixture{}))
			if reviews := g.reviews.counts()["start_new"]; reviews != 1 {
				t.Errorf("%d reviews were answered with start_new, want 1", reviews)
			}
		}}
	r, err := lost.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
}

func TestReport(t *testing.T) {
	var out strings.Builder
	r := proof.Trial("load", 1, &out)
	rep := &Report{Name: "L0", Problems: []string{"a mail was sent twice"}, Figures: map[string]any{"runs": 3}}
	rep.atLeast("runs/s", 3, 2)
	rep.atMost("errors", 3, 0)
	rep.to(r)
	if r.Findings() != 2 || !strings.Contains(out.String(), "L0: errors: 3, want <= 0") {
		t.Errorf("%d findings: %s", r.Findings(), out.String())
	}
}

func TestQuantiles(t *testing.T) {
	var s series
	for i := 100; i > 0; i-- {
		s.add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 50, 0.95: 95, 0.99: 99, 1: 100} {
		if got := s.ms(q); got != want {
			t.Errorf("the quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := new(series).ms(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestSlope(t *testing.T) {
	s := sampler{at: []float64{0, 1, 2, 3, 4, 5}, mib: []float64{90, 10, 12, 14, 16, 18}}
	if got := s.slope(); got != 2 {
		t.Errorf("the slope after the warm-up is %v, want 2", got)
	}
	if got := new(sampler).slope(); got != 0 {
		t.Errorf("the slope of nothing is %v", got)
	}
}
