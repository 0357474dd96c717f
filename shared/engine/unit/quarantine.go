package unit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
)

// PutBack is the reason shown to a user who is asked about a call of a quarantined run.
const PutBack = "The server's data was restored from a backup, so this may have been done already. " +
	"Check before you approve it."

// forgedReason is the same for a run with a forged decision.
const forgedReason = "A stored decision of this request was not made by you, so you are asked about everything " +
	"again. Check before you approve it."

// DoubtReason returns why the user is asked about a call that [run.Run.Doubts] names.
func (tx *Tx) DoubtReason() string {
	if tx.Run.Forged {
		return forgedReason
	}
	return PutBack
}

// quarantinePage is the number of runs, or of approvals of a run, in one read.
const quarantinePage = 100

// Restore is the stored record of the store's last restore from an older copy: since that time, the deployment is
// quarantined.
type Restore struct {
	Since      time.Time `json:"since,omitzero"` // the time of the copy; zero: unknown
	BeganAt    time.Time `json:"beganAt"`
	EndedAt    time.Time `json:"endedAt,omitzero"`     // when every open run of the copy was marked
	Runs       int       `json:"runs,omitempty"`       // the number of marked runs
	Unreadable int       `json:"unreadable,omitempty"` // the number of open runs that cannot be read, and cannot act
	Allowed    int       `json:"allowed,omitempty"`    // the number of always-allow entries that were removed
	Tokens     int       `json:"tokens,omitempty"`     // the number of agents' tokens that were removed
	Hosts      int       `json:"hosts,omitempty"`      // the number of hosts on which every command asks again
	Users      int       `json:"users,omitempty"`      // the number of users who are not disabled
}

// Restored returns the record of the store's last restore. found is false if the store was never restored.
func (l *Env) Restored(ctx context.Context) (r Restore, found bool, err error) {
	d, err := document.Get(ctx, l.Store, document.RestorePath, &r)
	return r, d.Exists(), err
}

// Quarantine marks every open run after the store was restored from a copy of the given time. A call of a marked run is
// looked up at its provider ([run.Run.ToLookUp]), and an effect needs a decision made after the restore
// ([run.Run.Doubts]). Quarantine also withdraws what the users of the copy permitted in advance, because they may have
// withdrawn it since. A second call for the same copy changes nothing. The error is the store's.
func (l *Env) Quarantine(ctx context.Context, since time.Time) (Restore, error) {
	known, _, err := l.Restored(ctx)
	if err != nil || !since.IsZero() && known.Since.Equal(since) && !known.EndedAt.IsZero() {
		return known, err
	}
	r := Restore{Since: since}
	if r.BeganAt, err = l.storeRestore(ctx, r); err != nil {
		return r, err
	}
	for d, err := range document.All(ctx, l.Store, document.AllRuns(quarantinePage)) {
		if err != nil {
			return r, err
		}
		switch err := l.quarantine(ctx, d); {
		case errors.Is(err, errEnded):
		case errors.Is(err, errUnreadable):
			r.Unreadable++
		case err != nil:
			return r, err
		default:
			r.Runs++
		}
	}
	if err := l.withdraw(ctx, &r); err != nil {
		return r, err
	}
	r.EndedAt, err = l.storeRestore(ctx, r)
	return r, err
}

// withdraw removes the always-allow entries and the agents' tokens of all users, and the rules of all hosts that let
// commands run without approval. It adds their numbers to r.
func (l *Env) withdraw(ctx context.Context, r *Restore) error {
	for d, err := range document.All(ctx, l.Store, document.AllUsers(quarantinePage)) {
		if err != nil {
			return err
		}
		var entries, tokens int
		u, err := amend(ctx, l.Store, d, func(u *run.User) bool {
			allow := slices.DeleteFunc(slices.Clone(u.Allow), func(e policy.Entry) bool {
				return e.CreatedAt.Before(r.BeganAt)
			})
			left := slices.DeleteFunc(slices.Clone(u.Tokens), func(t run.AgentToken) bool {
				return t.CreatedAt.Before(r.BeganAt)
			})
			entries, tokens = len(u.Allow)-len(allow), len(u.Tokens)-len(left)
			u.Allow, u.Tokens = allow, left
			return entries+tokens > 0
		})
		if err != nil {
			return err
		}
		r.Allowed, r.Tokens = r.Allowed+entries, r.Tokens+tokens
		if !u.Disabled {
			r.Users++
		}
	}
	for d, err := range document.All(ctx, l.Store, document.AllHosts(quarantinePage)) {
		if err != nil {
			return err
		}
		if document.IsHostList(d.Path) {
			continue
		}
		changed := false
		if _, err := amend(ctx, l.Store, d, func(h *terminal.Host) bool {
			changed = h.Unasked() != terminal.AutoRunNone
			h.Withdrawn = h.Withdrawn || changed
			return changed
		}); err != nil {
			return err
		}
		if changed {
			r.Hosts++
		}
	}
	return nil
}

// amend stores the document with a change, and returns its content. change reports whether it changed anything. If
// another process changes the document, amend reads it again.
func amend[T any](ctx context.Context, st store.Store, d store.Doc, change func(*T) bool) (v T, err error) {
	for {
		v = *new(T)
		if err := document.Decode(d, &v); err != nil {
			return v, err
		}
		if !change(&v) {
			return v, nil
		}
		write, err := document.Put(d, d.Fields, v)
		if err != nil {
			return v, err
		}
		if _, err = st.Commit(ctx, write); !errors.Is(err, store.ErrConflict) {
			return v, err
		}
		docs, err := st.Get(ctx, d.Path)
		if err != nil || !docs[0].Exists() {
			return v, err
		}
		d = docs[0]
	}
}

// storeRestore stores the record with the store's time as its next missing time, and returns that time.
func (l *Env) storeRestore(ctx context.Context, r Restore) (at time.Time, err error) {
	docs, err := l.Store.Get(ctx, document.RestorePath)
	if err != nil {
		return at, err
	}
	at = docs[0].ReadTime
	if r.BeganAt.IsZero() {
		r.BeganAt = at
	} else {
		r.EndedAt = at
	}
	write, err := document.Put(docs[0], nil, r)
	if err != nil {
		return at, err
	}
	_, err = l.Store.Commit(ctx, write)
	return at, err
}

var (
	errEnded      = errors.New("unit: the run has ended")
	errUnreadable = errors.New("unit: the run cannot be read")
)

// quarantine marks the run in the document. If another process changes the document, quarantine reads it again.
func (l *Env) quarantine(ctx context.Context, d store.Doc) error {
	for {
		f := document.RunFieldsOf(d)
		if s := run.Status(f.Status); !d.Exists() || s == run.Completed || s == run.Failed {
			return errEnded
		}
		var r run.Run
		if err := document.Decode(d, &r); err != nil {
			return errUnreadable
		}
		r.Quarantined, r.LookedUp, r.Forged = r.Log.Count, 0, false
		r.Lease = run.Lease{} // its owner worked on the lost store
		writes, err := l.warned(ctx, r)
		if err != nil {
			return err
		}
		if !f.Quarantined { // a process looks its calls up, also if the run waits for its user
			f.Due = d.ReadTime
		}
		w, err := document.Put(d, f.Map(r.ID), r)
		if err != nil {
			return err
		}
		_, err = l.Store.Commit(ctx, append(writes, w)...)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		docs, err := l.Store.Get(ctx, d.Path)
		if err != nil {
			return err
		}
		d = docs[0]
	}
}

// warned returns the writes that add the warning to the run's open approvals, which may have been approved after the
// copy was made.
func (l *Env) warned(ctx context.Context, r run.Run) (writes []store.Write, err error) {
	for first := 1; first <= r.Approvals; first += quarantinePage {
		var paths []string
		for n := first; n <= min(r.Approvals, first+quarantinePage-1); n++ {
			paths = append(paths, document.ApprovalPath(run.ApprovalID(r.ID, n)))
		}
		docs, err := l.Store.Get(ctx, paths...)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if document.ApprovalFieldsOf(d).Status != string(run.ApprovalOpen) {
				continue
			}
			w, err := warn(d)
			if err != nil {
				return nil, err
			}
			writes = append(writes, w)
		}
	}
	return writes, nil
}

// warn returns the write that makes the warning the reason of the approval.
func warn(d store.Doc) (store.Write, error) {
	var a run.Approval
	if err := document.Decode(d, &a); err != nil {
		return store.Write{}, errUnreadable
	}
	a.Reason = PutBack
	return document.Put(d, d.Fields, a)
}
