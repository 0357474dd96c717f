package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// faults lists the faults of a provider. A quarter of the trials has no fault, so that only the interruption can cause
// a loss.
var faults = []fault{fakegoogle.StatusBefore, fakegoogle.StatusAfter, fakegoogle.ResetBefore, fakegoogle.ResetAfter,
	fakegoogle.HangBefore, fakegoogle.HangAfter, fakegoogle.EmptyAfter, fakegoogle.OddAfter, fakegoogle.CutAfter}

// matrix is a run of the proof, with its environments and results.
type matrix struct {
	*proof.Run
	options options
	envs    []*env
	users   atomic.Int64

	mu    sync.Mutex
	rows  map[string]*row
	order []string
}

// The names of the counts in the report.
const (
	countPoints   = "points"
	countStruck   = "workers struck"
	countMissed   = "trials that ended before their point"
	countRepeated = "trials that were too slow, and were repeated alone"
)

// try opens the environments, counts the points, and runs the trials.
func try(ctx context.Context, o options, r *proof.Run, dir string) error {
	m := &matrix{Run: r, options: o, rows: map[string]*row{}}
	defer func() {
		for _, e := range m.envs {
			_ = e.close() // the worker is dead or ends here, and the store's folder is temporary
		}
	}()
	for i := range o.workers {
		name := fmt.Sprintf("crash-env-%d-%d", r.Seed%1e6, i)
		e, err := newEnv(ctx, name, o, dir, r.Seed+uint64(i), os.Stderr)
		if err != nil {
			return err
		}
		m.envs = append(m.envs, e)
	}
	plans, err := o.counted.once(func() ([]plan, error) { return m.count(ctx) })
	if err != nil {
		return err
	}
	if len(plans) == 0 {
		return nil
	}
	m.Count(countPoints, len(plans)/len(plans[0].kind.variants()))
	if err := m.all(ctx, m.choose(plans)); err != nil {
		return err
	}
	m.table()
	return nil
}

// choose returns the requested number of plans: each plan once in a random order, and then again with other faults. The
// random numbers of a plan depend only on the seed, the round and the plan. Workers poll, so two counts can find
// slightly different points. The same seed nevertheless chooses the same trials.
func (m *matrix) choose(plans []plan) []plan {
	type drawn struct {
		plan
		lot uint64
	}
	var out []plan
	for round := 0; len(out) < m.options.kills; round++ {
		all := make([]drawn, len(plans))
		for i, p := range plans {
			h := fnv.New64a()
			fmt.Fprint(h, round, p)
			random := rand.New(rand.NewPCG(m.Seed, h.Sum64()))
			all[i] = drawn{p, random.Uint64()}
			if faulty := p.kind.faults(); random.IntN(4) > 0 || p.variant == spared {
				all[i].fault = faulty[random.IntN(len(faulty))]
			}
			if m.options.anywhen {
				all[i].point, all[i].variant = 0, variants[random.IntN(2)]
				all[i].after = time.Duration(random.Int64N(int64(40 * time.Millisecond)))
			}
		}
		slices.SortFunc(all, func(a, b drawn) int { return cmp.Compare(a.lot, b.lot) })
		for _, d := range all {
			if m.options.only == nil || m.options.only(d.plan) {
				out = append(out, d.plan)
			}
		}
	}
	return out[:m.options.kills]
}

// counted holds the points that several runs with the same scenarios, kinds and store share. The first run counts them.
type counted struct {
	plans []plan
}

// once returns the plans. The first call gets them from count.
func (c *counted) once(count func() ([]plan, error)) (plans []plan, err error) {
	if c != nil && c.plans != nil {
		return c.plans, nil
	}
	if plans, err = count(); c != nil && err == nil {
		c.plans = plans
	}
	return plans, err
}

// count runs each scenario once for each kind without an interruption, and returns a plan for each point that was
// passed.
func (m *matrix) count(ctx context.Context) ([]plan, error) {
	var scenario []plan
	for _, w := range scenarios {
		for _, k := range m.options.kinds() {
			if w.fits(k) && m.Selects(w.name) {
				scenario = append(scenario, plan{scenario: w, kind: k, variant: plain, step: -1})
			}
		}
	}
	found := make([][]plan, len(scenario))
	err := m.each(m.envs, scenario, func(e *env, i, user int) error {
		t := newTrial(ctx, e, scenario[i], user)
		if err := proof.Attempt(func() { found[i] = t.trace() }); err != nil {
			return err
		}
		for _, problem := range append(t.outcome.problems, t.outcome.late...) {
			m.Finding(t.scenario.name, "%s, without an interruption: %s", t.kind.name, problem)
		}
		return nil
	})
	return slices.Concat(found...), err
}

// trace runs the scenario without an interruption. It returns a plan for each variant at each point of each step.
func (t *trial) trace() (plans []plan) {
	t.env.copies = 1
	t.open()
	for i, s := range t.scenario.steps {
		t.await(s)
		proof.Must(t.env.worker.arm(0, "none"))
		s.do(t, t.env.worker)
		names, err := t.env.worker.order("points")
		proof.Must(err)
		for n := range strings.Split(names, ";") {
			for _, v := range t.kind.variants() {
				plans = append(plans, plan{scenario: t.scenario, kind: t.kind, variant: v, step: i, point: n + 1})
			}
		}
	}
	t.settle("the end", t.rested)
	t.checkTrial()
	return plans
}

// all runs the plans, each in the next free environment. It repeats a trial that only missed a time limit up to twice,
// with no other trial running. A real fault occurs there too.
func (m *matrix) all(ctx context.Context, plans []plan) error {
	var mu sync.Mutex
	var again []plan
	trial := func(e *env, p plan, user int) (outcome, error) {
		t := newTrial(ctx, e, p, user)
		if err := proof.Attempt(t.run); err != nil {
			return t.outcome, fmt.Errorf("%v: %w", p, err)
		}
		return t.outcome, ctx.Err()
	}
	err := m.each(m.envs, plans, func(e *env, i, user int) error {
		o, err := trial(e, plans[i], user)
		if err == nil && len(o.late) > 0 && len(o.problems) == 0 {
			mu.Lock()
			defer mu.Unlock()
			again = append(again, plans[i], plans[i])
			return nil
		}
		if err == nil {
			m.add(o)
		}
		return err
	})
	if err != nil {
		return err
	}
	m.Count(countRepeated, len(again)/2)
	return m.each(m.envs[:1], again, func(e *env, i, user int) error {
		o, err := trial(e, again[i], user)
		if o.problems = append(o.problems, o.late...); err == nil {
			m.add(o)
		}
		return err
	})
}

// each distributes the plans to the environments. Each plan has a separate user. The first error stops it.
func (m *matrix) each(envs []*env, plans []plan, do func(e *env, i, user int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, len(envs))
	var failed atomic.Bool
	base := int(m.users.Add(int64(len(plans)))) - len(plans)
	for lane, e := range envs {
		group.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(plans) {
					return
				}
				if errs[lane] = do(e, i, base+i); errs[lane] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// row is a line of the table of results.
type row struct{ struck, none, one, two, reviews, violations int }

// add reports the outcome of a trial.
func (m *matrix) add(o outcome) {
	if o.point == "" {
		m.Count(countMissed, 1)
	} else {
		m.Count(countStruck, 1)
	}
	for _, p := range o.problems {
		m.Finding(o.plan.scenario.name, "%v (%s): %s", o.plan, o.point, p)
	}
	if len(o.problems) == 0 {
		m.Held(o.plan.scenario.name, "%v (%s)", o.plan, o.point)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{"walk: " + o.plan.scenario.name, "kind: " + o.plan.kind.name,
		"how: " + string(o.plan.variant), "all"} {
		if m.rows[name] == nil {
			m.rows[name] = &row{}
			m.order = append(m.order, name)
		}
		m.rows[name].add(o)
	}
}

func (w *row) add(o outcome) {
	if o.point != "" {
		w.struck++
	}
	switch o.effects {
	case 0:
		w.none++
	case 1:
		w.one++
	default:
		w.two++
	}
	w.reviews += o.reviews
	w.violations += len(o.problems)
}

// table prints the results by scenario, kind and variant.
func (m *matrix) table() {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tstruck\tno effect\tone\ttwo (two runs)\treviews\tviolations\t")
	for _, prefix := range []string{"walk: ", "kind: ", "how: ", "all"} {
		for _, name := range m.order {
			if w := m.rows[name]; strings.HasPrefix(name, prefix) {
				fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, w.struck, w.none, w.one, w.two, w.reviews,
					w.violations)
			}
		}
	}
	_ = t.Flush() // writing to memory cannot fail
	m.Note("%s", b.String())
}
