package records

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Pending returns the user's open approvals and reviews, newest first. An approval past its time is not included, even
// if the sweep has not closed it yet.
func (r *Records) Pending(ctx context.Context, uid, cursor string, limit int) ([]run.ApprovalView, string, error) {
	docs, next, err := r.page(ctx, document.ApprovalsOf(uid, string(run.ApprovalOpen), limit), cursor)
	if err != nil {
		return nil, "", err
	}
	views, err := r.approvals(uid, docs)
	return views, next, err
}

// PendingPage is a page of waiting approvals. The first page also has the approvals in their undo window.
type PendingPage struct {
	Approvals []run.ApprovalView
	Held      []run.ApprovalView
	Next      string
	Mark      string // version of the user's document, for AwaitPending
}

// PendingForReader is Pending with the approvals in their undo window, for a user who must not be disabled. It reads
// both at the same time. A disabled user gets only that error.
func (r *Records) PendingForReader(ctx context.Context, uid, cursor string, limit int) (PendingPage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type reader struct {
		run.User
		mark string
		err  error
	}
	known := make(chan reader, 1)
	go func() {
		d, u, err := r.user(ctx, uid)
		known <- reader{u, markOf(d), cmp.Or(err, u.CheckEnabled())}
	}()
	var page PendingPage
	var err error
	page.Approvals, page.Next, err = r.Pending(ctx, uid, cursor, limit)
	u := <-known
	page.Mark = u.mark
	if err = cmp.Or(u.err, err); err != nil || cursor != "" || len(u.UndoWindows) == 0 {
		return page, err
	}
	page.Held, err = r.held(ctx, u.User)
	return page, err
}

// AwaitPending waits until the waiting approvals may differ from those of the page with the mark, or until ctx ends,
// which is not an error. It reads nothing while nothing changes.
func (r *Records) AwaitPending(ctx context.Context, uid, mark string) error {
	for d, err := range r.Store.Watch(ctx, document.UserPath(uid)) {
		if err != nil {
			return storeError(err)
		}
		if markOf(d) != mark {
			break
		}
	}
	return nil
}

// markOf returns the version of a document as text.
func markOf(d store.Doc) string {
	if !d.Exists() {
		return "0"
	}
	return strconv.FormatInt(d.Version.UnixNano(), 36)
}

// held returns the user's approvals in their undo window, newest first.
func (r *Records) held(ctx context.Context, u run.User) ([]run.ApprovalView, error) {
	var views []run.ApprovalView
	paths := make([]string, len(u.UndoWindows))
	for i, h := range u.UndoWindows {
		paths[i] = document.ApprovalPath(h.ApprovalID)
	}
	docs, err := r.get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for i, d := range slices.Backward(docs) {
		var a run.Approval
		if !d.Exists() || !d.ReadTime.Before(u.UndoWindows[i].Until) {
			continue
		}
		if err := document.Decode(d, &a); err != nil {
			return nil, err
		}
		if a.UID == u.UID && a.Status == run.ApprovalApproved {
			v := a.View()
			v.HeldUntil = u.UndoWindows[i].Until
			views = append(views, v)
		}
	}
	return views, nil
}

// Approvals returns the user's open approvals among the IDs.
func (r *Records) Approvals(ctx context.Context, uid string, ids []string) ([]run.ApprovalView, error) {
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = document.ApprovalPath(id)
	}
	docs, err := r.get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	return r.approvals(uid, docs)
}

func (r *Records) approvals(uid string, docs []store.Doc) ([]run.ApprovalView, error) {
	views := []run.ApprovalView{}
	for _, d := range docs {
		var a run.Approval
		if !d.Exists() {
			continue
		}
		if err := document.Decode(d, &a); err != nil {
			return nil, err
		}
		if a.UID == uid && a.Status == run.ApprovalOpen && d.ReadTime.Before(a.ExpiresAt) {
			views = append(views, a.View())
		}
	}
	return views, nil
}
