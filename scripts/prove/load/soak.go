package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

const (
	soakRate  = 20 // runs per second
	soakUsers = 200
	killEvery = 5 * time.Second
	faults    = 0.10
	thinking  = 60 * time.Millisecond // the model pauses this long before its answer and before each piece of it
	mailing   = 50 * time.Millisecond // each call of Gmail takes this long, so that a kill interrupts work
	soakTail  = 6 * time.Minute       // after the load: approvals expire after 1 min, a dead worker's lease after 75 s
	readonly  = "https://www.googleapis.com/auth/gmail.readonly"
)

// expireSoon sets the shortest approval time that can be configured.
func expireSoon(g *env) {
	inOneProcess(g)
	g.settings["APPROVAL_TTL"] = "1m"
	if g.For < time.Minute {
		g.hurry = true
		return
	}
	g.sweeps = 15 * time.Second // long enough not to republish what a slow machine has not reached
}

// soak is L11: mixed runs at a steady rate over two workers and a faulty Gmail. One worker is killed and replaced every
// few seconds. The other runs throughout, and its memory and goroutines are measured.
func soak(ctx context.Context, g *env, r *Report) {
	elder := g.begin(ctx)
	base := calm(ctx, elder)
	for i := 0; i < soakUsers; i += 2 { // every second user's mailbox is readable
		g.SetScopes(fmt.Sprintf("user-%d", i), append([]string{readonly}, testkit.Scopes...)...)
	}
	mix := &mixture{wishes: rand.New(rand.NewPCG(g.Seed, 1)), troubles: rand.New(rand.NewPCG(g.Seed, 2))}
	g.SetFault(mix.fault)
	g.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		t := answer(r)
		t.Delay, t.Pieces = thinking, 1
		return t
	})

	watched, sampled := g.watch(r), sample(ctx, elder)
	loading, over := context.WithTimeout(ctx, g.For)
	defer over()
	var killer sync.WaitGroup
	var kills int
	var broken error
	killer.Go(func() { kills, broken = g.killAgainAndAgain(loading) })
	life, cut := context.WithTimeout(ctx, g.For+soakTail)
	defer cut()
	lives := g.launch(loading, life, mix)
	killer.Wait()
	watched()
	lives.Wait()
	sampled.stop()
	proof.Must(broken)
	after := rest(ctx, elder, base)
	r.Figures["runs"], r.Figures["kills"], r.Figures["reviews"] = mix.counts.counts(), kills, g.reviews.counts()
	r.Figures["faults"], r.Figures["runMs"], r.Figures["approveToFinalMs"] = mix.faults.counts(), mix.plain.summary(),
		mix.decided.summary()
	r.Figures["goroutines"] = map[string]int{"before": base, "after": after}
	r.Figures["rssMiBOverTime"] = sampled.each(16)
	r.atMost("runs that did not end as they should", float64(g.failed.sum()), 0)
	r.atMost("RSS slope MiB/min", sampled.slope(), 1)
	r.atMost("goroutines left", float64(after-base), 5)
	r.atMost("dead letters", float64(g.relay.deadLetters()), 0)
}

// killAgainAndAgain runs a second worker, and kills and replaces it every few seconds.
func (g *env) killAgainAndAgain(ctx context.Context) (kills int, err error) {
	for {
		p, err := g.start()
		if err != nil || wait.For(ctx, min(killEvery, g.For/3)) != nil {
			return kills, err
		}
		if err := g.kill(p); err != nil {
			return kills, err
		}
		kills++
	}
}

// launch starts runs at a steady rate until the load ends.
func (g *env) launch(loading, life context.Context, mix *mixture) *sync.WaitGroup {
	var lives sync.WaitGroup
	for next := time.Now(); ; next = next.Add(time.Second / soakRate) { // a late start does not delay the next ones
		if wait.For(loading, time.Until(next)) != nil {
			return &lives
		}
		wish, uid := mix.draw()
		lives.Go(func() {
			err := g.live(life, uid, wish, mix)
			if err != nil && life.Err() != nil {
				err = errors.New("it has not ended in time")
			}
			if err != nil {
				g.failed.add(wish + ": " + err.Error())
			}
		})
	}
}

// The prompts of the soak's users.
const (
	wishWords   = "words"
	wishMail    = "mail, approved"
	wishNoMail  = "mail, rejected"
	wishSilence = "mail, left to expire"
)

// mixture draws the events of the load from one seed, and counts their outcomes. The sequence of requests does not
// depend on how many provider calls happen between them.
type mixture struct {
	mu               sync.Mutex
	wishes, troubles *rand.Rand

	counts, faults tally
	plain, decided series
}

// draw returns the next request and its user.
func (m *mixture) draw() (wish, uid string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wish = wishWords
	switch n := m.wishes.IntN(100); {
	case n < 25:
		wish = wishMail
	case n < 35:
		wish = wishNoMail
	case n < 40:
		wish = wishSilence
	}
	m.counts.add(wish)
	return wish, fmt.Sprintf("user-%d", m.wishes.IntN(soakUsers))
}

// kinds lists the faults of a provider, in equal shares. No fault hangs, because that would have the same result as an
// immediate fault, after 30 seconds.
var kinds = []fakegoogle.Kind{fakegoogle.StatusBefore, fakegoogle.StatusAfter, fakegoogle.ResetBefore,
	fakegoogle.ResetAfter,
	fakegoogle.EmptyAfter, fakegoogle.OddAfter, fakegoogle.CutAfter}

// fault makes every tenth call of the provider fail.
func (m *mixture) fault(string) fakegoogle.Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.troubles.Float64() >= faults {
		return fakegoogle.Fault{Delay: mailing}
	}
	k := kinds[m.troubles.IntN(len(kinds))]
	m.faults.add(string(k))
	return fakegoogle.Fault{Kind: k, Delay: mailing}
}

// live plays one run from the prompt to its end.
func (g *env) live(ctx context.Context, uid, wish string, mix *mixture) error {
	start := time.Now()
	if wish == wishWords {
		if err := g.words(ctx, uid); err != nil {
			return err
		}
		mix.plain.since(start)
		return nil
	}
	subject, a, err := g.mail(ctx, uid)
	if err != nil {
		return err
	}
	want := "completed"
	switch wish {
	case wishMail:
		approved := time.Now()
		g.ledger.approved(subject)
		if _, err = g.decide(ctx, uid, a.Approvals[0], "approve_once"); err == nil {
			defer mix.decided.since(approved)
			a, err = g.finish(ctx, uid, a.RunID, subject)
		}
	case wishNoMail:
		if _, err = g.decide(ctx, uid, a.Approvals[0], "reject"); err == nil {
			a, err = g.until(ctx, uid, a.RunID, ended)
		}
	case wishSilence:
		want = "failed"
		a, err = g.until(ctx, uid, a.RunID, ended)
	}
	if err != nil {
		return err
	}
	if a.Status != want {
		return fmt.Errorf("the run ended %s: %s", a.Status, a.Message)
	}
	return nil
}

// words plays a plain run, with retries.
func (g *env) words(ctx context.Context, uid string) error {
	a, err := g.ask(ctx, uid, "say hello", g.ledger.subject())
	if err != nil {
		return err
	}
	g.ledger.asked(a.RunID, "")
	if a, err = g.until(ctx, uid, a.RunID, ended); err == nil && a.Status != "completed" {
		err = fmt.Errorf("the run ended %s: %s", a.Status, a.Message)
	}
	return err
}
