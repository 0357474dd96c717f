package unit

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
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

// Quarantine marks every open run after the store was restored from an older copy. An effect of a marked run needs a
// decision made after the restore ([run.Run.Doubts]). It returns the number of marked runs, and the number of
// unreadable runs, which cannot act. The error is the store's.
func (l *Env) Quarantine(ctx context.Context) (marked, left int, err error) {
	for d, err := range document.All(ctx, l.Store, document.AllRuns(quarantinePage)) {
		if err != nil {
			return marked, left, err
		}
		switch err := l.quarantine(ctx, d); {
		case errors.Is(err, errEnded):
		case errors.Is(err, errUnreadable):
			left++
		case err != nil:
			return marked, left, err
		default:
			marked++
		}
	}
	return marked, left, nil
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
		r.Quarantined = r.Log.Count
		writes, err := l.warned(ctx, r)
		if err != nil {
			return err
		}
		data, err := strictjson.Marshal(r)
		if err != nil {
			return err
		}
		_, err = l.Store.Commit(ctx, append(writes, store.Update(d.Path, d.Version, d.Fields, data))...)
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
	data, err := strictjson.Marshal(a)
	return store.Update(d.Path, d.Version, d.Fields, data), err
}
