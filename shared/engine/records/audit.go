package records

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// AuditPage is a part of the audit. Head is the end of the run's chain, where one run was asked for.
type AuditPage struct {
	Entries    []audit.Entry        `json:"entries"`
	Head       *audit.Head          `json:"head,omitempty"`
	About      map[string]run.About `json:"about,omitempty"` // what the entries' actions do, by their ids (AddAbout)
	NextCursor string               `json:"nextCursor,omitempty"`
}

// Audit returns the user's own entries: of one run in their order, or of all runs, newest first. The error is AuthError
// not_found for a run that is not the user's.
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
	if len(docs) == 0 && cursor == "" && !own { // no run of the user's, nor any trace of one
		return page, fault.NotFound()
	}
	if own || len(docs) > 0 {
		page.Head = head
	}
	page.NextCursor = next
	return page, nil
}

// head returns the end of a chain: from the run's document, or where that was deleted or never existed, from the
// document kept beside it. For another user's run it returns nil; of a deleted run the entries tell whose it was.
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
