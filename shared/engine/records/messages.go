package records

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/document"
)

// MessagePage is a page of a conversation's messages, oldest first. Before is the number to pass for the previous page,
// or zero.
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
	if errors.Is(err, errGone) { // a deletion has begun since
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
var errGone = errors.New("records: a part of a conversation is missing")

// chunkPage is the number of chunks in one read. A page of messages needs at most one read.
const chunkPage = 250

// messages passes the thread's messages from number first up to, but not including, number before to each. It reads
// only the chunks that contain them.
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

// contents passes all stored contents of the thread to each, oldest first.
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
