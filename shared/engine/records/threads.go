package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// ThreadView is a conversation as its list shows it.
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

// Threads returns the user's conversations, the newest first.
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

// A Search says which conversations are wanted. A zero field wants all.
type Search struct {
	Words    string // each of which stands in the title, the user's own words, the recipients or the tools
	State    State
	From, To time.Time // of the last use
}

// A State is how a conversation stands, for a search.
type State string

// The states of a conversation.
const (
	Waiting   State = "waiting" // for a decision of its user
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
)

// States are all of them.
var States = []State{Waiting, Running, Completed, Failed}

// The bounds of a search: the documents of one query, and those that one search reads.
const (
	searchPage = 50
	maxSearch  = 300
)

// Find returns the user's conversations that are wanted, the newest first. It reads up to maxSearch of them, one after
// another; the cursor, if there is one, goes on from there, also where fewer than limit were found.
func (r *Records) Find(ctx context.Context, uid string, s Search, cursor string, limit int) ([]ThreadView, string,
	error) {
	waiting, err := r.waiting(ctx, uid, s.State)
	if err != nil {
		return nil, "", err
	}
	views, words := []ThreadView{}, strings.Fields(run.Folded(s.Words))
	q := document.ThreadsUsed(uid, s.From, s.To, searchPage)
	for read := 0; read < maxSearch; read += searchPage {
		docs, next, err := r.page(ctx, q, cursor)
		if err != nil {
			return nil, "", err
		}
		for i, d := range docs {
			var t run.Thread
			if err := document.Decode(d, &t); err != nil {
				return nil, "", err
			}
			if !t.Has(words) || s.State != "" && stateOf(t, waiting) != s.State {
				continue
			}
			switch views = append(views, viewThread(t)); {
			case len(views) == limit && i == len(docs)-1:
				return views, next, nil // nothing may come after it
			case len(views) == limit:
				return views, document.FormatCursor(q, d), nil
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	return views, cursor, nil
}

// waiting returns the ids of the conversations in which something waits for the user, where a state is asked for. It
// reads the approvals' fields alone, and whole ones only of an earlier release, whose fields have no thread.
func (r *Records) waiting(ctx context.Context, uid string, s State) (map[string]bool, error) {
	ids := map[string]bool{}
	var whole []string
	for cursor, more := "", s != ""; more; more = cursor != "" {
		docs, next, err := r.page(ctx, document.WaitingThreads(uid, string(run.ApprovalOpen), searchPage), cursor)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			switch f := document.ApprovalFieldsOf(d); {
			case f.ThreadID == "":
				whole = append(whole, document.ID(d))
			case d.ReadTime.Before(f.ExpiresAt):
				ids[f.ThreadID] = true
			}
		}
		cursor = next
	}
	for part := range slices.Chunk(whole, searchPage) {
		open, err := r.Approvals(ctx, uid, part)
		if err != nil {
			return nil, err
		}
		for _, a := range open {
			ids[a.ThreadID] = true
		}
	}
	return ids, nil
}

func stateOf(t run.Thread, waiting map[string]bool) State {
	switch ended := t.Ended(); {
	case waiting[t.ID]:
		return Waiting
	case ended == run.Failed:
		return Failed
	case ended == run.Completed:
		return Completed
	}
	return Running
}

// Rename gives the conversation a title of its user's own, which nothing else changes from then on. Its place in the
// list stays. It refuses a title that is empty, long, or has more than one line or what cannot be seen.
func (r *Records) Rename(ctx context.Context, uid, id, title string) (ThreadView, error) {
	title = strings.TrimSpace(title)
	switch _, hidden := visible.Line(title); {
	case visible.Blank(title):
		return ThreadView{}, fault.Invalid("title", "a title is needed")
	case len(title) > run.MaxTitle:
		return ThreadView{}, fault.Invalid("title", "%d bytes; the limit is %d", len(title), run.MaxTitle)
	case hidden:
		return ThreadView{}, fault.Invalid("title", "one line is needed, without characters that cannot be seen")
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
		data, err := strictjson.Marshal(t)
		if err != nil {
			return ThreadView{}, err
		}
		_, err = r.Store.Commit(ctx, store.Update(doc.Path, doc.Version, doc.Fields, data))
		if err == nil {
			return viewThread(t), nil
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces { // a run has changed the thread
			return ThreadView{}, storeError(err)
		}
	}
}

// MessagePage is a part of a conversation, oldest first. Before, when not zero, asks for the page before it.
type MessagePage struct {
	Messages []run.Message `json:"messages"`
	Before   int64         `json:"before,omitempty"`
}

// Messages returns the newest messages before the given number.
func (r *Records) Messages(ctx context.Context, uid, threadID string, before int64, limit int) (MessagePage, error) {
	page := MessagePage{Messages: []run.Message{}}
	t, err := r.thread(ctx, uid, threadID)
	if err != nil {
		return page, err
	}
	before = min(before, t.Log.Count+1)
	first := max(1, before-int64(limit))
	err = r.messages(ctx, t, first, before, func(m run.Message) error {
		page.Messages = append(page.Messages, m)
		return nil
	})
	if errors.Is(err, errGone) { // its deletion has begun since
		return page, fault.NotFound()
	}
	if err != nil {
		return page, err
	}
	if first > 1 {
		page.Before = first
	}
	return page, nil
}

// errGone means that a part of a thread no longer exists.
var errGone = errors.New("records: a part of a conversation is gone")

// chunkPage is how many chunks of a log are read at a time: a page of messages needs no more, a whole thread needs many
// pages of them.
const chunkPage = 250

// messages passes the thread's messages from number first up to, but not including, before to each, and reads only the
// chunks that hold them.
func (r *Records) messages(ctx context.Context, t run.Thread, first, before int64,
	each func(run.Message) error) error {
	within := func(all []run.Message) error {
		for _, m := range all {
			if m.Seq < first || m.Seq >= before {
				continue
			}
			if err := each(m); err != nil {
				return err
			}
		}
		return nil
	}
	paths := t.Log.Paths(document.ThreadPath(t.ID), run.MessageChunks, first, before-1)
	if err := eachChunk(ctx, r, paths, within); err != nil {
		return err
	}
	return within(t.Log.Tail)
}

// contents passes all contents that the thread keeps to each, oldest first.
func (r *Records) contents(ctx context.Context, t run.Thread, each func(run.Content) error) error {
	all := func(part []run.Content) error {
		for _, c := range part {
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	}
	if err := eachChunk(ctx, r, t.Contents.ChunkPaths(document.ThreadPath(t.ID), run.ContentChunks), all); err != nil {
		return err
	}
	return all(t.Contents.Tail)
}

// eachChunk passes the items of each chunk to each, in the order of the paths.
func eachChunk[T any](ctx context.Context, r *Records, paths []string, each func([]T) error) error {
	for page := range slices.Chunk(paths, chunkPage) {
		docs, err := r.get(ctx, page...)
		if err != nil {
			return err
		}
		for _, d := range docs {
			if !d.Exists() {
				return fmt.Errorf("%w: %s", errGone, d.Path)
			}
			var part []T
			if err := document.Decode(d, &part); err != nil {
				return err
			}
			if err := each(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// thread reads a conversation that exists for its user.
func (r *Records) thread(ctx context.Context, uid, id string) (run.Thread, error) {
	_, t, err := r.ownThread(ctx, uid, id)
	if err == nil && t.Deleting {
		return run.Thread{}, fault.NotFound()
	}
	return t, err
}

// ownThread reads the user's thread, also one that is being deleted. Its owner is checked before anything else of it is
// read.
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

// maxResumed is how many of a conversation's newest runs are looked at for one that has not ended.
const maxResumed = 8

// NewestRuns returns the newest run of the user's conversation that has not ended, and the newest of all, of the newest
// few, each "" where there is none.
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
