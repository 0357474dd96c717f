package crash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// trial is a plan that is being run. An error that prevents its continuation ends it (proof.Must), and is a failure of
// the proof program. Failures of the tested program are recorded with problem or overdue.
type trial struct {
	plan
	ctx         context.Context
	env         *env
	uid         string
	runs        []string
	approval    testkit.Approval
	terminal    string
	held        string          // the ID of the e-mail whose file is sent
	deadline    time.Time       // the session's deadline
	nothing     bool            // the first run had no effect, so it cannot be undone
	slow        bool            // the run ended before its card, because the machine was slow or a fault hit the host
	upto        time.Time       // the creation time of the last e-mail to the user, according to the store
	sleeper     *process        // a paused worker
	sleeperDone <-chan struct{} // closed when the paused worker's request has ended
	outcome     outcome
}

func newTrial(ctx context.Context, e *env, p plan, n int) *trial {
	t := &trial{plan: p, ctx: ctx, env: e, uid: fmt.Sprintf("user%06d", n), outcome: outcome{plan: p}}
	for i := range 3 {
		t.runs = append(t.runs, run.KeyedRunID(t.uid, t.key(i)))
	}
	if slices.ContainsFunc(p.scenario.steps, func(s step) bool { return s.name == takeBack.name }) {
		t.runs[1] = t.takingBack()
	}
	if p.kind.readable {
		e.cloud.SetScopes(t.uid,
			append([]string{"https://www.googleapis.com/auth/gmail.readonly"}, testkit.Scopes...)...)
	}
	if p.kind.alias {
		e.cloud.Google.SetSendAs(testkit.Address(t.uid), fakegoogle.SendAs{Address: desk})
	}
	if p.kind.file {
		proof.Must(e.cloud.Google.Receive(testkit.Address(t.uid), []byte(fileMail)))
		t.held = e.cloud.Google.Newest(testkit.Address(t.uid))
	}
	return t
}

func (t *trial) key(n int) string { return fmt.Sprintf("%s-key-%d", t.uid, n) }
func (t *trial) name(n int) string {
	if t.kind.alias {
		return fmt.Sprintf("%s run %d%s", t.uid, n, fromDesk)
	}
	if t.kind.file {
		return fmt.Sprintf("%s run %d%s%s", t.uid, n, withFile, t.held)
	}
	return fmt.Sprintf("%s run %d", t.uid, n)
}

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
	for i, s := range t.scenario.steps {
		t.take(i, s)
	}
	t.settle("the end", t.rested)
	if t.wakeSleeper(); t.kind.onHost {
		t.env.host.recover(true)
	}
	t.checkTrial()
}

// open ensures that a worker runs, and links a Google account of the trial's user there.
func (t *trial) open() {
	t.ensureWorker()
	if t.kind.onHost {
		t.addHost()
		return
	}
	t.env.failOp(map[string]string{create.tool: fakedocker.Create, script.tool: fakedocker.ExecStart,
		edit.tool: fakedocker.ExecInput, fetch.tool: fakedocker.Install}[t.kind.tool])
	at := &testkit.Deployment{Cloud: t.env.cloud, Base: t.env.worker.url}
	if t.kind.plans {
		proof.Must(t.addRepository(at))
		t.limit()
		return
	}
	proof.Must(at.Link(t.ctx, t.uid, t.uid))
}

// await waits until the step's precondition holds.
func (t *trial) await(s step) {
	if s.ready != nil {
		t.settle("before "+s.name, func() bool { return s.ready(t) })
	}
}

// take runs a step, with or without an interruption. If the worker died and the step failed, the next worker repeats
// it.
func (t *trial) take(i int, s step) {
	t.await(s)
	if i == t.step {
		t.strike(s)
	}
	again := t.begin(s, t.env.worker)
	if i == t.step { // a repeated request waits until the sweep resumes the run
		t.settle("again "+s.name, func() bool { return again.over(20 * time.Millisecond) })
	}
	if err := <-again; errors.Is(err, errDown) {
		proof.Must(err)
	} else if err != nil {
		t.problem("%v", err)
	}
}

// doing is a running step. Its error can be received once.
type doing chan error

func (t *trial) begin(s step, to *process) doing {
	d := make(doing, 1)
	go func() { d <- proof.Attempt(func() { s.do(t, to) }) }()
	return d
}

// over waits for at most the given time, and reports whether the step has ended.
func (d doing) over(moment time.Duration) bool {
	select {
	case err := <-d:
		d <- err
		return true
	case <-time.After(moment):
		return false
	}
}

// strike runs the step and interrupts the worker during it.
func (t *trial) strike(s step) {
	w := t.env.worker
	how := "kill"
	switch {
	case t.variant.stops():
		how = "stop"
	case t.variant == spared:
		how = "wait"
	}
	if t.fault != fakegoogle.None && !t.kind.onHost {
		t.env.failNext(t.fault, 1)
	}
	proof.Must(w.arm(t.point, how))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = proof.Attempt(func() { s.do(t, w) }) // the worker dies, or its connection is cut
	}()
	if t.point == 0 {
		time.Sleep(t.after)
		t.outcome.point = "some moment"
		t.suffer()
		t.replace(w, done)
		return
	}
	name, struck := w.struck(done)
	if !struck {
		return
	}
	t.outcome.point = s.name + ": " + name
	t.suffer()
	switch {
	case t.variant.stops():
		t.double(s, w, done)
	case t.variant == spared:
		_, err := w.order("wake")
		proof.Must(err)
		t.settle("spared "+s.name, func() bool { return closed(done) })
	default:
		t.replace(w, done)
	}
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(20 * time.Millisecond):
		return false
	}
}

// suffer injects the host's fault.
func (t *trial) suffer() {
	if t.kind.onHost {
		t.env.host.suffer(t.fault)
	}
}

// replace starts a worker in place of a dead one.
func (t *trial) replace(w *process, done <-chan struct{}) {
	proof.Must(w.kill())
	<-done
	t.env.worker = nil
	t.ensureWorker()
}

// double lets another worker continue while this one is paused: until the lease has lapsed, or only for the same
// request.
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
	// The response may be that the other worker advances the run.
	t.settle("both "+s.name, func() bool { return other.over(20 * time.Millisecond) })
}

// wakeSleeper continues a paused worker, waits until its request ends, and then stops the worker.
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
		t.problem("a woken worker does not finish")
	}
	if proof.Must(w.kill()); t.variant != twin {
		t.settle("after the waking", t.rested)
	}
}

// ensureWorker starts a worker with the right settings if none runs.
func (t *trial) ensureWorker() {
	want := fmt.Sprint(t.scenario.ttl, t.kind.mode, t.kind.mailed, t.kind.alias || t.kind.file, t.scenario.within)
	if t.env.worker != nil && t.env.settingsOfWorker == want {
		return
	}
	if t.env.worker != nil {
		proof.Must(t.env.worker.kill())
	}
	var err error
	skew := skewed(t.env.random)
	if t.scenario.within > 0 {
		skew = behind
	}
	t.env.worker, err = t.env.start(t.scenario.ttl, t.kind, skew)
	proof.Must(err)
	t.env.settingsOfWorker = want
}

// settle runs the scheduler and the queue until so reports true, for at most about two leases.
func (t *trial) settle(what string, so func() bool) {
	for end := time.Now().Add(patience); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.overdue("%s: timed out; the run is %+v", what, t.view(0))
			return
		}
		if t.kind.onHost {
			t.env.host.recover(false)
		}
		_, err := t.env.sweeper.Sweep(t.ctx)
		proof.Must(err)
		proof.Must(t.env.deliver(t.ctx, t.env.worker))
	}
}
