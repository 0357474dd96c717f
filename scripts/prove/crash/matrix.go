package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// torns lists the provider's faults in addition to the strike; most trials have none, so that the loss has one cause.
var torns = []fault{fakegoogle.None, fakegoogle.None, fakegoogle.None, fakegoogle.StatusBefore,
	fakegoogle.StatusAfter, fakegoogle.ResetBefore,
	fakegoogle.ResetAfter, fakegoogle.HangBefore, fakegoogle.HangAfter, fakegoogle.EmptyAfter, fakegoogle.OddAfter,
	fakegoogle.CutAfter}

// try opens the environments, counts the points, and carries out the trials.
func try(ctx context.Context, o options, dir string) (*report, error) {
	began := time.Now()
	r := &report{options: o}
	var envs []*env
	defer func() {
		for _, e := range envs {
			_ = e.close() // its worker is dead or ends here; the store's directory is temporary
		}
	}()
	for i := range o.lanes {
		e, err := newEnv(ctx, fmt.Sprintf("crash-lane-%d-%d", o.seed%1e6, i), o.store, dir, o.seed+uint64(i),
			os.Stderr)
		if err != nil {
			return nil, err
		}
		envs = append(envs, e)
	}
	plans, err := r.count(ctx, envs)
	if err != nil {
		return nil, err
	}
	if err := r.all(ctx, envs, choose(plans, o)); err != nil {
		return nil, err
	}
	r.took = time.Since(began)
	return r, nil
}

// choose returns the requested number of plans: each once, in a random order, and then again with other faults.
func choose(plans []plan, o options) []plan {
	random := rand.New(rand.NewPCG(o.seed, 0))
	var out []plan
	for len(out) < o.kills {
		for _, i := range random.Perm(len(plans)) {
			p := plans[i]
			p.torn = torns[random.IntN(len(torns))]
			if o.anywhen {
				p.point, p.variant, p.after = 0, variants[random.IntN(2)],
					time.Duration(random.Int64N(int64(40*time.Millisecond)))
			}
			out = append(out, p)
		}
	}
	return out[:o.kills]
}

// count runs each walk once for each kind without a strike, and returns a plan for each point that was passed.
func (r *report) count(ctx context.Context, envs []*env) ([]plan, error) {
	var plans []plan
	var mu sync.Mutex
	var walked []plan
	for _, w := range walks {
		for _, k := range kinds {
			if w.fits(k) {
				walked = append(walked, plan{walk: w, kind: k, variant: plain, step: -1})
			}
		}
	}
	err := r.each(envs, walked, func(e *env, p plan, n int) error {
		t := newTrial(e, p, n)
		found, err := t.trace(ctx)
		mu.Lock()
		defer mu.Unlock()
		plans = append(plans, found...)
		for _, problem := range append(t.outcome.problems, t.outcome.late...) {
			err = errors.Join(err, fmt.Errorf("%s, %s, without a blow: %s", p.walk.name, p.kind.name, problem))
		}
		return err
	})
	r.points = len(plans) / len(variants)
	return plans, err
}

// trace runs the walk without a strike and returns a plan for each variant of each point of each step.
func (t *trial) trace(ctx context.Context) (plans []plan, err error) {
	t.env.copies = 1
	if err := t.open(ctx); err != nil {
		return nil, err
	}
	for i, s := range t.walk.steps {
		if s.ready != nil {
			if err := t.settle(ctx, "before "+s.name, func(context.Context) bool { return s.ready(t) }); err != nil {
				return nil, err
			}
		}
		if err := t.env.worker.arm(0, "none"); err != nil {
			return nil, err
		}
		if err := s.do(ctx, t, t.env.worker); err != nil {
			return nil, err
		}
		names, err := t.env.worker.order("points")
		if err != nil {
			return nil, err
		}
		for n := range strings.Split(names, ";") {
			for _, v := range variants {
				plans = append(plans, plan{walk: t.walk, kind: t.kind, variant: v, step: i, point: n + 1})
			}
		}
	}
	if err := t.settle(ctx, "the end", t.rested); err != nil {
		return nil, err
	}
	return plans, t.judge(ctx)
}

// all runs the plans, each in the next free environment. A trial in which only a time limit was missed is repeated
// twice alone on the machine: a real fault occurs there too.
func (r *report) all(ctx context.Context, envs []*env, plans []plan) error {
	var mu sync.Mutex
	var again []plan
	err := r.each(envs, plans, func(e *env, p plan, n int) error {
		o, err := newTrial(e, p, n).run(ctx)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		if len(o.late) > 0 && len(o.problems) == 0 {
			mu.Lock()
			defer mu.Unlock()
			again = append(again, p, p)
			return ctx.Err()
		}
		r.add(o)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	r.repeated = len(again) / 2
	return r.each(envs[:1], again, func(e *env, p plan, n int) error {
		o, err := newTrial(e, p, n).run(ctx)
		if err != nil {
			return fmt.Errorf("%v: %w", p, err)
		}
		o.problems = append(o.problems, o.late...)
		r.add(o)
		return ctx.Err()
	})
}

// each distributes the plans to the environments; the first error ends it.
func (r *report) each(envs []*env, plans []plan, do func(e *env, p plan, n int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, len(envs))
	var failed atomic.Bool
	base := int(r.users.Add(int64(len(plans)))) - len(plans)
	for i, e := range envs {
		group.Go(func() {
			for !failed.Load() {
				n := int(next.Add(1)) - 1
				if n >= len(plans) {
					return
				}
				if errs[i] = do(e, plans[n], base+n); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// report is the result of the trials.
type report struct {
	options options
	points  int
	took    time.Duration
	users   atomic.Int64

	repeated int // trials in which a time limit was missed

	mu         sync.Mutex
	struck     int
	missed     int // the point was not passed
	violations int
	rows       map[string]*row
	order      []string
	details    []string
}

type row struct{ struck, none, one, two, more, reviews, violations int }

func (r *report) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rows == nil {
		r.rows = map[string]*row{}
	}
	if o.point == "" {
		r.missed++
	} else {
		r.struck++
	}
	for _, name := range []string{"walk: " + o.plan.walk.name, "kind: " + o.plan.kind.name,
		"how: " + string(o.plan.variant), "all"} {
		if r.rows[name] == nil {
			r.rows[name] = &row{}
			r.order = append(r.order, name)
		}
		r.rows[name].add(o)
	}
	r.violations += len(o.problems)
	for _, p := range o.problems {
		r.details = append(r.details, fmt.Sprintf("%v (%s): %s", o.plan, o.point, p))
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
	case 2:
		w.two++
	default:
		w.more++
	}
	w.reviews += o.reviews
	w.violations += len(o.problems)
}

func (r *report) print(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tstruck\tno effect\tone\ttwo (two runs)\treviews\tviolations\t")
	for _, prefix := range []string{"walk: ", "kind: ", "how: ", "all"} {
		for _, name := range r.order {
			if w := r.rows[name]; strings.HasPrefix(name, prefix) {
				fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", name, w.struck, w.none, w.one, w.two+w.more, w.reviews,
					w.violations)
			}
		}
	}
	_ = t.Flush() // a closed terminal is not an error
	for i, d := range r.details {
		if i == 40 {
			fmt.Fprintf(out, "and %d more\n", len(r.details)-i)
			break
		}
		fmt.Fprintln(out, d)
	}
	fmt.Fprintf(out, "%d points, %d struck, %d not reached, %d repeated alone, %d violations on the %s store in %s "+
		"(%.0f a second), seed %d\n", r.points, r.struck, r.missed, r.repeated, r.violations,
		r.options.store, r.took.Round(time.Second), float64(r.struck)/r.took.Seconds(), r.options.seed)
}
