// Package records is what users may read of their own things, and what they may take back: approvals that wait,
// threads, audit entries, the allowlist. Another user's id behaves like one that does not exist.
package records

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/policy"
	"github.com/countersign-run/countersign/shared/store"
)

// Records reads over a store.
type Records struct {
	Store  store.Store
	Now    func() time.Time
	Random io.Reader // for nonces; nil is crypto/rand
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
	err := r.moveUser(ctx, uid, func(u *agent.User) (*audit.Entry, bool) {
		i := slices.IndexFunc(u.Allow, func(e policy.Entry) bool { return e.ID == id })
		if found = i >= 0; !found {
			return nil, false
		}
		entry := &audit.Entry{Kind: audit.Withdrew, Tool: u.Allow[i].Tool, InputHash: audit.InputHash(r.nonce(u), id)}
		u.Allow = slices.Delete(slices.Clone(u.Allow), i, i+1)
		return entry, true
	})
	if err == nil && !found {
		return fault.NotFound()
	}
	return err
}

// nonce is the user's own, made when it is first needed: the id of an always-allow follows from its address.
func (r *Records) nonce(u *agent.User) []byte {
	if len(u.Nonce) == 0 {
		u.Nonce = agent.NewNonce(cmp.Or(r.Random, rand.Reader))
	}
	return u.Nonce
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
	var head *audit.Head
	own := true
	if runID != "" {
		var err error
		if head, own, err = r.head(ctx, uid, runID); err != nil {
			return page, err
		}
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
	if len(docs) == 0 && cursor == "" && !own { // no run of the user's, nor any trace of one
		return page, fault.NotFound()
	}
	if own || len(docs) > 0 {
		page.Head = head
	}
	page.NextCursor = next
	return page, nil
}

// head is the end of a chain: in the run's document, or kept beside it where that is gone or never was. Only the user's
// own is given; of a run that is gone the entries say whose it was.
func (r *Records) head(ctx context.Context, uid, runID string) (head *audit.Head, own bool, err error) {
	if !agent.ValidID(runID) {
		return nil, false, fault.Invalid("runId", "this is not an id")
	}
	docs, err := r.get(ctx, agent.RunPath(runID), audit.HeadPath(runID))
	if err != nil {
		return nil, false, err
	}
	if d := docs[0]; d.Exists() {
		if d.Fields["uid"] != uid {
			return nil, false, nil
		}
		var run agent.Run
		if err := json.Unmarshal(d.Data, &run); err != nil {
			return nil, false, fmt.Errorf("records: run %s cannot be read: %w", runID, err)
		}
		return &run.Audit, true, nil
	}
	if d := docs[1]; d.Exists() {
		head = &audit.Head{}
		if err := json.Unmarshal(d.Data, head); err != nil {
			return nil, false, fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
	}
	return head, runID == audit.Own(uid), nil
}

func (r *Records) get(ctx context.Context, paths ...string) ([]store.Doc, error) {
	docs, err := r.Store.Get(ctx, paths...)
	return docs, down(err)
}

// page runs a query from a cursor that an earlier page gave.
func (r *Records) page(ctx context.Context, q store.Query, cursor string) ([]store.Doc, string, error) {
	if cursor != "" {
		after, err := parseCursor(q, cursor)
		if err != nil {
			return nil, "", err
		}
		q.After = after
	}
	docs, err := r.Store.Query(ctx, q)
	if cursor != "" && errors.Is(err, store.ErrInvalid) {
		return nil, "", badCursor()
	}
	if err != nil {
		return nil, "", down(err)
	}
	if len(docs) < q.Limit {
		return docs, "", nil
	}
	last := docs[len(docs)-1]
	return docs, formatCursor(q, last.Fields[q.OrderBy], path.Base(last.Path)), nil
}

// A cursor is the place of the last document of a page: its value in the page's order, its id, and the list that it is a
// place in. It is no secret and opens nothing: the query says whose documents are given.
func formatCursor(q store.Query, v any, id string) string {
	s := ""
	switch v := v.(type) {
	case time.Time:
		s = "t" + v.UTC().Format(time.RFC3339Nano)
	case int64:
		s = fmt.Sprintf("n%d", v)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(s + " " + id + " " + listOf(q)))
}

// listOf names the list of a query: what of whom, in which order.
func listOf(q store.Query) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %t", q.Collection, q.OrderBy, q.Desc)
	for _, f := range q.Where {
		fmt.Fprintf(h, " %q %q %q", f.Field, f.Op, fmt.Sprint(f.Value))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func parseCursor(q store.Query, s string) (*store.Cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.Split(string(raw), " ")
	if err != nil || len(parts) != 3 || len(parts[0]) < 2 || !agent.ValidID(parts[1]) || parts[2] != listOf(q) {
		return nil, badCursor()
	}
	kind, value := parts[0][0], parts[0][1:]
	if t, err := time.Parse(time.RFC3339Nano, value); kind == 't' && err == nil {
		return &store.Cursor{Value: t, ID: parts[1]}, nil
	}
	if n, err := strconv.ParseInt(value, 10, 64); kind == 'n' && err == nil {
		return &store.Cursor{Value: n, ID: parts[1]}, nil
	}
	return nil, badCursor()
}

func badCursor() error {
	return fault.Invalid("cursor", "this is not a cursor of an earlier page of this list")
}

// down turns a store's error into the one that callers may show.
func down(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) {
		return fault.New(fault.Tool, fault.CodeStoreUnavailable, "The store does not answer just now; please try again.").After(5 * time.Second).Because(err)
	}
	return err
}
