package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/localgoogle"
	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
)

// ledger is what the users know: the runs that they asked for and the mails that they said yes to.
type ledger struct {
	google *localgoogle.Server

	mu       sync.Mutex
	subjects int
	runs     map[string]string // the subject by run; empty for a run without a mail
	yes      map[string]bool   // by subject
	mails    map[string]int    // by subject, as far as the mailbox was read
	read     int
}

func newLedger(google *localgoogle.Server) *ledger {
	return &ledger{google: google, runs: map[string]string{}, yes: map[string]bool{}, mails: map[string]int{}}
}

// subject is one that no other mail has.
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

// approved notes a yes before it is sent: from then on the mail may arrive.
func (l *ledger) approved(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.yes[subject] = true
}

// sent is how often a mail is in the mailbox.
func (l *ledger) sent(subject string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.google.MessagesAfter(l.read) {
		l.mails[m.Subject]++
		l.read++
	}
	return l.mails[subject]
}

// check holds what is in the store and in the mailbox to what the users know: every run has ended, an action that is
// completed has sent its one mail and no other has, no mail went without a yes, and the audit is whole.
func (g *ground) check(ctx context.Context) (problems []string, err error) {
	cfg, err := config.Load(func(name string) string { return g.settings[name] })
	if err != nil {
		return nil, err
	}
	st, err := app.OpenStore(ctx, cfg, time.Now)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	c := checker{ledger: g.ledger, entries: map[string][]audit.Entry{}, seen: map[string]bool{}}
	if err := pages(ctx, st, "audit", "at", c.entry); err != nil {
		return nil, err
	}
	if err := pages(ctx, st, "runs", "createdAt", c.run); err != nil {
		return nil, err
	}
	c.rest()
	return c.problems, nil
}

type checker struct {
	ledger   *ledger
	entries  map[string][]audit.Entry
	seen     map[string]bool
	problems []string
}

func (c *checker) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) entry(d store.Doc) error {
	e, err := audit.Decode(d.Data)
	if err != nil {
		return err
	}
	c.entries[e.RunID] = append(c.entries[e.RunID], e)
	return nil
}

func (c *checker) run(d store.Doc) error {
	var r agent.Run
	if err := json.Unmarshal(d.Data, &r); err != nil {
		return err
	}
	c.seen[r.ID] = true
	entries := c.entries[r.ID]
	slices.SortFunc(entries, func(a, b audit.Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, p := range audit.Verify(entries, r.Audit) {
		c.problem("run %s: audit: %s", r.ID, p)
	}
	s, err := agent.Fold(r.Log.Tail) // runs of a load fit into their document
	if err != nil {
		return err
	}
	if s.End == nil {
		c.problem("run %s has not ended: it is %s", r.ID, s.Status)
	}
	c.effects(r.ID, s)
	return nil
}

func (c *checker) effects(runID string, s *agent.State) {
	done := 0
	for _, a := range s.Actions {
		if a.Status == agent.ActionCompleted {
			done++
		}
	}
	subject := c.ledger.runs[runID]
	if subject == "" {
		if done > 0 {
			c.problem("run %s has done what nobody asked for", runID)
		}
		return
	}
	sent := c.ledger.sent(subject)
	if sent != min(done, 1) || done > 1 {
		c.problem("run %s: %d actions are completed, and the mail %s was sent %d times", runID, done, subject, sent)
	}
	if sent > 0 && !c.ledger.yes[subject] {
		c.problem("run %s: the mail %s was sent without a yes", runID, subject)
	}
}

// rest looks for what the runs in the store do not account for.
func (c *checker) rest() {
	known := map[string]bool{}
	for id, subject := range c.ledger.runs {
		known[subject] = true
		if !c.seen[id] {
			c.problem("run %s was answered for, and is not in the store", id)
		}
	}
	for subject := range c.ledger.mails {
		if !known[subject] {
			c.problem("nobody knows of the mail %q", subject)
		}
	}
}

// pages calls each for all documents of a collection.
func pages(ctx context.Context, st store.Store, collection, by string, each func(store.Doc) error) error {
	q := store.Query{Collection: collection, OrderBy: by, Limit: store.MaxLimit}
	for {
		docs, err := st.Query(ctx, q)
		if err != nil {
			return err
		}
		for _, d := range docs {
			if err := each(d); err != nil {
				return err
			}
		}
		if len(docs) < q.Limit {
			return nil
		}
		last := docs[len(docs)-1]
		q.After = &store.Cursor{Value: last.Fields[by], ID: path.Base(last.Path)}
	}
}
