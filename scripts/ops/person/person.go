// Package person does what an operator may do about one user: shut them out, let them in, and delete what is kept of them.
package person

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/queue/embedded"
	"github.com/countersign-run/countersign/shared/records"
)

// Desk is where an operator sits: over the store, the queue and the linked accounts of one Countersign.
type Desk struct{ *app.App }

// Waiting is a run of the user that has not ended.
type Waiting = records.Unended

// Waiting gives the user's runs that have not ended.
func (d Desk) Waiting(ctx context.Context, uid string) ([]Waiting, error) {
	return d.API.Records.Unended(ctx, uid)
}

// Acting are those whose effect is under way.
func Acting(all []Waiting) (some []Waiting) {
	for _, w := range all {
		if w.Acting {
			some = append(some, w)
		}
	}
	return some
}

// Link says what became of a linked account.
type Link string

// What became of it.
const (
	NotLinked Link = "no account was linked"
	Kept      Link = "the linked account stays until the effect that is under way has its outcome"
	Unlinked  Link = "the account was unlinked, and Google has taken the access back"
	Forgotten Link = "the account was unlinked, but Google was not told: the user can take the access back at https://myaccount.google.com/permissions"
)

// Revoked is what came of a Revoke.
type Revoked struct {
	Changed bool      `json:"changed"` // false where the user had been shut out before
	Link    Link      `json:"link"`
	Waiting []Waiting `json:"waiting"` // it stays, and nothing of it is carried out
}

// Revoke shuts the user out and unlinks their account. Runs and approvals stay as they are: nothing of them is carried
// out any more, and they end with their time. An effect that is under way needs the account to learn its own outcome, so
// the account stays linked until then, and Revoke is to be asked for again.
func (d Desk) Revoke(ctx context.Context, uid string) (r Revoked, err error) {
	if r.Changed, err = d.API.Records.Shut(ctx, uid, true); err != nil {
		return r, err
	}
	if r.Waiting, err = d.Waiting(ctx, uid); err != nil {
		return r, err
	}
	if r.Link = Kept; len(Acting(r.Waiting)) == 0 {
		r.Link, err = d.unlink(ctx, uid)
	}
	return r, err
}

// unlink takes the access back at Google where an OAuth client is configured here, and forgets the link in any case.
func (d Desk) unlink(ctx context.Context, uid string) (Link, error) {
	var u google.Unlinked
	var err error
	if d.API.Accounts != nil {
		u, err = d.API.Accounts.Unlink(ctx, uid)
	} else {
		u.Existed, err = google.Forget(ctx, d.Store, uid, time.Now())
	}
	switch {
	case err != nil:
		return "", err
	case !u.Existed:
		return NotLinked, nil
	case u.Revoked:
		return Unlinked, nil
	}
	return Forgotten, nil
}

// Deleted is what came of a Delete.
type Deleted struct {
	Gone    bool      `json:"gone"`
	Link    Link      `json:"link,omitempty"`
	Waiting []Waiting `json:"waiting,omitempty"` // runs that are ending; nothing was deleted yet
}

// Delete deletes what is kept of the user. Each part of it may be cut off and begun again:
//
//  1. The user is shut out: from here on none of their runs begins an effect.
//  2. Runs that have not ended are cancelled. One whose effect is under way is settled by the function that moves runs;
//     until all have ended nothing is deleted, and Delete is to be asked for again. One that nobody could move and that was
//     put aside is waited for only if an effect of it has no outcome; one that cannot be read is put aside first.
//  3. The linked account, what is queued about the runs, the runs, the threads and the allowlist are deleted.
//
// What stays is the audit, whose entries have the user's id and no content, and the lock on that id (records.Erase).
func (d Desk) Delete(ctx context.Context, uid string) (r Deleted, err error) {
	if _, err := d.API.Records.Shut(ctx, uid, true); err != nil {
		return r, err
	}
	open, err := d.Waiting(ctx, uid)
	if err != nil {
		return r, err
	}
	for _, w := range open {
		if err := d.cancel(ctx, uid, w); err != nil {
			return r, err
		}
	}
	if len(open) > 0 {
		if r.Waiting, err = d.Waiting(ctx, uid); err != nil {
			return r, err
		}
		r.Waiting = slices.DeleteFunc(r.Waiting, func(w Waiting) bool { return w.Aside && !w.Acting })
		if len(r.Waiting) > 0 {
			return r, nil
		}
	}
	if r.Link, err = d.unlink(ctx, uid); err != nil {
		return r, err
	}
	if err := d.withdraw(ctx, uid); err != nil {
		return r, err
	}
	if err := d.API.Records.Erase(ctx, uid); err != nil {
		return r, err
	}
	r.Gone = true
	return r, nil
}

// cancel ends a run where somebody can. One that cannot be moved is handed to the function that puts it aside.
func (d Desk) cancel(ctx context.Context, uid string, w Waiting) error {
	if w.Aside {
		return nil
	}
	_, err := d.API.Loop.Cancel(ctx, uid, w.RunID)
	if err == nil || fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return nil
	}
	return errors.Join(err, d.Queue.Resume(ctx, w.RunID))
}

// withdraw takes what waits in the embedded queue about the user's runs. A message about a run that is gone is about one
// that was deleted, here or earlier. Pub/Sub takes no message back; there resume finds the run gone, and that is all.
func (d Desk) withdraw(ctx context.Context, uid string) error {
	q, ok := d.Queue.(*embedded.Queue)
	if !ok {
		return nil
	}
	_, err := q.Withdraw(ctx, func(ctx context.Context, runIDs []string) (map[string]bool, error) {
		drop := map[string]bool{}
		for _, id := range runIDs {
			owner, found, err := d.API.Records.RunOwner(ctx, id)
			if err != nil {
				return nil, err
			}
			drop[id] = !found || owner == uid
		}
		return drop, nil
	})
	return err
}
