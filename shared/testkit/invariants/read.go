package invariants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// read reads all stored documents of the run.
func (c *checked) read(ctx context.Context, st store.Store, runID string) error {
	docs, err := st.Get(ctx, document.RunPath(runID))
	if err != nil {
		return err
	}
	c.doc, c.run.ID = docs[0], runID
	if !c.doc.Exists() {
		return fmt.Errorf("there is no run %s", runID)
	}
	if err := document.Decode(c.doc, &c.run); err != nil {
		return err
	}
	paths := []string{document.ThreadPath(c.run.ThreadID), document.UserPath(c.run.UID)}
	for n := range c.run.Approvals {
		paths = append(paths, document.ApprovalPath(run.ApprovalID(runID, n+1)))
	}
	chunks := c.run.Log.ChunkPaths(document.RunPath(runID), "events")
	if docs, err = st.Get(ctx, append(paths, chunks...)...); err != nil {
		return err
	}
	for _, d := range docs {
		c.bound(d)
	}
	c.bound(c.doc)
	split := len(docs) - len(chunks)
	if err := c.take(docs[:split]); err != nil {
		return err
	}
	var parts []json.RawMessage
	for _, d := range docs[split:] {
		parts = append(parts, d.Data)
	}
	if c.events, err = c.run.Log.All(parts...); err != nil {
		return err
	}
	return c.readAudit(ctx, st)
}

func (c *checked) bound(d store.Doc) {
	if len(d.Data) > store.MaxDoc {
		c.violates(Bounds, "%s has %d bytes", d.Path, len(d.Data))
	}
}

// take reads the thread, the user and the approvals.
func (c *checked) take(docs []store.Doc) error {
	for i, into := range []any{&c.thread, &c.user} {
		if docs[i].Exists() {
			if err := document.Decode(docs[i], into); err != nil {
				return err
			}
		}
	}
	for _, d := range docs[2:] {
		var a run.Approval
		if !d.Exists() {
			c.violates(NoOrphan, "%s is missing", d.Path)
			continue
		}
		if err := document.Decode(d, &a); err != nil {
			return err
		}
		if f := document.ApprovalFieldsOf(d); a.UID != c.run.UID || a.RunID != c.run.ID ||
			f.Status != string(a.Status) || f.UID != a.UID {
			c.violates(NoOrphan, "approval %s is not the run's owner's, or filed wrongly", a.ID)
		}
		c.approvals[a.ID] = a
	}
	return nil
}

func (c *checked) readAudit(ctx context.Context, st store.Store) error {
	for d, err := range document.All(ctx, st, document.AuditOfChain(c.run.ID, 300)) {
		if err != nil {
			return err
		}
		e, err := audit.Decode(d.Data)
		if err != nil {
			c.violates(AuditChain, "%s cannot be read: %v", d.Path, err)
			continue
		}
		c.entries = append(c.entries, e)
	}
	return nil
}

// Versions returns the versions of the run's documents. They must not change when an old message is delivered again.
func Versions(ctx context.Context, st store.Store, runID string) (map[string]time.Time, error) {
	docs, err := st.Get(ctx, document.RunPath(runID))
	if err != nil {
		return nil, err
	}
	var r run.Run
	if !docs[0].Exists() {
		return nil, errors.New("there is no run " + runID)
	}
	if err := document.Decode(docs[0], &r); err != nil {
		return nil, err
	}
	paths := []string{document.RunPath(runID), document.ThreadPath(r.ThreadID), document.UserPath(r.UID)}
	for n := range r.Approvals {
		paths = append(paths, document.ApprovalPath(run.ApprovalID(runID, n+1)))
	}
	if docs, err = st.Get(ctx, paths...); err != nil {
		return nil, err
	}
	out := map[string]time.Time{}
	for _, d := range docs {
		out[d.Path] = d.Version
	}
	return out, nil
}
