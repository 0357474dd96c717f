package journal

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// LoadOwned reads the run. It returns the error of fault.NotFound unless the run belongs to the user and its
// conversation exists. It checks the owner before it reads anything else, so that the answer for another user's run
// takes as long as for a missing one.
func (ex *Execution) LoadOwned(ctx context.Context, uid string, also ...string) error {
	if err := ex.Read(ctx, append([]string{document.RunPath(ex.ID)}, also...)...); err != nil {
		return err
	}
	return foldOwned(ctx, ex, uid)
}

// TakeOwned is LoadOwned for a document that a watch returned (store.Watch). The execution must not advance the run.
func (ex *Execution) TakeOwned(ctx context.Context, uid string, d store.Doc) error {
	ex.Docs[d.Path] = d
	ex.clock.observe(d.ReadTime, time.Time{})
	return foldOwned(ctx, ex, uid)
}

// LoadForReader is LoadOwned for a user who must not be disabled; a disabled user gets that error first. It also reads
// the documents that the answer may need and whose IDs follow from the run's: the first approval, and the thread that
// the run started.
func (ex *Execution) LoadForReader(ctx context.Context, uid string) error {
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

// checkNotDeleted refuses a run whose conversation is being deleted. A conversation with an open run cannot be deleted.
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

// User returns the user's document for reading. It reads the document if it is not cached.
func (ex *Execution) User(ctx context.Context) (*run.User, error) {
	path := document.UserPath(ex.Run.UID)
	if _, read := ex.Docs[path]; !read {
		if err := ex.Read(ctx, ex.prefetch([]string{path})...); err != nil {
			return nil, err
		}
	}
	return userOf(ex, ex.Run.UID)
}

// userOf decodes the user's cached document. A missing document gives an empty user.
func userOf(ex *Execution, uid string) (*run.User, error) {
	u := &run.User{UID: uid}
	if d := ex.Docs[document.UserPath(uid)]; d.Exists() {
		return u, document.Decode(d, u)
	}
	return u, nil
}
