package records

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// AuditPage is a page of the audit log. Head is the end of the run's chain, if the request named one run.
type AuditPage struct {
	Entries    []audit.Entry        `json:"entries"`
	Head       *audit.Head          `json:"head,omitempty"`
	About      map[string]run.About `json:"about,omitempty"` // descriptions of the actions, by ID (AddAbout)
	NextCursor string               `json:"nextCursor,omitempty"`
}

// Audit returns the user's own entries: those of one run in order, or those of all runs, newest first. The error is
// AuthError not_found for a run of another user.
func (r *Records) Audit(ctx context.Context, uid, runID, cursor string, limit int) (AuditPage, error) {
	page := AuditPage{Entries: []audit.Entry{}}
	q := document.AuditOf(uid, limit)
	var head *audit.Head
	own := true
	if runID != "" {
		var err error
		if head, own, err = r.head(ctx, uid, runID); err != nil {
			return page, err
		}
		q = document.AuditOfChainOf(uid, runID, limit)
	}
	docs, next, err := r.page(ctx, q, cursor)
	if err != nil {
		return page, err
	}
	for _, d := range docs {
		var e audit.Entry
		if err := document.Decode(d, &e); err != nil {
			return page, err
		}
		page.Entries = append(page.Entries, e)
	}
	if len(docs) == 0 && cursor == "" && !own { // the user has no such run, and no trace of one
		return page, fault.NotFound()
	}
	if own || len(docs) > 0 {
		page.Head = head
	}
	page.NextCursor = next
	return page, nil
}

// head returns the end of a chain. It reads the run's document, or, if that was deleted or never existed, the document
// that is kept in addition. It returns nil for another user's run; the entries of a deleted run show its owner.
func (r *Records) head(ctx context.Context, uid, runID string) (head *audit.Head, own bool, err error) {
	if !run.ValidID(runID) {
		return nil, false, fault.Invalid("runId", "invalid ID")
	}
	docs, err := r.get(ctx, document.RunPath(runID), document.AuditHeadPath(runID))
	if err != nil {
		return nil, false, err
	}
	if d := docs[0]; d.Exists() {
		if document.RunFieldsOf(d).UID != uid {
			return nil, false, nil
		}
		var got run.Run
		if err := document.Decode(d, &got); err != nil {
			return nil, false, err
		}
		return &got.Audit, true, nil
	}
	if d := docs[1]; d.Exists() {
		head = &audit.Head{}
		if err := document.Decode(d, head); err != nil {
			return nil, false, err
		}
	}
	return head, runID == audit.UserChain(uid), nil
}
