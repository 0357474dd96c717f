//go:build !race

package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
)

// spending is what one step takes: allocations and bytes of the whole process, with the client and the servers that
// the test plays; pages that are appended to the write-ahead log of the embedded store; and statements that it runs.
type spending struct{ allocs, bytes, pages, statements int }

// budgets are the steps and what each may take: exactly so many statements, and all else within a twentieth. A change
// that costs more or less changes the number in the same commit, and its message says why. The test prints what it
// measures (-v).
var budgets = []struct {
	name  string
	ready func(t testing.TB, dir string) (next func() (step func()))
	takes spending
}{
	{"a text turn", turns, spending{1759, 173_184, 17, 15}},
	{"a trip with an action", orders, spending{4910, 517_000, 60, 46}},
	{"a trip with a mail", mails, spending{10_005, 996_136, 84, 68}},
	{"a resume", resumes, spending{5305, 526_432, 42, 36}},
	{"a sweep with nothing due", sweeps, spending{7618, 339_936, 0, 130}},
	{"a page message", messages, spending{1384, 135_488, 4, 11}},
}

// TestBudget holds what steps allocate, write and ask of the store. It is not built with -race, which allocates for
// itself.
func TestBudget(t *testing.T) {
	of := embedded.Driver
	embedded.Driver = counting(t, of)
	t.Cleanup(func() { embedded.Driver = of })
	for _, b := range budgets {
		t.Run(b.name, func(t *testing.T) {
			dir := t.TempDir()
			got := spends(t, dir, b.ready(t, dir))
			t.Logf("%+v", got)
			if !near(got.allocs, b.takes.allocs) || !near(got.bytes, b.takes.bytes) ||
				!near(got.pages, b.takes.pages) || got.statements != b.takes.statements {
				t.Errorf("takes %+v, its budget is %+v", got, b.takes)
			}
		})
	}
}

func near(got, want int) bool { return max(got-want, want-got)*20 <= want }

// spends returns the median of what some steps take, after some that fill pools and caches. Neither a second processor
// nor the collector, which empties pools, makes a difference.
func spends(t *testing.T, dir string, next func() func()) spending {
	const warm, rounds = 3, 7
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var allocs, bytes, pages, ran []int
	for i := range warm + rounds {
		step := next()
		var before, after runtime.MemStats
		from, past := logged(t, dir), statements.Load()
		runtime.ReadMemStats(&before)
		step()
		runtime.ReadMemStats(&after)
		if i < warm {
			continue
		}
		allocs = append(allocs, int(after.Mallocs-before.Mallocs))
		bytes = append(bytes, int(after.TotalAlloc-before.TotalAlloc))
		pages = append(pages, logged(t, dir)-from)
		ran = append(ran, int(statements.Load()-past))
	}
	return spending{median(allocs), median(bytes), median(pages), median(ran)}
}

func median(of []int) int {
	slices.Sort(of)
	return of[len(of)/2]
}

// logged returns how many pages the write-ahead log has: SQLite puts a header of 32 bytes before all, and one of 24
// before each page of 4 KiB.
func logged(t *testing.T, dir string) int {
	log, err := os.Stat(filepath.Join(dir, "countersign.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	return int(log.Size()-32) / (24 + 4096)
}

func always(step func()) func() func() { return func() func() { return step } }

// roomy starts Countersign with limits that the test does not reach: what is used is counted.
func roomy(t testing.TB, dir string) *proved {
	return deployWith(t, testkit.Options{Dir: dir, Settings: []string{"MAX_APPROVALS_PER_DAY=1000",
		"MAX_RUNS_PER_MINUTE=1000", "MAX_MODEL_CALLS_PER_DAY=10000", "MAX_TOKENS_PER_DAY=100000000"}})
}

// answered fails the test unless the request was answered with 200.
func answered(t testing.TB) func(testkit.Answer, error) {
	return func(a testkit.Answer, err error) {
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%v: %d %s", err, a.HTTP, a.Body)
		}
	}
}

// speaking starts Countersign with a model that says one sentence, and signs ana in.
func speaking(t testing.TB, dir string) testkit.Client {
	w := roomy(t, dir)
	w.SetModel(testkit.Says("It is ten o'clock."))
	ana, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	return ana
}

func turns(t testing.TB, dir string) func() func() {
	ana := speaking(t, dir)
	return always(func() { answered(t)(ana.Ask(t.Context(), "hi")) })
}

func orders(t testing.TB, dir string) func() func() { return always(buys(t, dir)) }

func messages(t testing.TB, dir string) func() func() {
	ana := speaking(t, dir)
	return always(func() { answered(t)(ana.Chat(t.Context(), map[string]string{"message": "hi"})) })
}

func mails(t testing.TB, dir string) func() func() {
	w := roomy(t, dir)
	w.mail()
	return always(func() {
		if a := w.approve(w.ask()); a.Status != "completed" {
			t.Fatalf("%s", a.Body)
		}
	})
}

func resumes(t testing.TB, dir string) func() func() {
	w := roomy(t, dir)
	w.mail()
	return func() func() {
		answered(t)(w.Resolve(t.Context(), "ana", w.ask().Approvals[0], "approve_once"))
		return w.deliver
	}
}

func sweeps(t testing.TB, dir string) func() func() {
	w := roomy(t, dir)
	return always(func() { answered(t)(w.Sweep(t.Context())) })
}
