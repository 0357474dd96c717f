package records

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// Memory returns the user's notes, the oldest first, and the user's preferences.
func (r *Records) Memory(ctx context.Context, uid string) ([]run.Note, preference.Set, error) {
	b, err := memory.Read(ctx, r.Store, uid)
	if err != nil {
		return nil, preference.Set{}, storeError(err)
	}
	u, err := b.User()
	return append([]run.Note{}, b.Notes...), u.Preferences, err
}

// EditNote replaces the text of a note with the user's own words, and returns the note. was is the text that the user
// has seen, or empty: a note that has another text by then stays as it is.
func (r *Records) EditNote(ctx context.Context, uid, id, was, text string) (n run.Note, err error) {
	if text, err = run.NoteText(text); err != nil {
		return n, err
	}
	entry := audit.Entry{UID: uid, Kind: audit.NoteChanged, Ref: id}
	return n, r.updateNotes(ctx, uid, entry, func(b *memory.Book) error {
		if now := b.Note(id); was != "" && now != nil && now.Text != was {
			return fault.New(fault.Policy, fault.CodeStaleView, "The note has changed since you opened it.")
		}
		err := b.Edit(id, text, r.now())
		if err == nil {
			n = *b.Note(id)
		}
		return err
	})
}

// DeleteNote deletes a note. Runs that saw the note keep it until their conversation is deleted.
func (r *Records) DeleteNote(ctx context.Context, uid, id string) error {
	entry := audit.Entry{UID: uid, Kind: audit.NoteDeleted, Ref: id}
	return r.updateNotes(ctx, uid, entry, func(b *memory.Book) error {
		if !b.Forget(id) {
			return fault.NotFound()
		}
		return nil
	})
}

// updateNotes changes the user's notes, together with an entry in the user's own audit chain.
func (r *Records) updateNotes(ctx context.Context, uid string, e audit.Entry, change func(*memory.Book) error) error {
	for try := 0; ; try++ {
		b, err := memory.Read(ctx, r.Store, uid)
		if err != nil {
			return storeError(err)
		}
		if err := change(b); err != nil {
			return err
		}
		writes, err := b.Writes()
		if err != nil {
			return err
		}
		err = r.record(ctx, e, writes...)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return storeError(err)
		}
	}
}

// exportNotes passes the user's notes.
func (r *Records) exportNotes(ctx context.Context, uid string, each func(Item) error) error {
	notes, _, err := r.Memory(ctx, uid)
	if err != nil {
		return err
	}
	for _, n := range notes {
		if err := each(Item{Kind: ItemNote, Data: n}); err != nil {
			return err
		}
	}
	return nil
}

// erase deletes a document, if there is one.
func (r *Records) erase(ctx context.Context, path string) error {
	docs, err := r.get(ctx, path)
	if err != nil || !docs[0].Exists() {
		return err
	}
	_, err = r.Store.Commit(ctx, store.Delete(docs[0].Path, time.Time{}))
	return storeError(err)
}
