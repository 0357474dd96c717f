package hostile

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// push runs a case of push:resume: the run is brought into the case's state, and the message is delivered, and then
// redelivered as Pub/Sub may do.
func push(s *env) got {
	if s.openFaulty(); s.has("delay_handler_ms") {
		return s.redelivered()
	}
	want, release := s.state()
	defer release()
	m := s.pushed()
	if s.has("concurrent") {
		return s.stormed(m, want)
	}
	if s.takeText("firestore") != "" {
		s.store.Set(faulty.Down)
	}
	open := s.c.Input["state"] != nil && s.effects() == 0
	before := s.effects()
	a, err := s.try(m)
	s.store.Set()
	s.must(err)
	g := gotOf(a)
	logs := s.w.Logs.String()
	switch malformed := strings.Contains(logs, "push_malformed"); {
	case malformed && a.HTTP == http.StatusNoContent:
		g.class = "ValidationError" // no caller gets it, but the metrics count it
	case s.c.Expect.Class == "PolicyError" && open && a.HTTP == http.StatusNoContent:
		g.class = "PolicyError" // as above: the message requests an action without approval, and nothing ran
	}
	release()
	if n := s.effects(); a.HTTP >= 400 && a.HTTP < 500 && n != before {
		s.stop("a message that was refused had an effect")
	}
	s.onlyOnce(m, a, want)
	return g
}

// onlyOnce compares the effects of the message with the approvals, and then delivers the same message again.
func (s *env) onlyOnce(m message, a testkit.Answer, want int) {
	if a.HTTP < 400 {
		n := s.effects()
		if n > want || n < want && s.c.Expect.Class == "none" { // a malformed message leaves the work to a valid one
			s.stop("%d effects, want %d", n, want)
		}
		if again := s.send(m); again.HTTP != a.HTTP {
			s.wrong("the same message again is answered %d, first %d", again.HTTP, a.HTTP)
		}
	}
	s.settle(want)
}

// settle delivers everything that is due. Each approved action must happen once.
func (s *env) settle(want int) {
	for deadline := time.Now().Add(10 * time.Second); ; {
		s.pass(time.Minute / 2)
		s.must(s.sweep())
		n := s.effects()
		if n == want {
			return
		}
		if n > want || time.Now().After(deadline) {
			s.stop("%d effects in the end, want %d", n, want)
		}
	}
}

// pushed returns the message of the case.
func (s *env) pushed() message {
	attributes, hasAttributes := s.take("attributes")
	attempt, hasAttempt := s.take("deliveryAttempt")
	if !s.has("body") && !s.has("raw") {
		s.left["body"] = "$PUSH(valid)"
	}
	if hasAttributes || hasAttempt {
		v, _ := s.take("body")
		envelope, _ := v.(map[string]any)
		inner, ok := envelope["message"].(map[string]any)
		if !ok {
			s.unknown("attributes without an envelope")
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

// state creates the run that the message is about. want is the number of effects that it may have in the end. release
// lets a blocked effect continue.
func (s *env) state() (want int, release func()) {
	state := strings.ToLower(s.takeText("state"))
	asked := s.open1("", s.as)
	s.runs["PUSH"], release = asked, func() {}
	has := func(word string) bool { return strings.Contains(state, word) }
	switch {
	case state == "" && s.c.Category == "jwt", has("open"), has("awaiting"), has("still waits"):
		// Nothing is to be done, whatever the message says.
	case has("executing") && (has("lapsed") || has("expired") || has("dead")):
		want = 1
		s.abandoned(asked)
	case has("executing"):
		want, release = 1, s.executing(asked)
	case has("disabled"), has("shut out"):
		s.resolve(s.as, asked.Approvals[0], "approve_once")
		s.disable(s.as)
	case state == "", has("approved"):
		want = 1
		s.resolve(s.as, asked.Approvals[0], "approve_once")
	case has("missing"), has("deleted"), has("gone"):
		s.commit(store.Delete(document.RunPath(asked.RunID), time.Time{}))
	case has("completed"), has("already sent"), has("finished"):
		want = 1
		s.decided(s.as, asked, "approve_once")
	case has("rejected"), has("said no"):
		s.decided(s.as, asked, "reject")
	case has("cancelled"), has("failed"), has("run over"):
		s.cancel(s.as, asked.RunID)
	case has("expired"):
		s.pass(approvalTTL + time.Second)
	default:
		s.unknown("the state %q", state)
	}
	return want, release
}

// executing makes a process hold the run's lease in the middle of its effect, until release is called.
func (s *env) executing(asked testkit.Answer) (release func()) {
	hold, inside, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" && first.CompareAndSwap(false, true) {
			close(inside)
			<-hold
		}
		return fakegoogle.Fault{}
	})
	s.resolve(s.as, asked.Approvals[0], "approve_once")
	go func() {
		defer close(done)
		_ = s.deliver() // the effects show the result
	}()
	release = sync.OnceFunc(func() {
		close(hold)
		<-done
	})
	select {
	case <-inside:
	case <-time.After(10 * time.Second):
		release()
		s.stop("the worker does not begin")
	}
	return release
}

// abandoned makes a process die in the middle of its effect, and lets its lease lapse.
func (s *env) abandoned(asked testkit.Answer) {
	var struck atomic.Int64
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" && struck.Add(1) == 1 {
			s.store.Set(faulty.Exit)
		}
		return fakegoogle.Fault{}
	})
	s.dieIn(asked, &struck)
}

// atOnce sends a message as often as the case says, concurrently.
func (s *env) atOnce(m message) []testkit.Answer {
	v, _ := s.take("concurrent")
	return together(s.number(v), func(int) (testkit.Answer, error) { return s.try(m) })
}

// stormed delivers the message many times at once.
func (s *env) stormed(m message, want int) got {
	g := got{status: 204, class: "none"}
	for _, a := range s.atOnce(m) {
		if a.HTTP != 204 && a.HTTP != 503 {
			g = gotOf(a)
		}
	}
	s.settle(want)
	return g
}

// redelivered delivers a message again while its first delivery is still being processed. The case's times are
// shortened to a sixteenth, because only the overlap matters.
func (s *env) redelivered() got {
	delay, _ := s.take("delay_handler_ms")
	ack, _ := s.take("ack_deadline_s")
	handling := time.Duration(s.number(delay)) * time.Millisecond / 16
	again := time.Duration(s.number(ack)) * time.Second / 16
	asked := s.open1("", s.as)
	s.runs["PUSH"] = asked
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" {
			return fakegoogle.Fault{Delay: handling}
		}
		return fakegoogle.Fault{}
	})
	s.resolve(s.as, asked.Approvals[0], "approve_once")
	m := s.pushed()
	var first testkit.Answer
	ended := make(chan error, 1)
	go func() {
		var err error
		first, err = s.try(m)
		ended <- err
	}()
	for range 20 {
		select {
		case err := <-ended:
			s.must(err)
			s.onlyOnce(m, first, 1)
			return gotOf(first)
		case <-time.After(again):
			if a := s.send(m); a.HTTP != 503 && a.HTTP != 204 {
				s.stop("a redelivery in the middle is answered %d", a.HTTP)
			}
		}
	}
	s.stop("the first delivery does not end")
	return got{}
}
