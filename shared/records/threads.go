package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// ThreadView is a conversation as its list shows it.
type ThreadView struct {
	ThreadID  string    `json:"threadId"`
	Title     string    `json:"title"`
	Messages  int64     `json:"messages"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

func viewThread(t agent.Thread) ThreadView {
	return ThreadView{t.ID, t.Title, t.Log.Count, t.CreatedAt, t.UpdatedAt}
}

// Threads gives the user's conversations, the newest first.
func (r *Records) Threads(ctx context.Context, uid, cursor string, limit int) ([]ThreadView, string, error) {
	docs, next, err := r.page(ctx, store.Query{Collection: "threads", OrderBy: "updatedAt", Desc: true, Limit: limit,
		Where: []store.Filter{{Field: "uid", Op: "==", Value: uid}}}, cursor)
	if err != nil {
		return nil, "", err
	}
	views := []ThreadView{}
	for _, d := range docs {
		var t agent.Thread
		if err := json.Unmarshal(d.Data, &t); err != nil {
			return nil, "", fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
		views = append(views, viewThread(t))
	}
	return views, next, nil
}

// MessagePage is a part of a conversation, oldest first. Before, when not zero, asks for the page before it.
type MessagePage struct {
	Messages []agent.Message `json:"messages"`
	Before   int64           `json:"before,omitempty"`
}

// Messages gives the newest messages that come before the number.
func (r *Records) Messages(ctx context.Context, uid, threadID string, before int64, limit int) (MessagePage, error) {
	page := MessagePage{Messages: []agent.Message{}}
	_, t, err := r.thread(ctx, uid, threadID)
	if err != nil {
		return page, err
	}
	before = min(before, t.Log.Count+1)
	first := max(1, before-int64(limit))
	msgs, err := r.messages(ctx, t, first)
	if err != nil {
		return page, err
	}
	for _, m := range msgs {
		if m.Seq >= first && m.Seq < before {
			page.Messages = append(page.Messages, m)
		}
	}
	if first > 1 {
		page.Before = first
	}
	return page, nil
}

// messages reads the thread's messages from the chunk that holds the number on.
func (r *Records) messages(ctx context.Context, t agent.Thread, first int64) ([]agent.Message, error) {
	if first >= t.Log.First() {
		return t.Log.Tail, nil
	}
	from := 0
	for i, c := range t.Log.Chunks {
		if c <= first {
			from = i
		}
	}
	paths := t.Log.ChunkPaths(agent.ThreadPath(t.ID), "messages")[from:]
	docs, err := r.get(ctx, paths...)
	if err != nil {
		return nil, err
	}
	var msgs []agent.Message
	for _, d := range docs {
		var part []agent.Message
		if err := json.Unmarshal(d.Data, &part); err != nil {
			return nil, fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
		msgs = append(msgs, part...)
	}
	return append(msgs, t.Log.Tail...), nil
}

func (r *Records) thread(ctx context.Context, uid, id string) (store.Doc, agent.Thread, error) {
	var t agent.Thread
	docs, err := r.get(ctx, agent.ThreadPath(id))
	if err != nil {
		return store.Doc{}, t, err
	}
	if !docs[0].Exists() {
		return store.Doc{}, t, fault.NotFound()
	}
	if err := json.Unmarshal(docs[0].Data, &t); err != nil {
		return store.Doc{}, t, fmt.Errorf("records: thread %s cannot be read: %w", id, err)
	}
	if t.UID != uid {
		return store.Doc{}, agent.Thread{}, fault.NotFound()
	}
	return docs[0], t, nil
}

// DeleteThread deletes a conversation with its runs and approvals; their audit entries stay. A conversation with a run
// that has not ended is refused. The thread's own document goes last, so a deletion that was cut off is taken up by
// asking again.
func (r *Records) DeleteThread(ctx context.Context, uid, id string) error {
	for try := 0; ; try++ {
		doc, t, err := r.thread(ctx, uid, id)
		if err != nil {
			return err
		}
		runs := store.Query{Collection: "runs", OrderBy: "createdAt", Desc: true, Limit: 50,
			Where: []store.Filter{{Field: "uid", Op: "==", Value: uid}, {Field: "threadId", Op: "==", Value: id}}}
		if err := r.deleteRuns(ctx, runs); err != nil {
			return err
		}
		var writes []store.Write
		for _, p := range t.Log.ChunkPaths(doc.Path, "messages") {
			writes = append(writes, store.Delete(p, time.Time{}))
		}
		_, err = r.Store.Commit(ctx, append(writes, store.Delete(doc.Path, doc.Version))...)
		if !errors.Is(err, store.ErrConflict) || try == 5 {
			return down(err)
		}
	}
}

// deleteRuns deletes all runs of the query, page by page; one that has not ended stops it.
func (r *Records) deleteRuns(ctx context.Context, q store.Query) error {
	for {
		docs, err := r.Store.Query(ctx, q)
		if err != nil || len(docs) == 0 {
			return down(err)
		}
		for _, d := range docs {
			if !ended(d) {
				return fault.New(fault.Policy, fault.CodeBusy, "A run of this conversation has not ended yet. Cancel it or answer it first.")
			}
		}
		for _, d := range docs {
			if err := r.deleteRun(ctx, d); err != nil {
				return err
			}
		}
	}
}

// ended reports whether the run of the document is over.
func ended(d store.Doc) bool {
	s := agent.RunStatus(fmt.Sprint(d.Fields["status"]))
	return s == agent.Completed || s == agent.Failed
}

// deleteRun deletes a run with its events and approvals in one commit. The end of its audit chain stays, or nobody could
// tell later whether entries were cut off.
func (r *Records) deleteRun(ctx context.Context, d store.Doc) error {
	var run agent.Run
	if err := json.Unmarshal(d.Data, &run); err != nil {
		return fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
	}
	var writes []store.Write
	for _, p := range run.Log.ChunkPaths(d.Path, "events") {
		writes = append(writes, store.Delete(p, time.Time{}))
	}
	for n := 1; n <= run.Approvals; n++ {
		writes = append(writes, store.Delete(agent.ApprovalPath(agent.ApprovalID(run.ID, n)), time.Time{}))
	}
	if run.Audit.Seq > 0 {
		head, err := agent.Marshal(run.Audit)
		if err != nil {
			return err
		}
		writes = append(writes, store.Create(agent.HeadPath(run.ID), map[string]any{"at": r.Now().UTC().Truncate(time.Microsecond)}, head))
	}
	_, err := r.Store.Commit(ctx, append(writes, store.Delete(d.Path, d.Version))...)
	return down(err)
}
