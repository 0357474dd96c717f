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

// spending is the cost of one step: allocations and bytes of the whole process, test client and servers included; pages
// appended to the embedded store's write-ahead log; and statements.
type spending struct{ allocs, bytes, pages, statements int }

// budgets are the steps and their permitted costs: an exact number of statements, and everything else within a
// twentieth. A change that costs more or less changes the number in the same commit, and its message says why. The test
// prints its measurements (-v).
var budgets = []struct {
	name  string
	ready func(t testing.TB, dir string) (next func() (step func()))
	takes spending
}{
	{"a text turn", turns, spending{1880, 195_000, 17, 15}},
	{"a trip with an action", orders, spending{5400, 565_600, 63, 46}},
	{"a trip with a mail", mails, spending{10_812, 1_088_000, 84, 68}},
	{"a trip with an e-mail inside, where outside needs a passkey", inside, spending{10_812, 1_088_000, 84, 68}},
	{"a resume", resumes, spending{5715, 573_000, 42, 36}},
	{"a sweep with nothing due", sweeps, spending{7402, 349_456, 0, 132}},
	{"a page message", messages, spending{1459, 153_660, 4, 11}},
}

// TestBudget checks what each step allocates, writes and reads. It is not built with -race, which allocates itself.
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

// spends returns the median cost of some steps, after warm-up steps that fill pools and caches. A second processor and
// the garbage collector, which empties pools, make no difference.
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

// logged returns the number of pages in the write-ahead log. SQLite writes a header of 32 bytes, and one of 24 bytes
// before each page of 4 KiB.
func logged(t *testing.T, dir string) int {
	log, err := os.Stat(filepath.Join(dir, "countersign.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	return int(log.Size()-32) / (24 + 4096)
}

func always(step func()) func() func() { return func() func() { return step } }

// roomy starts Countersign with limits that the test does not reach. Usage is still counted.
func roomy(t testing.TB, dir string, settings ...string) *proved {
	return deployWith(t, testkit.Options{Dir: dir, Settings: append(settings, "MAX_APPROVALS_PER_DAY=1000",
		"MAX_RUNS_PER_MINUTE=1000", "MAX_MODEL_CALLS_PER_DAY=10000", "MAX_TOKENS_PER_DAY=100000000")})
}

// answered fails the test unless the answer is 200.
func answered(t testing.TB) func(testkit.Answer, error) {
	return func(a testkit.Answer, err error) {
		if err != nil || a.HTTP != http.StatusOK {
			t.Fatalf("%v: %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
		}
	}
}

// speaking starts Countersign with a model that answers one sentence, and signs ana in.
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
			t.Fatalf("%s; want a.Status “completed”", a.Body)
		}
	})
}

// inside sends an e-mail to the own domain, where e-mails to other domains need a passkey.
func inside(t testing.TB, dir string) func() func() {
	settings, err := testkit.Strong(dir, "calls: [{tool: gmail_send, recipientsOutside: [example.com]}]")
	if err != nil {
		t.Fatal(err)
	}
	w := roomy(t, dir, settings...)
	w.mail()
	return always(func() {
		if a := w.approve(w.ask()); a.Status != "completed" {
			t.Fatalf("%s; want a.Status “completed”", a.Body)
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
