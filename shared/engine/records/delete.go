package records

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
)

// A deletion is a sequence of commits that each delete a bounded number of documents. It may be interrupted between any
// two. The first commit marks the conversation, or the user was disabled before, so that no user sees half of it. The
// documents that lead to the others are deleted last.

const (
	runPage      = 20               // runs in one page
	deletePage   = 400              // documents in one commit
	sweptThreads = 20               // deletions that one sweep continues, for each shard
	deleteLater  = 10 * time.Minute // delay before a failed deletion is retried
	reserve      = 5 * time.Second  // part of the caller's time that remains for its answer
	maxRaces     = 20               // lost races before the caller has to retry
)

// errOutOfTime means that the caller's time is nearly up. The sweep does the rest.
var errOutOfTime = errors.New("records: out of time")

func outOfTime(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < reserve {
		return errOutOfTime
	}
	return nil
}

// DeleteThread deletes a conversation with its runs and approvals; their audit entries remain. It returns PolicyError
// busy if a run has not ended, unless the run is quarantined and everything that it started has an outcome. After the
// first commit the conversation no longer exists for its user. gone is false if the sweep does the rest, because time
// was short, the store did not answer, a quarantined run advances again, or an ended run is still due. A repeated call
// continues the deletion.
func (r *Records) DeleteThread(ctx context.Context, uid, id string) (gone bool, err error) {
	if err := r.markThread(ctx, uid, id); err != nil {
		return false, err
	}
	err = r.eraseThread(ctx, document.ThreadPath(id))
	if errors.Is(err, errOutOfTime) || errors.Is(err, store.ErrUnavailable) ||
		fault.Is(err, fault.Policy, fault.CodeBusy) || ctx.Err() != nil {
		return false, nil
	}
	return err == nil, storeError(err)
}

// markThread makes the conversation inaccessible to its user. It replaces the fields that lists of conversations use
// with the fields that find deletions.
func (r *Records) markThread(ctx context.Context, uid, id string) error {
	for try := 0; ; try++ {
		doc, t, err := r.ownThread(ctx, uid, id)
		if err != nil || t.Deleting {
			return err
		}
		if err := r.atRest(ctx, uid, id); err != nil {
			return err
		}
		t.Deleting = true
		marked, err := document.Put(doc, document.ThreadFields{UID: uid, Deleting: r.now()}.Map(id), t)
		if err != nil {
			return err
		}
		err = r.record(ctx, audit.Entry{UID: uid, Kind: audit.Deletion, Ref: id}, marked)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces { // a new run changed the thread
			return storeError(err)
		}
	}
}

// atRest returns an error if the conversation has a run that may not be deleted. It reads all runs, because a run that
// an earlier release quarantined has no time for a query to find it.
func (r *Records) atRest(ctx context.Context, uid, id string) error {
	return r.eachPage(ctx, document.RunsOfThread(uid, id, runPage), func(d store.Doc) error {
		if ended(d) {
			return nil
		}
		_, err := r.remains(ctx, d)
		return err
	})
}

func errDue() error {
	return fault.New(fault.Policy, fault.CodeBusy,
		"A run of this conversation is still cleaning up. Please try again soon.")
}

func errBusy() error {
	return fault.New(fault.Policy, fault.CodeBusy,
		"A run of this conversation has not ended. Cancel it, or decide on its approval first.")
}

// eraseThread deletes a marked thread page by page, and its own document last. Two processes may do this at the same
// time.
func (r *Records) eraseThread(ctx context.Context, threadPath string) error {
	for try := 0; ; try++ {
		var t run.Thread
		doc, err := document.Get(ctx, r.Store, threadPath, &t)
		if err != nil || !doc.Exists() {
			return err
		}
		if err := r.deleteRuns(ctx, document.RunsOfThread(t.UID, t.ID, runPage)); err != nil {
			return err
		}
		rest, err := r.deletePages(ctx, slices.Concat(t.Log.ChunkPaths(threadPath, run.MessageChunks),
			t.Contents.ChunkPaths(threadPath, run.ContentChunks)))
		if err != nil {
			return err
		}
		last := append(rest, store.Delete(threadPath, doc.Version))
		if t.Deleting {
			err = r.record(ctx, audit.Entry{UID: t.UID, Kind: audit.Deleted, Ref: t.ID}, last...)
		} else {
			_, err = r.Store.Commit(ctx, last...)
		}
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return err
		}
	}
}

// deletePages deletes the documents except those of the last page. It returns the writes of that page, to be committed
// with the document that leads to them.
func (r *Records) deletePages(ctx context.Context, paths []string) (last []store.Write, err error) {
	for page := range slices.Chunk(paths, deletePage) {
		if len(last) > 0 {
			if err := outOfTime(ctx); err != nil {
				return nil, err
			}
			if _, err := r.Store.Commit(ctx, last...); err != nil {
				return nil, err
			}
		}
		last = nil
		for _, p := range page {
			last = append(last, store.Delete(p, time.Time{}))
		}
	}
	return last, nil
}

// deleteRuns deletes all runs of the query, page by page. It stops at a run that may not be deleted.
func (r *Records) deleteRuns(ctx context.Context, q store.Query) error {
	for {
		if err := outOfTime(ctx); err != nil {
			return err
		}
		docs, err := r.Store.Query(ctx, q)
		if err != nil || len(docs) == 0 {
			return err
		}
		for _, d := range docs {
			if !ended(d) && !quarantined(d) {
				return errBusy()
			}
		}
		for _, d := range docs {
			if err := outOfTime(ctx); err != nil {
				return err
			}
			if err := r.deleteRun(ctx, d); err != nil {
				return err
			}
		}
	}
}

// ended reports whether the run of the document has ended.
func ended(d store.Doc) bool {
	s := run.Status(document.RunFieldsOf(d).Status)
	return s == run.Completed || s == run.Failed
}

// needsDisposal reports whether the run has ended and its document is still in use: to dispose of what its calls have
// left, or to publish notifications.
func needsDisposal(d store.Doc) bool {
	return ended(d) && !document.RunFieldsOf(d).Due.IsZero() && !quarantined(d)
}

// deleteRun deletes a run with its events and approvals, after the output of its actions. It uses one commit if
// everything fits into one. The end of the audit chain remains, so that missing entries can be noticed later. If the
// run advances in the meantime, it is read again. Either the deletion comes first, and the process that advances the
// run finds nothing, or the effect that the process started gets its outcome first.
func (r *Records) deleteRun(ctx context.Context, d store.Doc) error {
	for try := 0; ; try++ {
		left, err := r.remains(ctx, d)
		if err == nil {
			err = r.deleteOutputs(ctx, document.ID(d), left.kept)
		}
		if err != nil {
			return err
		}
		writes, err := r.deletePages(ctx, left.paths)
		if err != nil {
			return err
		}
		if left.chain.Seq > 0 {
			head, err := strictjson.Marshal(left.chain)
			if err != nil {
				return err
			}
			writes = append(writes, store.Create(document.AuditHeadPath(document.ID(d)),
				document.AuditHeadFields(r.now(), left.chain.Expires), head))
		}
		writes = slices.Concat(writes, left.files, left.user, []store.Write{store.Delete(d.Path, d.Version)})
		_, err = r.Store.Commit(ctx, writes...)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return err
		}
		docs, err := r.Store.Get(ctx, d.Path)
		if err != nil || !docs[0].Exists() { // another process has deleted it
			return err
		}
		d = docs[0]
	}
}

// Deletions counts the deletions that FinishDeletions found.
type Deletions struct {
	Begun int // interrupted deletions that were found in time
	Gone  int // completed ones among them
}

// FinishDeletions continues interrupted deletions of conversations until ctx's time is nearly up. A failed deletion
// does not stop the others, and is retried later.
func (r *Records) FinishDeletions(ctx context.Context) (d Deletions, err error) {
	var begun []store.Doc
	for docs, err := range document.FirstPages(ctx, r.Store, func(shard int64) store.Query {
		return document.Deletions(shard, r.now(), sweptThreads)
	}) {
		if err != nil {
			return d, storeError(err)
		}
		begun = append(begun, docs...)
	}
	var failed []error
	for _, doc := range begun {
		d.Begun++
		err := r.eraseThread(ctx, doc.Path)
		switch {
		case errors.Is(err, errOutOfTime), ctx.Err() != nil:
			return d, errors.Join(failed...)
		case err == nil:
			d.Gone++
		case fault.Is(err, fault.Policy, fault.CodeBusy): // retried when its runs have ended
			failed = append(failed, r.postpone(ctx, doc))
		default:
			failed = append(failed, fmt.Errorf("%s: %w", doc.Path, err), r.postpone(ctx, doc))
		}
	}
	return d, errors.Join(failed...)
}

// postpone moves a failed deletion to the end of the others.
func (r *Records) postpone(ctx context.Context, d store.Doc) error {
	fields := document.ThreadFields{UID: document.ThreadFieldsOf(d).UID, Deleting: r.now().Add(deleteLater)}
	_, err := r.Store.Commit(ctx, store.Update(d.Path, d.Version, fields.Map(document.ID(d)), d.Data))
	if errors.Is(err, store.ErrConflict) { // another process has continued the deletion
		return nil
	}
	return err
}

// Erase deletes the stored data of a disabled user: runs with their events and approvals, threads with their messages,
// uploaded files, hosts with their secrets and terminals, notes, and the allowlist. It returns PolicyError busy if a
// run has not ended. It may be interrupted and repeated.
//
// The audit log remains. Its entries contain the user's ID, keyed hashes and outcomes, and no content; the keys
// (nonces) are deleted. The user's own document also remains, with only the ID and the fact that the user is disabled.
// It makes the server refuse work of the user that is still in progress, and ID tokens that are still valid.
func (r *Records) Erase(ctx context.Context, uid string) error {
	u, err := r.User(ctx, uid)
	if err != nil {
		return err
	}
	bare := run.User{UID: uid, Disabled: true}
	if !u.Disabled {
		return fault.New(fault.Policy, fault.CodeBusy,
			"This user is not disabled; disable them first, or more data could be stored meanwhile.")
	}
	if reflect.DeepEqual(u, bare) {
		if left, err := r.hasLeft(ctx, uid); err != nil || !left {
			return err
		}
	}
	err = r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		starts := !u.Deleting
		u.Deleting = true
		return &audit.Entry{Kind: audit.Deletion}, starts
	})
	if err != nil {
		return err
	}
	if err := r.deleteRuns(ctx, document.RunsOf(uid, runPage)); err != nil {
		return storeError(err)
	}
	if _, err := terminal.Erase(ctx, r.Store, uid); err != nil {
		return err
	}
	for _, threads := range []store.Query{document.ThreadsOf(uid, userPage), document.DeletionsOf(uid, userPage)} {
		err := r.eachPage(ctx, threads, func(d store.Doc) error { return r.eraseThread(ctx, d.Path) })
		if err != nil {
			return storeError(err)
		}
	}
	if err := r.eraseUploads(ctx, uid); err != nil {
		return err
	}
	for _, path := range []string{document.NotesPath(uid), document.PasskeysPath(uid)} {
		if err := r.erase(ctx, path); err != nil {
			return err
		}
	}
	return r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		changed := !reflect.DeepEqual(*u, bare)
		*u = bare
		return &audit.Entry{Kind: audit.Deleted}, changed
	})
}

// hasLeft reports whether the user still has a run, a thread, an uploaded file, a list of hosts, notes or passkeys.
func (r *Records) hasLeft(ctx context.Context, uid string) (bool, error) {
	docs, err := r.get(ctx, document.HostListPath(uid), document.NotesPath(uid), document.PasskeysPath(uid))
	if err != nil || slices.ContainsFunc(docs, store.Doc.Exists) {
		return true, err
	}
	for _, q := range []store.Query{document.RunsOf(uid, 1), document.ThreadsOf(uid, 1), document.DeletionsOf(uid, 1),
		document.UploadsOf(uid, 1)} {
		if docs, err := r.Store.Query(ctx, q); err != nil || len(docs) > 0 {
			return true, storeError(err)
		}
	}
	return false, nil
}
