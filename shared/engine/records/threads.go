package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// ThreadView is a conversation in a list.
type ThreadView struct {
	ThreadID  string    `json:"threadId"`
	Title     string    `json:"title"`
	Messages  int64     `json:"messages"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

func viewThread(t run.Thread) ThreadView {
	return ThreadView{t.ID, t.Title, t.Log.Count, t.CreatedAt, t.UpdatedAt}
}

// Threads returns the user's conversations, newest first.
func (r *Records) Threads(ctx context.Context, uid, cursor string, limit int) ([]ThreadView, string, error) {
	docs, next, err := r.page(ctx, document.ThreadsOf(uid, limit), cursor)
	if err != nil {
		return nil, "", err
	}
	views := []ThreadView{}
	for _, d := range docs {
		var t run.Thread
		if err := document.Decode(d, &t); err != nil {
			return nil, "", err
		}
		views = append(views, viewThread(t))
	}
	return views, next, nil
}

// Rename sets the conversation's title. The title no longer changes by itself, and the conversation keeps its
// place in the list. The title must be one visible line within the limit of length.
func (r *Records) Rename(ctx context.Context, uid, id, title string) (ThreadView, error) {
	title = strings.TrimSpace(title)
	switch _, hidden := visible.Line(title); {
	case visible.Blank(title):
		return ThreadView{}, fault.Invalid("title", "a title is required")
	case len(title) > run.MaxTitle:
		return ThreadView{}, fault.Invalid("title", "%d bytes; the limit is %d", len(title), run.MaxTitle)
	case hidden:
		return ThreadView{}, fault.Invalid("title", "must be one line without invisible characters")
	}
	for try := 0; ; try++ {
		doc, t, err := r.ownThread(ctx, uid, id)
		if err != nil {
			return ThreadView{}, err
		}
		if t.Deleting {
			return ThreadView{}, fault.NotFound()
		}
		t.Title, t.Titled = title, true
		w, err := document.Put(doc, doc.Fields, t)
		if err != nil {
			return ThreadView{}, err
		}
		_, err = r.Store.Commit(ctx, w)
		if err == nil {
			return viewThread(t), nil
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces { // a run changed the thread
			return ThreadView{}, storeError(err)
		}
	}
}

// thread reads a conversation that exists for its user.
func (r *Records) thread(ctx context.Context, uid, id string) (run.Thread, error) {
	_, t, err := r.ownThread(ctx, uid, id)
	if err == nil && t.Deleting {
		return run.Thread{}, fault.NotFound()
	}
	return t, err
}

// ownThread reads the user's thread, even if it is being deleted. It checks the owner before it reads anything else.
func (r *Records) ownThread(ctx context.Context, uid, id string) (store.Doc, run.Thread, error) {
	var t run.Thread
	docs, err := r.get(ctx, document.ThreadPath(id))
	if err != nil {
		return store.Doc{}, t, err
	}
	if !docs[0].Exists() || document.ThreadFieldsOf(docs[0]).UID != uid {
		return store.Doc{}, t, fault.NotFound()
	}
	if err := document.Decode(docs[0], &t); err != nil {
		return store.Doc{}, t, err
	}
	return docs[0], t, nil
}

// maxResumed is the number of a conversation's newest runs among which NewestRuns searches.
const maxResumed = 8

// NewestRuns returns the newest run of the user's conversation that has not ended, and the newest run of all. It reads
// only the last few runs. Each ID is "" if there is none.
func (r *Records) NewestRuns(ctx context.Context, uid, threadID string) (open, newest string, err error) {
	docs, err := r.get(ctx, document.ThreadPath(threadID))
	if err != nil {
		return "", "", err
	}
	var t run.Thread
	if !docs[0].Exists() {
		return "", "", nil
	}
	if err := document.Decode(docs[0], &t); err != nil || t.UID != uid || t.Deleting {
		return "", "", err
	}
	var ids, paths []string
	for _, m := range slices.Backward(t.Log.Tail) {
		if m.RunID != "" && !slices.Contains(ids, m.RunID) && len(ids) < maxResumed {
			ids, paths = append(ids, m.RunID), append(paths, document.RunPath(m.RunID))
		}
	}
	if docs, err = r.get(ctx, paths...); err != nil {
		return "", "", err
	}
	var opened, begun time.Time
	for i, d := range docs {
		of := document.RunFieldsOf(d)
		ended := of.Status == string(run.Completed) || of.Status == string(run.Failed)
		if d.Exists() && of.CreatedAt.After(begun) {
			newest, begun = ids[i], of.CreatedAt
		}
		if d.Exists() && !ended && of.CreatedAt.After(opened) {
			open, opened = ids[i], of.CreatedAt
		}
	}
	return open, newest, nil
}
