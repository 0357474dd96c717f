package journal

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
)

// LoadOwned reads the run, which must be the user's, and whose conversation must still exist. Its owner is checked
// before anything else of it is read, so that the answer for another user's run takes as long as for none.
func (ex *Execution) LoadOwned(ctx context.Context, uid string, also ...string) error {
	if err := ex.Read(ctx, append([]string{document.RunPath(ex.ID)}, also...)...); err != nil {
		return err
	}
	return foldOwned(ctx, ex, uid)
}

// TakeOwned is LoadOwned for the run's document that a watcher was given (store.Watch). The execution must not be used
// for moving the run.
func TakeOwned(ctx context.Context, ex *Execution, uid string, d store.Doc) error {
	ex.Docs[d.Path] = d
	ex.observeTime(d.ReadTime, time.Time{})
	return foldOwned(ctx, ex, uid)
}

// LoadForReader is LoadOwned for a user who must not be disabled, and who is told of that first. With the run it reads
// what its answer may need and what the run's id tells: the first approval, and the thread that it has begun.
func LoadForReader(ctx context.Context, ex *Execution, uid string) error {
	err := ex.Read(ctx, document.UserPath(uid), document.RunPath(ex.ID),
		document.ApprovalPath(run.ApprovalID(ex.ID, 1)), document.ThreadPath(run.NewThreadID(ex.ID)))
	if err != nil {
		return err
	}
	u, err := userOf(ex, uid)
	if err != nil {
		return err
	}
	if err := u.CheckEnabled(); err != nil {
		return err
	}
	return foldOwned(ctx, ex, uid)
}

// foldOwned checks the owner of the run that was read, and folds its events.
func foldOwned(ctx context.Context, ex *Execution, uid string) error {
	d := ex.Docs[document.RunPath(ex.ID)]
	if !d.Exists() || document.RunFieldsOf(d).UID != uid {
		return fault.NotFound()
	}
	if err := checkNotDeleted(ctx, ex, d); err != nil {
		return err
	}
	return ex.fold(ctx)
}

// checkNotDeleted refuses a run whose conversation is being deleted. The conversation of a run that has not ended
// cannot be.
func checkNotDeleted(ctx context.Context, ex *Execution, runDoc store.Doc) error {
	f := document.RunFieldsOf(runDoc)
	if f.Status != string(run.Completed) && f.Status != string(run.Failed) {
		return nil
	}
	path := document.ThreadPath(f.ThreadID)
	if _, read := ex.Docs[path]; !read {
		if err := ex.Read(ctx, path); err != nil {
			return err
		}
	}
	var t run.Thread
	doc := ex.Docs[path]
	if !doc.Exists() {
		return nil
	}
	if err := document.Decode(doc, &t); err != nil {
		return err
	}
	if t.Deleting {
		return fault.NotFound()
	}
	return nil
}

// User returns the document of the run's user for reading, and reads it where it was not.
func User(ctx context.Context, ex *Execution) (*run.User, error) {
	path := document.UserPath(ex.Run.UID)
	if _, read := ex.Docs[path]; !read {
		if err := ex.Read(ctx, ex.prefetch([]string{path})...); err != nil {
			return nil, err
		}
	}
	return userOf(ex, ex.Run.UID)
}

// userOf returns the user's document, which was read.
func userOf(ex *Execution, uid string) (*run.User, error) {
	u := &run.User{UID: uid}
	if d := ex.Docs[document.UserPath(uid)]; d.Exists() {
		return u, document.Decode(d, u)
	}
	return u, nil
}
