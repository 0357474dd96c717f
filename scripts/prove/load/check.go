package load

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
)

// ledger records the users' runs and the e-mails that they approved.
type ledger struct {
	google *fakegoogle.Server

	mu       sync.Mutex
	subjects int
	runs     map[string]string // the subject of each run's e-mail; empty for a run without an e-mail
	yes      map[string]bool   // approved subjects
	mails    map[string]int    // number of e-mails by subject, in the part of the mailbox read so far
	read     int
}

func newLedger(google *fakegoogle.Server) *ledger {
	return &ledger{google: google, runs: map[string]string{}, yes: map[string]bool{}, mails: map[string]int{}}
}

// subject returns a subject that no other e-mail has.
func (l *ledger) subject() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subjects++
	return fmt.Sprintf("subject-%06d", l.subjects)
}

func (l *ledger) asked(runID, subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[runID] = subject
}

// approved records an approval before it is sent, because the e-mail may arrive from then on.
func (l *ledger) approved(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.yes[subject] = true
}

// sent returns how often an e-mail is in the mailbox.
func (l *ledger) sent(subject string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.google.MessagesAfter(l.read) {
		l.mails[m.Subject]++
		l.read++
	}
	return l.mails[subject]
}

// check compares the store with the effects at the providers, and both with the users' knowledge.
func (g *env) check(ctx context.Context) (problems []string, err error) {
	cfg, err := config.Load(order{Settings: g.settings}.setting)
	if err != nil {
		return nil, err
	}
	st, err := app.OpenStore(ctx, cfg, time.Now)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	st = patient(st)
	found, err := invariants.All(ctx, st, g.Effects(), invariants.Rules{MaxTurns: cfg.MaxModelCalls, Resting: true})
	for _, v := range found {
		problems = append(problems, v.String())
	}
	if err != nil {
		return problems, err
	}
	known, err := g.ledger.hold(ctx, st)
	return append(problems, known...), err
}

// hold looks for lost runs, and for e-mails that were not approved or were sent twice. It takes the users' view and
// compares subjects. The invariants compare the actions' IDs.
func (l *ledger) hold(ctx context.Context, st store.Store) (problems []string, err error) {
	known := map[string]bool{}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(l.runs)), store.MaxReads) {
		paths := make([]string, len(ids))
		for i, id := range ids {
			paths[i], known[l.runs[id]] = document.RunPath(id), true
		}
		docs, err := st.Get(ctx, paths...)
		if err != nil {
			return problems, err
		}
		for _, d := range docs {
			if !d.Exists() {
				problems = append(problems, d.Path+" was answered for, and is not in the store")
			}
		}
	}
	l.sent("") // reads the new e-mails of the mailbox
	for subject, n := range l.mails {
		if n > 1 || !l.yes[subject] || !known[subject] {
			problems = append(problems, fmt.Sprintf("the mail %q: sent %d times; its user said yes: %t; it "+
				"has a run: %t", subject, n, l.yes[subject], known[subject]))
		}
	}
	return problems, nil
}

// patient returns a store that retries if the store on a busy machine does not answer in time.
func patient(st store.Store) *faulty.Store {
	return faulty.Wrap(st, func(ctx context.Context, _ *faulty.Call, next faulty.Next) (err error) {
		for range looks {
			if err = next(ctx); !errors.Is(err, store.ErrUnavailable) {
				break
			}
		}
		return err
	})
}

const looks = 5
