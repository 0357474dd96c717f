package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// pageSize is the number of documents in one read.
const pageSize = 300

// checker checks the audit and writes one line for each problem.
type checker struct {
	store    store.Store
	now      func() time.Time // the time that decides which entries may have expired
	out      io.Writer
	runs     int
	entries  int
	problems int
	log      *logCheck // nil if the deployment has no log, or if only one run is checked
	failed   error     // the first error of writing to out
}

func (c *checker) print(format string, args ...any) {
	if _, err := fmt.Fprintf(c.out, format+"\n", args...); err != nil && c.failed == nil {
		c.failed = err
	}
}

func (c *checker) problem(runID, format string, args ...any) {
	c.problems++
	c.print("run %s: %s", runID, fmt.Sprintf(format, args...))
}

func (c *checker) summary() error {
	c.print("entries: %d, runs: %d, problems: %d", c.entries, c.runs, c.problems)
	return c.failed
}

// all checks every run, then the entries of deleted runs, and then deleted runs that have only the chain's head left.
func (c *checker) all(ctx context.Context) error {
	seen := map[string]bool{}
	runs := document.AllRuns(pageSize)
	err := c.pages(ctx, runs, func(d store.Doc) error {
		id := document.ID(d)
		seen[id] = true
		return c.run(ctx, id)
	})
	if err != nil {
		return err
	}
	entries := document.AllAudit(pageSize)
	err = c.pages(ctx, entries, func(d store.Doc) error {
		id := document.AuditFieldsOf(d).RunID
		if seen[id] {
			return nil
		}
		seen[id] = true
		return c.run(ctx, id)
	})
	if err != nil {
		return err
	}
	heads := document.AllAuditHeads(pageSize)
	return c.pages(ctx, heads, func(d store.Doc) error {
		if id := document.ID(d); !seen[id] {
			return c.run(ctx, id)
		}
		return nil
	})
}

// one checks a run, which must exist or have entries.
func (c *checker) one(ctx context.Context, runID string) error {
	if err := c.run(ctx, runID); err != nil {
		return err
	}
	if c.runs == 0 {
		return fmt.Errorf("no run %s", runID)
	}
	return nil
}

// chain is the stored data of one run.
type chain struct {
	head    audit.Head
	exists  bool // the run's document exists
	kept    bool // the run was deleted, and the chain's head was kept
	broken  bool // the document with the head cannot be read
	entries []audit.Entry
	filed   []string // mismatches between the entries and their documents
	granted []string // permissions that the user's own chain records as revoked, and that documents grant again
}

// run checks one chain. The head is read before and after the entries, because a run can advance in between.
func (c *checker) run(ctx context.Context, runID string) error {
	ch, err := c.atRest(ctx, runID)
	if err != nil || !ch.exists && !ch.kept && len(ch.entries) == 0 {
		return err
	}
	c.runs++
	c.entries += len(ch.entries)
	if ch.broken {
		c.problem(runID, "the run's document cannot be read, so missing entries at the end cannot be detected")
	}
	if !ch.exists && !ch.kept {
		c.print("run %s: the run is gone, so missing entries at the end cannot be detected", runID)
	}
	if !ch.exists && !ch.kept || ch.broken {
		ch.head = audit.HeadOf(ch.entries)
	}
	for _, e := range ch.entries {
		c.log.see(e)
	}
	for _, p := range audit.VerifyAt(c.now(), ch.entries, ch.head) {
		c.problem(runID, "%s", p)
	}
	for _, text := range slices.Concat(ch.filed, ch.granted) {
		c.problem(runID, "%s", text)
	}
	return nil
}

func (c *checker) atRest(ctx context.Context, runID string) (chain, error) {
	for range attempts {
		before, err := c.head(ctx, runID)
		if err != nil {
			return before, err
		}
		if err := c.read(ctx, runID, &before); err != nil {
			return before, err
		}
		if err := c.compare(ctx, runID, &before); err != nil {
			return before, err
		}
		after, err := c.head(ctx, runID)
		if err != nil {
			return before, err
		}
		if after.head == before.head && after.exists == before.exists {
			return before, nil
		}
	}
	return chain{}, fmt.Errorf("run %s changed during each read; try again", runID)
}

func (c *checker) head(ctx context.Context, runID string) (ch chain, err error) {
	if store.ValidPath(document.RunPath(runID)) != nil {
		return ch, nil // the run ID in an entry was changed to an invalid one
	}
	docs, err := c.store.Get(ctx, document.RunPath(runID), document.AuditHeadPath(runID))
	if err != nil {
		return ch, err
	}
	var r struct {
		Audit *audit.Head `json:"audit"`
	}
	ch.exists, ch.kept = docs[0].Exists(), !docs[0].Exists() && docs[1].Exists()
	if ch.kept {
		ch.broken = document.Decode(docs[1], &ch.head) != nil
	}
	if !ch.exists {
		return ch, nil
	}
	if document.Decode(docs[0], &r) != nil || r.Audit == nil {
		ch.broken = true
		return ch, nil
	}
	ch.head = *r.Audit
	return ch, nil
}

// read reads a run's entries in the order of their documents.
func (c *checker) read(ctx context.Context, runID string, ch *chain) error {
	q := document.AuditOfChain(runID, pageSize)
	return c.pages(ctx, q, func(d store.Doc) error {
		e, err := audit.Decode(d.Data)
		if err != nil {
			seq := document.AuditFieldsOf(d).Seq
			e = audit.Entry{Seq: seq} // this matches no hash, and so is reported as changed
		} else if !filed(d, e) {
			ch.filed = append(ch.filed,
				fmt.Sprintf("entry %d does not match its document, %s", e.Seq, d.Path))
		}
		ch.entries = append(ch.entries, e)
		return nil
	})
}

// compare compares a user's own chain with the user's documents. A change of these documents is one commit with an
// entry of the chain.
func (c *checker) compare(ctx context.Context, runID string, ch *chain) (err error) {
	if len(ch.entries) == 0 || runID != audit.UserChain(ch.entries[0].UID) {
		return nil
	}
	ch.granted, err = records.Returned(ctx, c.store, ch.entries[0].UID, ch.entries)
	return err
}

// filed reports whether a document's path and indexed fields match the entry.
func filed(d store.Doc, e audit.Entry) bool {
	f := document.AuditFieldsOf(d)
	return f.At.Equal(e.At) && d.Path == document.AuditPath(e.RunID, e.Seq) &&
		f.RunID == e.RunID && f.UID == e.UID && f.Seq == e.Seq
}

// pages calls each for every document that the query finds.
func (c *checker) pages(ctx context.Context, q store.Query, each func(store.Doc) error) error {
	for d, err := range document.All(ctx, c.store, q) {
		if err != nil {
			return err
		}
		if err := each(d); err != nil {
			return err
		}
	}
	return nil
}
