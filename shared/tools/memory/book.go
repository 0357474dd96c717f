package memory

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Book holds a user's notes as they were read.
type Book struct {
	run.Memory
	doc, user store.Doc
}

// Read reads the user's notes.
func Read(ctx context.Context, st store.Store, uid string) (*Book, error) {
	docs, err := st.Get(ctx, document.NotesPath(uid), document.UserPath(uid))
	if err != nil {
		return nil, err
	}
	b := &Book{Memory: run.Memory{UID: uid}, doc: docs[0], user: docs[1]}
	if b.doc.Exists() {
		err = document.Decode(b.doc, &b.Memory)
	}
	return b, err
}

// User returns the user's document. It is empty if there is none.
func (b *Book) User() (u run.User, err error) {
	if b.user.Exists() {
		err = document.Decode(b.user, &u)
	}
	return u, err
}

// Writes returns the writes that store the changed notes. The commit fails if the notes or the user have changed since
// they were read. The error is AuthError for a disabled user.
func (b *Book) Writes() ([]store.Write, error) {
	u, err := b.User()
	if err == nil {
		err = u.CheckEnabled()
	}
	if err != nil {
		return nil, err
	}
	write, err := document.Put(b.doc, nil, b.Memory)
	if err != nil {
		return nil, err
	}
	if !b.user.Exists() {
		return []store.Write{write}, nil
	}
	return []store.Write{write, store.Check(b.user.Path, b.user.Version)}, nil
}

// maxRaces is the number of lost races after which a change fails.
const maxRaces = 20

// update changes the user's notes. change reports whether it changed anything.
func update(ctx context.Context, st store.Store, uid string, change func(*Book) (bool, error)) error {
	for try := 0; ; try++ {
		b, err := Read(ctx, st, uid)
		if err != nil {
			return readable(err)
		}
		if changed, err := change(b); err != nil || !changed {
			return err
		}
		writes, err := b.Writes()
		if err != nil {
			return err
		}
		_, err = st.Commit(ctx, writes...)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return readable(err)
		}
	}
}

// readable turns a store's error into one that callers may show.
func readable(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) {
		return fault.Unavailable("The notes could not be read or stored. Please try again.", err)
	}
	return err
}
