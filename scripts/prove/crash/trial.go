package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// variant is how a worker is struck.
type variant string

const (
	plain  variant = "killed"
	storm  variant = "killed, each message three times"
	zombie variant = "stopped beyond its lease, and woken at the end"
	twin   variant = "stopped, another does the same, and woken"
)

var variants = []variant{plain, storm, zombie, twin}

// plan is a planned trial: a walk that is struck at a point of a step.
type plan struct {
	walk    walk
	kind    kind
	variant variant
	step    int           // which is struck
	point   int           // from 1
	after   time.Duration // instead of a point: the worker is killed this long after the step began
	torn    fault
}

func (p plan) String() string {
	where := fmt.Sprintf("point %d", p.point)
	if p.point == 0 {
		where = p.after.String()
	}
	s := fmt.Sprintf("%s, %s, %s at %s, %s", p.walk.name, p.kind.name, p.walk.steps[p.step].name, where, p.variant)
	if p.torn != fakegoogle.None {
		s += ", the provider: " + string(p.torn)
	}
	return s
}

// outcome is the result of a trial.
type outcome struct {
	plan     plan
	point    string // the point at which the worker was struck; empty: not struck
	effects  int
	reviews  int
	problems []string
	late     []string // problems that a slow machine may cause, given the short times of a step
}

// trial is a running plan. What it cannot go on after ends it (proof.Must): that is a failure of this program, and not
// of the tested one, which is noted (problem, overdue).
type trial struct {
	plan
	ctx         context.Context
	env         *env
	uid         string
	runs        []string
	approval    testkit.Approval
	slow        bool            // the run ended before it requested approval: the machine was too slow
	sleeper     *process        // a stopped worker
	sleeperDone <-chan struct{} // closed when its request has ended
	outcome     outcome
}

func newTrial(ctx context.Context, e *env, p plan, n int) *trial {
	t := &trial{plan: p, ctx: ctx, env: e, uid: fmt.Sprintf("user%06d", n), outcome: outcome{plan: p}}
	for i := range 2 {
		t.runs = append(t.runs, run.KeyedRunID(t.uid, t.key(i)))
	}
	if p.kind.readable {
		e.cloud.SetScopes(t.uid,
			append([]string{"https://www.googleapis.com/auth/gmail.readonly"}, testkit.Scopes...)...)
	}
	return t
}

func (t *trial) key(n int) string  { return fmt.Sprintf("%s-key-%d", t.uid, n) }
func (t *trial) name(n int) string { return fmt.Sprintf("%s run %d", t.uid, n) }

func (t *trial) problem(format string, args ...any) {
	t.outcome.problems = append(t.outcome.problems, fmt.Sprintf(format, args...))
}

func (t *trial) overdue(format string, args ...any) {
	t.outcome.late = append(t.outcome.late, fmt.Sprintf(format, args...))
}

// run runs the plan and checks the final state.
func (t *trial) run() {
	t.env.copies = 1
	if t.variant == storm {
		t.env.copies = 3
	}
	t.open()
	for i, s := range t.walk.steps {
		t.take(i, s)
	}
	t.settle("the end", t.rested)
	t.wakeSleeper()
	t.judge()
}

// open ensures that a worker runs, and has the trial's user link their Google account there.
func (t *trial) open() {
	t.ensureWorker()
	at := &testkit.Deployment{Cloud: t.env.cloud, Base: t.env.worker.url}
	proof.Must(at.Link(t.ctx, t.uid, t.uid))
}

// await waits until what must be true before the step is.
func (t *trial) await(s step) {
	if s.ready != nil {
		t.settle("before "+s.name, func() bool { return s.ready(t) })
	}
}

// take runs a step, struck or not. A step that failed because its worker died is repeated by the next.
func (t *trial) take(i int, s step) {
	t.await(s)
	if i == t.step {
		t.strike(s)
	}
	again := t.begin(s, t.env.worker)
	if i == t.step { // a repeated request waits until the sweep has the run advanced
		t.settle("again "+s.name, func() bool { return again.over(20 * time.Millisecond) })
	}
	if err := <-again; errors.Is(err, errDown) {
		proof.Must(err)
	} else if err != nil {
		t.problem("%v", err)
	}
}

// doing is a step in progress; its error is received once.
type doing chan error

func (t *trial) begin(s step, to *process) doing {
	d := make(doing, 1)
	go func() { d <- proof.Attempt(func() { s.do(t, to) }) }()
	return d
}

// over reports whether it has ended, waiting a moment for that.
func (d doing) over(moment time.Duration) bool {
	select {
	case err := <-d:
		d <- err
		return true
	case <-time.After(moment):
		return false
	}
}

// strike runs the step with a worker that is struck during it.
func (t *trial) strike(s step) {
	w := t.env.worker
	how := "kill"
	if t.variant == zombie || t.variant == twin {
		how = "stop"
	}
	if t.torn != fakegoogle.None {
		t.env.tearNext(t.torn, 1)
	}
	proof.Must(w.arm(t.point, how))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = proof.Attempt(func() { s.do(t, w) }) // it dies, or is cut off
	}()
	if t.point == 0 {
		time.Sleep(t.after)
		t.outcome.point = "some moment"
		t.replace(w, done)
		return
	}
	name, struck := w.struck(done)
	if !struck {
		return
	}
	t.outcome.point = s.name + ": " + name
	if t.variant == zombie || t.variant == twin {
		t.double(s, w, done)
		return
	}
	t.replace(w, done)
}

// replace starts a worker in place of a dead one.
func (t *trial) replace(w *process, done <-chan struct{}) {
	proof.Must(w.kill())
	<-done
	t.env.worker = nil
	t.ensureWorker()
}

// double lets another worker continue while this one is stopped: beyond its lease, or only for the same request.
func (t *trial) double(s step, w *process, done <-chan struct{}) {
	t.env.worker = nil
	t.ensureWorker()
	t.sleeper, t.sleeperDone = w, done
	if t.variant == zombie {
		return
	}
	other := t.begin(s, t.env.worker)
	other.over(50 * time.Millisecond)
	t.wakeSleeper()
	// The request may have got the answer that the other worker has the run.
	t.settle("both "+s.name, func() bool { return other.over(20 * time.Millisecond) })
}

// wakeSleeper continues a stopped worker, waits until its request ends, and then stops it.
func (t *trial) wakeSleeper() {
	if t.sleeper == nil {
		return
	}
	w := t.sleeper
	t.sleeper = nil
	proof.Must(w.wake())
	select {
	case <-t.sleeperDone:
	case <-time.After(patience):
		t.problem("a woken worker does not come to an end")
	}
	if proof.Must(w.kill()); t.variant != twin {
		t.settle("after the waking", t.rested)
	}
}

// ensureWorker starts a worker with the right settings if none runs.
func (t *trial) ensureWorker() {
	want := fmt.Sprint(t.walk.ttl, t.kind.mode)
	if t.env.worker != nil && t.env.settingsOfWorker == want {
		return
	}
	if t.env.worker != nil {
		proof.Must(t.env.worker.kill())
	}
	var err error
	t.env.worker, err = t.env.start(t.walk.ttl, t.kind.mode)
	proof.Must(err)
	t.env.settingsOfWorker = want
}

// at is the client of the trial's user at a worker.
func (t *trial) at(to *process) testkit.Client {
	return func(ctx context.Context, method, path string, body any, header ...string) (testkit.Answer, error) {
		token, err := t.env.cloud.Token(t.uid)
		if err != nil {
			return testkit.Answer{}, err
		}
		a, err := testkit.Connect(to.client, to.url, token)(ctx, method, path, body, header...)
		if err != nil {
			return a, fmt.Errorf("%w: %w", errDown, err)
		}
		return a, nil
	}
}

func (t *trial) look(n int) testkit.Answer {
	a, err := t.at(t.env.worker).Run(context.Background(), t.runs[n])
	if err != nil || a.HTTP != 200 {
		return testkit.Answer{}
	}
	return a
}

// over reports whether the n-th run has ended, or waits for a review.
func (t *trial) over(n int) bool {
	a := t.look(n)
	return a.Status == "completed" || a.Status == "failed" || len(a.Approvals) > 0 && a.Approvals[0].Kind == "review"
}

// asked reports whether the first run has requested its approval, and records it.
func (t *trial) asked() bool {
	a := t.look(0)
	if len(a.Approvals) > 0 && t.approval.ApprovalID == "" {
		t.approval = a.Approvals[0]
	}
	t.slow = t.approval.ApprovalID == "" && a.Status == "failed"
	return t.approval.ApprovalID != "" || t.slow
}

// expired reports whether the first run's approval has expired.
func (t *trial) expired() bool {
	if !t.asked() {
		return false
	}
	time.Sleep(shortTTL / 10)
	a := t.look(0)
	return a.Status == "failed" || t.approval.ApprovalID == "" || time.Now().After(t.approval.ExpiresAt)
}

// rested reports whether every run that was started has ended, in the store too, or waits for its user.
func (t *trial) rested() bool {
	for n := range t.started() {
		a := t.look(n)
		ended := a.Status == "completed" || a.Status == "failed"
		if !ended && len(a.Approvals) == 0 || ended && !t.written(a) {
			return false
		}
	}
	return true
}

// written reports whether the stored run has the state that was answered: an expiry is answered before it is stored.
func (t *trial) written(a testkit.Answer) bool {
	if a.RunID == "" {
		return true
	}
	docs, err := t.env.store.Get(t.ctx, document.RunPath(a.RunID))
	return err == nil && (!docs[0].Exists() || document.ApprovalFieldsOf(docs[0]).Status == a.Status)
}

// ends describes how each run ended.
func (t *trial) ends() string {
	var out []string
	for n := range t.started() {
		a := t.look(n)
		text := fmt.Sprintf("run %d is %s %s", n+1, a.Status, a.ErrorReason)
		for _, act := range a.Actions {
			text += fmt.Sprintf(", its action %s %s", act.Status, act.ErrorReason)
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// started returns how many runs the walk starts.
func (t *trial) started() int {
	n := 0
	for _, s := range t.walk.steps {
		if strings.HasPrefix(s.name, "start ") {
			n++
		}
	}
	return n
}

// settle runs the scheduler and the queue until so reports true, for at most about two leases.
func (t *trial) settle(what string, so func() bool) {
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.overdue("%s: it does not come about; the run is %+v", what, t.look(0))
			return
		}
		_, err := t.env.sweeper.Sweep(t.ctx)
		proof.Must(err)
		proof.Must(t.env.deliver(t.ctx))
	}
}
