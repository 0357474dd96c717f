// Package records is what users may read and withdraw of their own: approvals that wait, threads, audit entries, the
// allowlist. Another user's id behaves like one that does not exist.
package records

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Records reads and changes users' documents in a store.
type Records struct {
	Store  store.Store
	Now    func() time.Time
	Random io.Reader // for nonces; nil means crypto/rand

	Retention time.Duration // how long a conversation is kept after it was last used; 0: for good
	AuditDays int           // for how many days audit entries are kept; 0: for good
}

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

// PendingPage is a part of what waits for a user, and, with the first one, what they have approved a moment ago.
type PendingPage struct {
	Approvals []run.ApprovalView
	Held      []run.ApprovalView
	Next      string
	Mark      string // of the user's document, which changes with all that waits (AwaitPending)
}

// PendingForReader is Pending for a user who must not be disabled, with what is held. Both are asked at the same time,
// and a disabled user learns of nothing else.
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
	if err = cmp.Or(u.err, err); err != nil || cursor != "" || len(u.Held) == 0 {
		return page, err
	}
	page.Held, err = r.held(ctx, u.User)
	return page, err
}

// AwaitPending waits until what waits for the user may be another than at the mark of a page, or until ctx ends, which
// is no error. While nothing changes it reads nothing.
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

// markOf names a state of a document.
func markOf(d store.Doc) string {
	if !d.Exists() {
		return "0"
	}
	return strconv.FormatInt(d.Version.UnixNano(), 36)
}

// held returns what the user has approved and can still take back, the newest first.
func (r *Records) held(ctx context.Context, u run.User) ([]run.ApprovalView, error) {
	var views []run.ApprovalView
	paths := make([]string, len(u.Held))
	for i, h := range u.Held {
		paths[i] = document.ApprovalPath(h.ApprovalID)
	}
	docs, err := r.get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	for i, d := range slices.Backward(docs) {
		var a run.Approval
		if !d.Exists() || !d.ReadTime.Before(u.Held[i].Until) {
			continue
		}
		if err := document.Decode(d, &a); err != nil {
			return nil, err
		}
		if a.UID == u.UID && a.Status == run.ApprovalApproved {
			v := a.View()
			v.HeldUntil = u.Held[i].Until
			views = append(views, v)
		}
	}
	return views, nil
}

// Approvals returns those of the ids that are open and the user's.
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

// AllowView is an "always allow" entry as its user sees it.
type AllowView struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool"`
	Recipient string    `json:"recipient"`         // empty: it is a command
	Account   string    `json:"account,omitempty"` // from which Recipient is always reached
	Command   string    `json:"command,omitempty"` // and the host that it may run on
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`

	ApprovalID string `json:"approvalId,omitempty"` // that allowed it
}

// Allowlist returns what the user always allows.
func (r *Records) Allowlist(ctx context.Context, uid string) ([]AllowView, error) {
	_, u, err := r.user(ctx, uid)
	if err != nil {
		return nil, err
	}
	views := []AllowView{}
	for _, e := range u.Allow {
		views = append(views, AllowView{e.ID, e.Tool, e.Recipient, e.Place.Name, e.Shown, e.CreatedAt, e.ExpiresAt,
			e.Approval})
	}
	return views, nil
}

// Disallow removes an entry from the allowlist. Once it has returned, nothing is carried out on that entry's authority
// any more. With an approval it withdraws what that approval allowed: an entry that counted before counts again, and
// the error is AuthError not_found where another approval has allowed the entry since.
func (r *Records) Disallow(ctx context.Context, uid, id, approvalID string) error {
	found := false
	err := r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		e, ok := u.Withdraw(id, approvalID, r.Now())
		if found = ok; !found {
			return nil, false
		}
		return &audit.Entry{Kind: audit.Withdrew, Tool: e.Tool, InputHash: audit.InputHash(r.nonce(u), id)}, true
	})
	if err == nil && !found {
		return fault.NotFound()
	}
	return err
}

// nonce returns the user's own nonce, made when it is first needed: the id of an always-allow follows from its address.
func (r *Records) nonce(u *run.User) []byte {
	if len(u.Nonce) == 0 {
		u.Nonce = run.NewNonce(cmp.Or(r.Random, rand.Reader))
	}
	return u.Nonce
}

func (r *Records) user(ctx context.Context, uid string) (store.Doc, run.User, error) {
	u := run.User{UID: uid}
	docs, err := r.get(ctx, document.UserPath(uid))
	if err != nil {
		return store.Doc{}, u, err
	}
	if !docs[0].Exists() {
		return docs[0], u, nil
	}
	return docs[0], u, document.Decode(docs[0], &u)
}

// CheckReader refuses a disabled user.
func (r *Records) CheckReader(ctx context.Context, uid string) error {
	_, u, err := r.user(ctx, uid)
	if err != nil {
		return err
	}
	return u.CheckEnabled()
}

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

func (r *Records) get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := r.Store.Get(ctx, paths...)
	return docs, storeError(err)
}

// page runs a query from a cursor that an earlier page returned. It asks for one document more than the page has, so
// that a list of exactly one page has no cursor.
func (r *Records) page(ctx context.Context, q store.Query, cursor string) ([]store.Doc, string, error) {
	if cursor != "" {
		after, err := document.ParseCursor(q, cursor)
		if err != nil {
			return nil, "", errBadCursor()
		}
		q.After = after
	}
	limit := q.Limit
	q.Limit++
	docs, err := r.Store.Query(ctx, q)
	if cursor != "" && errors.Is(err, store.ErrInvalid) {
		return nil, "", errBadCursor()
	}
	if err != nil {
		return nil, "", storeError(err)
	}
	if len(docs) <= limit {
		return docs, "", nil
	}
	return docs[:limit], document.FormatCursor(q, docs[limit-1]), nil
}

func errBadCursor() error {
	return fault.Invalid("cursor", "this is not a cursor of an earlier page of this list")
}

// storeError turns a store's error into one that callers may show.
func storeError(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) {
		return fault.Unavailable("The service is temporarily unavailable. Please try again.", err)
	}
	return err
}
