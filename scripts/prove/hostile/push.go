package hostile

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// push runs a case of push:resume: the run is brought into the state of the case, the message comes, and once more as
// Pub/Sub may send it.
func push(s *env) (got, error) {
	if err := s.openFaulty(); err != nil {
		return got{}, err
	}
	if _, ok := s.peek("delay_handler_ms"); ok {
		return s.redelivered()
	}
	want, release, err := s.state()
	if err != nil {
		return got{}, err
	}
	defer release()
	m, err := s.pushed()
	if err != nil {
		return got{}, err
	}
	if _, ok := s.peek("concurrent"); ok {
		return s.stormed(m, want)
	}
	unavailable, err := s.takeText("firestore")
	if err != nil {
		return got{}, err
	}
	if unavailable != "" {
		s.store.Set(faulty.Down)
	}
	open := s.c.Input["state"] != nil && s.effects() == 0
	before := s.effects()
	a, err := s.send(m)
	s.store.Set()
	if err != nil {
		return got{}, err
	}
	g := gotOf(a)
	logs := s.w.Logs.String()
	switch malformed := strings.Contains(logs, "push_malformed"); {
	case malformed && a.HTTP == http.StatusNoContent:
		g.class = "ValidationError" // no caller gets it, but it is counted
	case s.c.Expect.Class == "PolicyError" && open && a.HTTP == http.StatusNoContent:
		g.class = "PolicyError" // likewise: what the message asks for is not approved, and nothing ran
	}
	release()
	if n := s.effects(); a.HTTP >= 400 && a.HTTP < 500 && n != before {
		return g, errors.New("a message that was refused had an effect")
	}
	return g, s.onlyOnce(m, a, want)
}

// onlyOnce compares what the message caused with what was approved, and has the same message come again.
func (s *env) onlyOnce(m message, a testkit.Answer, want int) error {
	if a.HTTP >= 400 {
		return s.settle(want)
	}
	n := s.effects()
	if n > want || n < want && s.c.Expect.Class == "none" { // a malformed message leaves the work to a better one
		return fmt.Errorf("%d effects, want %d", n, want)
	}
	again, err := s.send(m)
	if err == nil && again.HTTP != a.HTTP {
		err = fmt.Errorf("the same message again is answered %d, first %d", again.HTTP, a.HTTP)
	}
	return errors.Join(err, s.settle(want))
}

// settle delivers everything that is due: what was approved is done, once.
func (s *env) settle(want int) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		s.pass(time.Minute / 2)
		if err := s.sweep(); err != nil {
			return err
		}
		n := s.effects()
		if n == want {
			return nil
		}
		if n > want || time.Now().After(deadline) {
			return fmt.Errorf("%d effects in the end, want %d", n, want)
		}
	}
}

// pushed returns the message of the case.
func (s *env) pushed() (message, error) {
	attributes, hasAttributes, e1 := s.take("attributes")
	attempt, hasAttempt, e2 := s.take("deliveryAttempt")
	if err := errors.Join(e1, e2); err != nil {
		return message{}, err
	}
	_, body := s.peek("body")
	_, raw := s.peek("raw")
	if !body && !raw {
		s.left["body"] = "$PUSH(valid)"
	}
	if hasAttributes || hasAttempt {
		v, _, err := s.take("body")
		envelope, ok := v.(map[string]any)
		inner, hasInner := envelope["message"].(map[string]any)
		if err != nil || !ok || !hasInner {
			return message{}, errors.Join(err, unknown("attributes without an envelope"))
		}
		if hasAttributes {
			inner["attributes"] = attributes
		}
		if hasAttempt {
			envelope["deliveryAttempt"] = attempt
		}
		s.left["body"] = envelope
	}
	return s.compose(routes["resume"])
}

// state makes the run that the message is about; want is how many effects it may have in the end. release lets what is
// kept waiting continue.
func (s *env) state() (want int, release func(), err error) {
	state, err := s.takeText("state")
	release = func() {}
	if err != nil {
		return 0, release, err
	}
	run, err := s.open1("", s.as)
	if err != nil {
		return 0, release, err
	}
	s.runs["PUSH"] = run
	ap := run.Approvals[0]
	state = strings.ToLower(state)
	has := func(word string) bool { return strings.Contains(state, word) }
	switch {
	case state == "" && s.c.Category == "jwt", has("open"), has("awaiting"), has("still waits"):
		// nothing is to be done, whatever the message
	case has("executing") && (has("lapsed") || has("expired") || has("dead")):
		want = 1
		err = s.abandoned(run)
	case has("executing"):
		want = 1
		release, err = s.executing(run)
	case has("disabled"), has("shut out"):
		_, e1 := s.resolve(s.as, ap, "approve_once")
		u := agent.User{}
		err = errors.Join(e1, s.change(document.UserPath(s.as), &u, func() { u.Disabled = true }))
	case state == "", has("approved"):
		want = 1
		_, err = s.resolve(s.as, ap, "approve_once")
	case has("missing"), has("deleted"), has("gone"):
		_, err = s.w.App.Store.Commit(s.ctx, store.Delete(document.RunPath(run.RunID), time.Time{}))
	case has("completed"), has("already sent"), has("finished"):
		want = 1
		err = s.decided(s.as, run, "approve_once")
	case has("rejected"), has("said no"):
		err = s.decided(s.as, run, "reject")
	case has("cancelled"), has("failed"), has("run over"):
		_, err = s.call(s.as, "POST", "/api/agent/runs/"+run.RunID+"/cancel", "")
	case has("expired"):
		s.pass(approvalTTL + time.Second)
	default:
		err = unknown("the state %q", state)
	}
	return want, release, err
}

// executing has a process hold the lease of the run, in the middle of its effect, until release.
func (s *env) executing(run testkit.Answer) (release func(), err error) {
	hold, inside, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first, freed atomic.Bool
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" && first.CompareAndSwap(false, true) {
			close(inside)
			<-hold
		}
		return fakegoogle.Fault{}
	})
	release = func() {
		if freed.CompareAndSwap(false, true) {
			close(hold)
			<-done
		}
	}
	if _, err := s.resolve(s.as, run.Approvals[0], "approve_once"); err != nil {
		close(done)
		return release, err
	}
	go func() {
		defer close(done)
		_ = s.deliver() // what became of it shows in the effects
	}()
	select {
	case <-inside:
		return release, nil
	case <-time.After(10 * time.Second):
		return release, errors.New("the worker does not begin")
	}
}

// abandoned has a process die in the middle of its effect, and its lease lapse.
func (s *env) abandoned(run testkit.Answer) error {
	var struck atomic.Int64
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" && struck.Add(1) == 1 {
			s.store.Set(faulty.Exit)
		}
		return fakegoogle.Fault{}
	})
	return s.dieIn(run, &struck)
}

// atOnce sends a message as many times as the case says, all at once.
func (s *env) atOnce(m message) ([]testkit.Answer, error) {
	v, _, err := s.take("concurrent")
	if err != nil {
		return nil, err
	}
	n, err := number(v)
	if err != nil {
		return nil, err
	}
	answers, errs := make([]testkit.Answer, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { answers[i], errs[i] = s.send(m) })
	}
	wg.Wait()
	return answers, errors.Join(errs...)
}

// stormed has the message come many times at once.
func (s *env) stormed(m message, want int) (got, error) {
	answers, err := s.atOnce(m)
	g := got{status: 204, class: "none"}
	for _, a := range answers {
		if a.HTTP != 204 && a.HTTP != 503 {
			g = gotOf(a)
		}
	}
	return g, errors.Join(err, s.settle(want))
}

// redelivered has a message delivered again while its first delivery is still being processed. The times of the case
// are cut to a sixteenth: what counts is that the second delivery comes in the middle.
func (s *env) redelivered() (got, error) {
	delay, _, e1 := s.take("delay_handler_ms")
	ack, _, e2 := s.take("ack_deadline_s")
	ms, e3 := number(delay)
	seconds, e4 := number(ack)
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return got{}, err
	}
	run, err := s.open1("", s.as)
	if err != nil {
		return got{}, err
	}
	s.runs["PUSH"] = run
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" {
			return fakegoogle.Fault{Delay: time.Duration(ms) * time.Millisecond / 16}
		}
		return fakegoogle.Fault{}
	})
	if _, err := s.resolve(s.as, run.Approvals[0], "approve_once"); err != nil {
		return got{}, err
	}
	m, err := s.pushed()
	if err != nil {
		return got{}, err
	}
	type answered struct {
		testkit.Answer
		error
	}
	first := make(chan answered)
	go func() {
		a, err := s.send(m)
		first <- answered{a, err}
	}()
	var last answered
	for again := 0; again < 20; again++ {
		select {
		case last = <-first:
			if last.error != nil {
				return got{}, last.error
			}
			return gotOf(last.Answer), s.onlyOnce(m, last.Answer, 1)
		case <-time.After(time.Duration(seconds) * time.Second / 16):
			if a, err := s.send(m); err != nil || a.HTTP != 503 && a.HTTP != 204 {
				return got{}, errors.Join(err, fmt.Errorf("a redelivery in the middle is answered %d", a.HTTP))
			}
		}
	}
	return got{}, errors.New("the first delivery does not end")
}
