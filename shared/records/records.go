// Package records is what users may read of their own things, and what they may take back: approvals that wait,
// threads, audit entries, the allowlist. Another user's id behaves like one that does not exist.
package records

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// Records reads over a store.
type Records struct {
	Store store.Store
	Now   func() time.Time
}

// Pending gives the user's open approvals and reviews, newest first. An approval past its time is not shown, though the
// sweep has not closed it yet.
func (r *Records) Pending(ctx context.Context, uid, cursor string, limit int) ([]agent.ApprovalView, string, error) {
	docs, next, err := r.page(ctx, store.Query{Collection: "approvals", OrderBy: "requestedAt", Desc: true, Limit: limit, Where: []store.Filter{
		{Field: "uid", Op: "==", Value: uid}, {Field: "status", Op: "==", Value: string(agent.ApprovalOpen)}}}, cursor)
	if err != nil {
		return nil, "", err
	}
	views, err := r.approvals(uid, docs)
	return views, next, err
}

// Approvals gives those of the ids that are open and the user's.
func (r *Records) Approvals(ctx context.Context, uid string, ids []string) ([]agent.ApprovalView, error) {
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = agent.ApprovalPath(id)
	}
	docs, err := r.get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	return r.approvals(uid, docs)
}

func (r *Records) approvals(uid string, docs []store.Doc) ([]agent.ApprovalView, error) {
	views := []agent.ApprovalView{}
	for _, d := range docs {
		var a agent.Approval
		if !d.Exists() {
			continue
		}
		if err := json.Unmarshal(d.Data, &a); err != nil {
			return nil, fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
		if a.UID == uid && a.Status == agent.ApprovalOpen && d.ReadTime.Before(a.ExpiresAt) {
			views = append(views, a.View())
		}
	}
	return views, nil
}

// AllowView is an "always allow" entry as its user sees it.
type AllowView struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool"`
	Recipient string    `json:"recipient"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Allowlist gives what the user always allows.
func (r *Records) Allowlist(ctx context.Context, uid string) ([]AllowView, error) {
	_, u, err := r.user(ctx, uid)
	if err != nil {
		return nil, err
	}
	views := []AllowView{}
	for _, e := range u.Allow {
		views = append(views, AllowView{e.ID, e.Tool, e.Recipient, e.CreatedAt, e.ExpiresAt})
	}
	return views, nil
}

// Disallow takes an entry back. Once it has returned, nothing is carried out on that entry's strength any more.
func (r *Records) Disallow(ctx context.Context, uid, id string) error {
	found := false
	err := r.moveUser(ctx, uid, func(u *agent.User) bool {
		kept := u.Allow[:0:0]
		for _, e := range u.Allow {
			if e.ID != id {
				kept = append(kept, e)
			}
		}
		found = len(kept) < len(u.Allow)
		u.Allow = kept
		return found
	})
	if err == nil && !found {
		return fault.NotFound()
	}
	return err
}

func (r *Records) user(ctx context.Context, uid string) (store.Doc, agent.User, error) {
	u := agent.User{UID: uid}
	docs, err := r.get(ctx, agent.UserPath(uid))
	if err != nil {
		return store.Doc{}, u, err
	}
	if !docs[0].Exists() {
		return docs[0], u, nil
	}
	return docs[0], u, json.Unmarshal(docs[0].Data, &u)
}

// MayRead turns away a user who has been shut out.
func (r *Records) MayRead(ctx context.Context, uid string) error {
	_, u, err := r.user(ctx, uid)
	if err != nil {
		return err
	}
	return u.MayAct()
}

// AuditPage is a part of the audit. Head is the end of the run's chain, where one run was asked for.
type AuditPage struct {
	Entries    []audit.Entry `json:"entries"`
	Head       *audit.Head   `json:"head,omitempty"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// Audit gives the user's own entries: of one run in their order, or of all runs, newest first. The error is AuthError
// not_found for a run that is not the user's.
func (r *Records) Audit(ctx context.Context, uid, runID, cursor string, limit int) (AuditPage, error) {
	page := AuditPage{Entries: []audit.Entry{}}
	q := store.Query{Collection: "audit", OrderBy: "at", Desc: true, Limit: limit, Where: []store.Filter{{Field: "uid", Op: "==", Value: uid}}}
	if runID != "" {
		head, err := r.head(ctx, uid, runID)
		if err != nil {
			return page, err
		}
		page.Head = head
		q.OrderBy, q.Desc = "seq", false
		q.Where = append(q.Where, store.Filter{Field: "runId", Op: "==", Value: runID})
	}
	docs, next, err := r.page(ctx, q, cursor)
	if err != nil {
		return page, err
	}
	for _, d := range docs {
		var e audit.Entry
		if err := json.Unmarshal(d.Data, &e); err != nil {
			return page, fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
		page.Entries = append(page.Entries, e)
	}
	if runID != "" && page.Head == nil && len(docs) == 0 && cursor == "" { // no run of the user's, nor any trace of one
		return page, fault.NotFound()
	}
	page.NextCursor = next
	return page, nil
}

// head is the end of a run's chain. A run that is gone has left its entries, and no head to hold them to.
func (r *Records) head(ctx context.Context, uid, runID string) (*audit.Head, error) {
	if !agent.ValidID(runID) {
		return nil, fault.Invalid("runId", "this is not an id")
	}
	docs, err := r.get(ctx, agent.RunPath(runID))
	if err != nil || !docs[0].Exists() {
		return nil, err
	}
	var run agent.Run
	if err := json.Unmarshal(docs[0].Data, &run); err != nil {
		return nil, fmt.Errorf("records: run %s cannot be read: %w", runID, err)
	}
	if run.UID != uid {
		return nil, nil
	}
	return &run.Audit, nil
}

func (r *Records) get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := r.Store.Get(ctx, paths...)
	return docs, down(err)
}

// page runs a query from a cursor that an earlier page gave.
func (r *Records) page(ctx context.Context, q store.Query, cursor string) ([]store.Doc, string, error) {
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return nil, "", err
		}
		q.After = after
	}
	docs, err := r.Store.Query(ctx, q)
	if cursor != "" && errors.Is(err, store.ErrInvalid) {
		return nil, "", badCursor() // the cursor of another list
	}
	if err != nil {
		return nil, "", down(err)
	}
	if len(docs) < q.Limit {
		return docs, "", nil
	}
	last := docs[len(docs)-1]
	return docs, formatCursor(last.Fields[q.OrderBy], path.Base(last.Path)), nil
}

// A cursor is the place of the last document of a page: its value in the page's order, and its id.
func formatCursor(v any, id string) string {
	s := ""
	switch v := v.(type) {
	case time.Time:
		s = "t" + v.UTC().Format(time.RFC3339Nano)
	case int64:
		s = fmt.Sprintf("n%d", v)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(s + " " + id))
}

func parseCursor(s string) (*store.Cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	value, id, _ := strings.Cut(string(raw), " ")
	if err != nil || len(value) < 2 || !agent.ValidID(id) {
		return nil, badCursor()
	}
	switch value[0] {
	case 't':
		t, err := time.Parse(time.RFC3339Nano, value[1:])
		if err == nil {
			return &store.Cursor{Value: t, ID: id}, nil
		}
	case 'n':
		n, err := strconv.ParseInt(value[1:], 10, 64)
		if err == nil {
			return &store.Cursor{Value: n, ID: id}, nil
		}
	}
	return nil, badCursor()
}

func badCursor() error { return fault.Invalid("cursor", "this is not a cursor of an earlier page") }

// down turns a store's error into the one that callers may show.
func down(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) {
		return fault.New(fault.Tool, fault.CodeStoreUnavailable, "The store does not answer just now; please try again.").After(5 * time.Second).Because(err)
	}
	return err
}
