package unit

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// LoadOwned reads the run. It returns the error of fault.NotFound unless the run belongs to the user and its
// conversation exists. It checks the owner before it reads anything else, so that the answer for another user's run
// takes as long as for a missing one.
func (s *Snapshot) LoadOwned(ctx context.Context, uid string, also ...string) error {
	if err := s.Read(ctx, append([]string{document.RunPath(s.ID)}, also...)...); err != nil {
		return err
	}
	return foldOwned(ctx, s, uid)
}

// TakeOwned is LoadOwned for a document that a watch returned (store.Watch). The process must not advance the run.
func (s *Snapshot) TakeOwned(ctx context.Context, uid string, d store.Doc) error {
	s.Docs[d.Path] = d
	s.clock.observe(d.ReadTime, time.Time{})
	return foldOwned(ctx, s, uid)
}

// LoadForReader is LoadOwned for a user who must not be disabled; a disabled user gets that error first. It also reads
// the documents that the answer may need and whose IDs follow from the run's: the first approval, and the thread that
// the run started.
func (s *Snapshot) LoadForReader(ctx context.Context, uid string) error {
	err := s.Read(ctx, document.UserPath(uid), document.RunPath(s.ID),
		document.ApprovalPath(run.ApprovalID(s.ID, 1)), document.ThreadPath(run.NewThreadID(s.ID)))
	if err != nil {
		return err
	}
	u, err := userOf(s, uid)
	if err != nil {
		return err
	}
	if err := u.CheckEnabled(); err != nil {
		return err
	}
	return foldOwned(ctx, s, uid)
}

// foldOwned checks the owner of the run that was read, and folds its events.
func foldOwned(ctx context.Context, s *Snapshot, uid string) error {
	d := s.Docs[document.RunPath(s.ID)]
	if !d.Exists() || document.RunFieldsOf(d).UID != uid {
		return fault.NotFound()
	}
	if err := checkNotDeleted(ctx, s, d); err != nil {
		return err
	}
	return s.fold(ctx)
}

// checkNotDeleted refuses a run whose conversation is being deleted. A conversation with an open run cannot be deleted.
func checkNotDeleted(ctx context.Context, s *Snapshot, runDoc store.Doc) error {
	f := document.RunFieldsOf(runDoc)
	if f.Status != string(run.Completed) && f.Status != string(run.Failed) {
		return nil
	}
	path := document.ThreadPath(f.ThreadID)
	if _, read := s.Docs[path]; !read {
		if err := s.Read(ctx, path); err != nil {
			return err
		}
	}
	var t run.Thread
	doc := s.Docs[path]
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
func (s *Snapshot) User(ctx context.Context) (*run.User, error) { return s.user(ctx, s.Run.UID) }

// Preferences returns the preferences of a user, also before the run has an owner.
func (s *Snapshot) Preferences(ctx context.Context, uid string) (preference.Set, error) {
	u, err := s.user(ctx, uid)
	if err != nil {
		return preference.Set{}, err
	}
	return u.Preferences, nil
}

func (s *Snapshot) user(ctx context.Context, uid string) (*run.User, error) {
	path := document.UserPath(uid)
	if _, read := s.Docs[path]; !read {
		if err := s.Read(ctx, s.prefetch([]string{path})...); err != nil {
			return nil, err
		}
	}
	return userOf(s, uid)
}

// userOf decodes the user's cached document. A missing document gives an empty user.
func userOf(s *Snapshot, uid string) (*run.User, error) {
	u := &run.User{UID: uid}
	if d := s.Docs[document.UserPath(uid)]; d.Exists() {
		return u, s.decode(d, u)
	}
	return u, nil
}
