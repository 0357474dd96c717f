package records

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// userPage is the number of a user's documents in one page.
const userPage = 100

// User returns the user's document, or the zero User if there is none.
func (r *Records) User(ctx context.Context, uid string) (run.User, error) {
	_, u, err := r.user(ctx, uid)
	return u, err
}

// SetDisabled disables or enables the user. After it returns, nothing starts for a disabled user, even if it was
// approved. It reports whether anything changed.
func (r *Records) SetDisabled(ctx context.Context, uid string, disabled bool) (changed bool, err error) {
	err = r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		changed = u.Disabled != disabled
		u.Disabled = disabled
		if disabled {
			return &audit.Entry{Kind: audit.Disabled}, changed
		}
		return &audit.Entry{Kind: audit.Enabled}, changed
	})
	return changed, err
}

// updateUser changes the version of the user's document that was read, together with an entry in the user's own audit
// chain. change reports whether it changed anything.
func (r *Records) updateUser(ctx context.Context, uid string, change func(*run.User) (*audit.Entry, bool)) error {
	for try := 0; ; try++ {
		doc, u, err := r.user(ctx, uid)
		if err != nil {
			return err
		}
		entry, changed := change(&u)
		if !changed {
			return nil
		}
		w, err := userWrite(uid, doc, u)
		if err != nil {
			return err
		}
		entry.UID = uid
		err = r.record(ctx, *entry, w)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return storeError(err)
		}
	}
}

// updateUserFrom changes the user's document without an audit entry. It starts from the given document, or reads the
// document first if the given one has no path. change gets the store's time, and may return an error. It returns the
// changed document.
func (r *Records) updateUserFrom(ctx context.Context, uid string, doc store.Doc,
	change func(*run.User, time.Time) (bool, error)) (store.Doc, error) {
	for try := 0; ; try++ {
		u := run.User{UID: uid}
		var err error
		if doc.Path == "" {
			doc, u, err = r.user(ctx, uid)
		} else {
			err = document.Decode(doc, &u)
		}
		if err != nil {
			return doc, err
		}
		if changed, err := change(&u, doc.ReadTime); err != nil || !changed {
			return doc, err
		}
		w, err := userWrite(uid, doc, u)
		if err != nil {
			return doc, err
		}
		versions, err := r.Store.Commit(ctx, w)
		if err == nil {
			w.Doc.Version, w.Doc.ReadTime = versions[0], versions[0]
			return w.Doc, nil
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return doc, storeError(err)
		}
		doc = store.Doc{}
	}
}

// userWrite returns the write that replaces the document that was read.
func userWrite(uid string, doc store.Doc, u run.User) (store.Write, error) {
	doc.Path = document.UserPath(uid)
	return document.Put(doc, doc.Fields, u)
}

// record commits the writes together with their entry in the user's own audit chain.
func (r *Records) record(ctx context.Context, e audit.Entry, writes ...store.Write) error {
	e.At, e.KeepDays = r.now(), r.AuditDays
	entry, err := audit.Append(ctx, r.Store, e)
	if err != nil {
		return err
	}
	_, err = r.Store.Commit(ctx, append(writes, entry...)...)
	return err
}

// now returns the time with the store's precision.
func (r *Records) now() time.Time { return r.Now().UTC().Truncate(time.Microsecond) }

// eachPage calls each for all documents of a query.
func (r *Records) eachPage(ctx context.Context, q store.Query, each func(store.Doc) error) error {
	for d, err := range document.All(ctx, r.Store, q) {
		if err != nil {
			return storeError(err)
		}
		if err := each(d); err != nil {
			return err
		}
	}
	return nil
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

// CheckReader returns an error if the user is disabled.
func (r *Records) CheckReader(ctx context.Context, uid string) error {
	_, u, err := r.user(ctx, uid)
	if err != nil {
		return err
	}
	return u.CheckEnabled()
}
