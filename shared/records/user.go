package records

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// userPage is how many documents of a user are read at a time.
const userPage = 100

// User gives what is kept of the user alone; the zero User where nothing is.
func (r *Records) User(ctx context.Context, uid string) (agent.User, error) {
	_, u, err := r.user(ctx, uid)
	return u, err
}

// Shut shuts the user out, or lets them in again: from its return on nothing more is begun for a user who is shut out,
// whatever was approved. It reports whether anything changed.
func (r *Records) Shut(ctx context.Context, uid string, out bool) (changed bool, err error) {
	err = r.moveUser(ctx, uid, func(u *agent.User) bool {
		changed = u.Disabled != out
		u.Disabled = out
		return changed
	})
	return changed, err
}

// moveUser changes the user's document under the version that was read; change reports whether it did anything.
func (r *Records) moveUser(ctx context.Context, uid string, change func(*agent.User) bool) error {
	return r.moveUserAt(ctx, uid, func(u *agent.User, _ time.Time) (bool, error) { return change(u), nil })
}

// moveUserAt is moveUser for a change that depends on the store's time and may be refused.
func (r *Records) moveUserAt(ctx context.Context, uid string, change func(*agent.User, time.Time) (bool, error)) error {
	_, err := r.moveUserFrom(ctx, uid, store.Doc{}, change)
	return err
}

// moveUserFrom is moveUserAt from a document that is known already, or else (a Doc without a path) is read first. It
// returns the document as it stands then.
func (r *Records) moveUserFrom(ctx context.Context, uid string, doc store.Doc, change func(*agent.User, time.Time) (bool, error)) (store.Doc, error) {
	for try := 0; ; try++ {
		u := agent.User{UID: uid}
		var err error
		if doc.Path == "" {
			doc, u, err = r.user(ctx, uid)
		} else {
			err = json.Unmarshal(doc.Data, &u)
		}
		if err != nil {
			return doc, err
		}
		if moved, err := change(&u, doc.ReadTime); err != nil || !moved {
			return doc, err
		}
		data, err := agent.Marshal(u)
		if err != nil {
			return doc, err
		}
		w := store.Create(agent.UserPath(uid), nil, data)
		if doc.Exists() {
			w = store.Update(doc.Path, doc.Version, doc.Fields, data)
		}
		versions, err := r.Store.Commit(ctx, w)
		if err == nil {
			w.Doc.Version, w.Doc.ReadTime = versions[0], versions[0]
			return w.Doc, nil
		}
		if !errors.Is(err, store.ErrConflict) || try == 20 {
			return doc, down(err)
		}
		doc = store.Doc{}
	}
}

// Runs gives all runs of the user as they are stored, oldest first.
func (r *Records) Runs(ctx context.Context, uid string, each func(agent.Run, agent.RunStatus) error) error {
	return r.every(ctx, runsOf(uid, userPage), func(d store.Doc) error {
		var run agent.Run
		if err := json.Unmarshal(d.Data, &run); err != nil {
			return fmt.Errorf("records: %s cannot be read: %w", d.Path, err)
		}
		return each(run, agent.RunStatus(fmt.Sprint(d.Fields["status"])))
	})
}

func runsOf(uid string, limit int) store.Query {
	return store.Query{Collection: "runs", OrderBy: "createdAt", Limit: limit, Where: []store.Filter{{Field: "uid", Op: "==", Value: uid}}}
}

func threadsOf(uid string) store.Query {
	return store.Query{Collection: "threads", OrderBy: "updatedAt", Desc: true, Limit: userPage, Where: []store.Filter{{Field: "uid", Op: "==", Value: uid}}}
}

// every calls each for all documents of a query.
func (r *Records) every(ctx context.Context, q store.Query, each func(store.Doc) error) error {
	for {
		docs, err := r.Store.Query(ctx, q)
		if err != nil {
			return down(err)
		}
		for _, d := range docs {
			if err := each(d); err != nil {
				return err
			}
		}
		if len(docs) < q.Limit {
			return nil
		}
		last := docs[len(docs)-1]
		q.After = &store.Cursor{Value: last.Fields[q.OrderBy], ID: path.Base(last.Path)}
	}
}

// Erase deletes what is kept of a user who has been shut out: runs with their events and approvals, threads with their
// messages, the allowlist. A run that has not ended stops it with PolicyError busy. It may be cut off anywhere and asked
// for again.
//
// The audit stays, or it would not be one: its entries hold the user's id, hashes and outcomes, and no content. The
// user's own document stays as well, with the id and the lock and nothing else, so that whatever of theirs was still on
// its way finds the door shut, and an ID token that is still good opens nothing.
func (r *Records) Erase(ctx context.Context, uid string) error {
	u, err := r.User(ctx, uid)
	if err != nil {
		return err
	}
	if !u.Disabled {
		return fault.New(fault.Policy, fault.CodeBusy, "This user has not been shut out, so that more could be kept of them at any time.")
	}
	if err := r.deleteRuns(ctx, runsOf(uid, 50)); err != nil {
		return err
	}
	for {
		docs, err := r.Store.Query(ctx, threadsOf(uid))
		if err != nil {
			return down(err)
		}
		if len(docs) == 0 {
			break
		}
		for _, d := range docs {
			if err := r.DeleteThread(ctx, uid, path.Base(d.Path)); err != nil {
				return err
			}
		}
	}
	return r.moveUser(ctx, uid, func(u *agent.User) bool {
		bare := agent.User{UID: uid, Disabled: true}
		changed := !reflect.DeepEqual(*u, bare)
		*u = bare
		return changed
	})
}
