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

// A deletion is made of commits that each delete a bounded number of documents, and may be interrupted between any two.
// The first one marks the conversation (or the user was disabled before), so that no user sees half of it; the
// documents that lead to the rest are deleted last.

const (
	runPage      = 20               // runs that are read and deleted at a time
	deletePage   = 400              // documents that one commit deletes
	sweptThreads = 20               // deletions of each shard that one sweep continues
	deleteLater  = 10 * time.Minute // after this a deletion that failed is tried again
	reserve      = 5 * time.Second  // of the caller's time that is kept for its answer
	maxRaces     = 20               // commits lost to others before the caller has to try again
)

// errOutOfTime means that the caller's time is nearly up: the sweep does the rest.
var errOutOfTime = errors.New("records: out of time")

func outOfTime(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < reserve {
		return errOutOfTime
	}
	return nil
}

// DeleteThread deletes a conversation with its runs and approvals; their audit entries stay. A conversation with a run
// that has not ended is refused (PolicyError busy), unless that run was put aside and everything that it started has an
// outcome. After the first commit the conversation no longer exists for its user; gone is false where the rest is left
// to the sweep, because time was short, the store did not answer, a run that was put aside moves again, or one that has
// ended is still due. A repeated call continues the deletion.
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

// markThread makes the conversation inaccessible to its user. Its fields are no longer those by which conversations are
// listed, but those by which deletions are found.
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
		data, err := strictjson.Marshal(t)
		if err != nil {
			return err
		}
		marked := store.Update(doc.Path, doc.Version, document.ThreadFields{UID: uid, Deleting: r.now()}.Map(id), data)
		err = r.record(ctx, audit.Entry{UID: uid, Kind: audit.Deletion, Ref: id}, marked)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces { // a new run has changed the thread
			return storeError(err)
		}
	}
}

// atRest refuses a conversation with a run that may not be deleted. It looks at all runs, since one that a release
// before put aside has no time by which it would be found.
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
	return fault.New(fault.Policy, fault.CodeBusy, "What a run that has ended leaves to do is still being done.")
}

func errBusy() error {
	return fault.New(fault.Policy, fault.CodeBusy,
		"Something in this conversation has not ended yet. Cancel it or answer it first.")
}

// eraseThread deletes a thread that was marked, page by page, its own document last. Two at once do no more than one.
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

// deletePages deletes the documents except the last page, whose writes it returns, to be committed with the document
// that leads to them.
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

// deleteRuns deletes all runs of the query, page by page; one that may not be deleted stops it.
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
			if !ended(d) && !aside(d) {
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

// ended reports whether the document's run has ended.
func ended(d store.Doc) bool {
	s := run.Status(document.RunFieldsOf(d).Status)
	return s == run.Completed || s == run.Failed
}

// unclean reports whether the run has ended and something still takes its document: what its calls have left is being
// removed, or others are being told of it.
func unclean(d store.Doc) bool { return ended(d) && !document.RunFieldsOf(d).Due.IsZero() && !aside(d) }

// deleteRun deletes a run with its events and approvals, all in one commit unless they are more than one takes, after
// what its actions have printed. The end
// of its audit chain stays, or it could not be told later whether entries were cut off. A run that moves meanwhile is
// read again: either the deletion comes first, and the process that moves the run finds nothing, or what that has
// started is settled first.
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
		_, err = r.Store.Commit(ctx, append(append(writes, left.user...), store.Delete(d.Path, d.Version))...)
		if !errors.Is(err, store.ErrConflict) || try == maxRaces {
			return err
		}
		docs, err := r.Store.Get(ctx, d.Path)
		if err != nil || !docs[0].Exists() { // another process deletes it too
			return err
		}
		d = docs[0]
	}
}

// Deletions counts what FinishDeletions found.
type Deletions struct {
	Begun int // interrupted deletions of conversations, as far as there was time to look
	Gone  int // of those, completed
}

// FinishDeletions continues interrupted deletions of conversations, as far as ctx's time reaches. One that fails does
// not stop the others; it is tried again later.
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
		case fault.Is(err, fault.Policy, fault.CodeBusy): // it goes on once its runs are at rest
			failed = append(failed, r.postpone(ctx, doc))
		default:
			failed = append(failed, fmt.Errorf("%s: %w", doc.Path, err), r.postpone(ctx, doc))
		}
	}
	return d, errors.Join(failed...)
}

// postpone puts a deletion that failed behind the others.
func (r *Records) postpone(ctx context.Context, d store.Doc) error {
	fields := document.ThreadFields{UID: document.ThreadFieldsOf(d).UID, Deleting: r.now().Add(deleteLater)}
	_, err := r.Store.Commit(ctx, store.Update(d.Path, d.Version, fields.Map(document.ID(d)), d.Data))
	if errors.Is(err, store.ErrConflict) { // another process has continued it
		return nil
	}
	return err
}

// Erase deletes what is stored of a disabled user: runs with their events and approvals, threads with their messages,
// hosts with their secrets and terminals, the allowlist. A run that has not ended stops it with PolicyError busy. It
// may be interrupted anywhere and called again.
//
// The audit stays, or it would not be one: its entries hold the user's id, keyed hashes and outcomes, and no content,
// and the keys (nonces) are deleted. The user's own document stays as well, with nothing but the id and that the user
// is disabled, so that whatever of theirs was still under way is refused, and so is an ID token that is still valid.
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
	return r.updateUser(ctx, uid, func(u *run.User) (*audit.Entry, bool) {
		changed := !reflect.DeepEqual(*u, bare)
		*u = bare
		return &audit.Entry{Kind: audit.Deleted}, changed
	})
}

// hasLeft reports whether a run, a thread or a list of hosts of the user is left.
func (r *Records) hasLeft(ctx context.Context, uid string) (bool, error) {
	if docs, err := r.get(ctx, document.HostListPath(uid)); err != nil || docs[0].Exists() {
		return true, err
	}
	for _, q := range []store.Query{document.RunsOf(uid, 1), document.ThreadsOf(uid, 1), document.DeletionsOf(uid, 1)} {
		if docs, err := r.Store.Query(ctx, q); err != nil || len(docs) > 0 {
			return true, storeError(err)
		}
	}
	return false, nil
}
