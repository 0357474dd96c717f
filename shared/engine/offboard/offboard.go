// Package offboard revokes a user's access, and deletes all stored data about a user.
package offboard

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
)

// Users provides everything in one deployment that stores data about users. All fields except Accounts and GitHub are
// required.
type Users struct {
	Records  *records.Records
	Loop     *loop.Loop // cancels the users' runs; it needs neither a model nor tools
	Queue    queue.Queue
	Accounts *linking.Accounts // nil if no OAuth client is configured: links are deleted, but not revoked at Google
	GitHub   *linking.Accounts // the same for a GitHub App and GitHub
}

// Acting returns the runs with an effect in progress.
func Acting(all []records.Unended) (some []records.Unended) {
	for _, w := range all {
		if w.Acting {
			some = append(some, w)
		}
	}
	return some
}

// Link is the outcome for a linked account.
type Link string

// The outcomes for a linked account. They concern Google unless they name GitHub.
const (
	NotLinked Link = "no account was linked"
	Kept      Link = "the linked account stays until the effect that is under way has its outcome"
	Unlinked  Link = "the account was unlinked, and Google has taken the access back"
	Forgotten Link = "the account was unlinked, but Google was not told: the user can take the access back at " +
		"https://myaccount.google.com/permissions"
	UnlinkedGitHub  Link = "the GitHub account was unlinked, and GitHub has taken the access back"
	ForgottenGitHub Link = "the GitHub account was unlinked, but GitHub was not told: the user can take the access " +
		"back at https://github.com/settings/apps/authorizations"
)

// Revoked is the result of Revoke.
type Revoked struct {
	Changed bool              `json:"changed"` // false if the user was already disabled
	Link    Link              `json:"link"`    // for the Google account
	GitHub  Link              `json:"github"`  // for the GitHub account
	Waiting []records.Unended `json:"waiting"` // they remain, but none of their calls runs
}

// Revoke disables the user and unlinks their accounts. Runs and approvals remain, but none of their calls runs, and
// they expire. An effect in progress needs its account to find out its outcome. While there is one, accounts stay
// linked, and Revoke must be called again later. The error is the store's or a provider's.
func (u Users) Revoke(ctx context.Context, uid string) (r Revoked, err error) {
	if r.Changed, err = u.Records.SetDisabled(ctx, uid, true); err != nil {
		return r, err
	}
	if r.Waiting, err = u.Records.Unended(ctx, uid); err != nil {
		return r, err
	}
	if r.Link, r.GitHub = Kept, Kept; len(Acting(r.Waiting)) == 0 {
		r.Link, r.GitHub, err = u.unlink(ctx, uid)
	}
	return r, err
}

// unlink unlinks the user's accounts, at GitHub only after Google has succeeded.
func (u Users) unlink(ctx context.Context, uid string) (atGoogle, atGitHub Link, err error) {
	if atGoogle, err = u.unlinkAt(ctx, uid, google.Provider, u.Accounts, Unlinked, Forgotten); err != nil {
		return "", "", err
	}
	atGitHub, err = u.unlinkAt(ctx, uid, github.Provider, u.GitHub, UnlinkedGitHub, ForgottenGitHub)
	return atGoogle, atGitHub, err
}

// unlinkAt revokes the access at the provider if an OAuth client is configured, and deletes the link in any case.
func (u Users) unlinkAt(ctx context.Context, uid string, p linking.Provider, accounts *linking.Accounts, revoked,
	forgotten Link) (Link, error) {
	var done linking.Unlinked
	var err error
	if accounts != nil {
		done, err = accounts.Unlink(ctx, uid)
	} else {
		done.Existed, err = p.Forget(ctx, u.Records.Store, uid, u.Records.Now())
	}
	switch {
	case err != nil:
		return "", err
	case !done.Existed:
		return NotLinked, nil
	case done.Revoked:
		return revoked, nil
	}
	return forgotten, nil
}

// Deleted is the result of Delete.
type Deleted struct {
	Gone    bool              `json:"gone"`
	Link    Link              `json:"link,omitempty"`    // for the Google account
	GitHub  Link              `json:"github,omitempty"`  // for the GitHub account
	Waiting []records.Unended `json:"waiting,omitempty"` // runs that are ending; nothing has been deleted yet
}

// Delete deletes the user's stored data. Each step may be interrupted and repeated:
//
//  1. The user is disabled: from here on none of their runs starts an effect.
//  2. Runs that have not ended are cancelled. The resume function settles a run with an effect in progress. Nothing is
//     deleted until all runs have ended; until then, Delete must be called again. Delete waits for a quarantined run
//     only if one of its effects has no outcome. A run that cannot be read is quarantined first.
//  3. The linked accounts, the queued messages about the runs, the runs, the hosts with their secrets and terminals,
//     the threads, the notes and the allowlist are deleted. Files on a host itself stay there.
//
// The audit log remains; its entries contain the user's ID and no content. The lock on that ID remains too
// (records.Erase).
func (u Users) Delete(ctx context.Context, uid string) (r Deleted, err error) {
	if _, err := u.Records.SetDisabled(ctx, uid, true); err != nil {
		return r, err
	}
	open, err := u.Records.Unended(ctx, uid)
	if err != nil {
		return r, err
	}
	for _, w := range open {
		if err := u.cancel(ctx, uid, w); err != nil {
			return r, err
		}
	}
	if len(open) > 0 {
		if r.Waiting, err = u.Records.Unended(ctx, uid); err != nil {
			return r, err
		}
		r.Waiting = slices.DeleteFunc(r.Waiting, func(w records.Unended) bool { return w.Quarantined && !w.Acting })
		if len(r.Waiting) > 0 {
			return r, nil
		}
	}
	if r.Link, r.GitHub, err = u.unlink(ctx, uid); err != nil {
		return r, err
	}
	if err := u.withdraw(ctx, uid); err != nil {
		return r, err
	}
	if err := u.Records.Erase(ctx, uid); err != nil {
		return r, err
	}
	r.Gone = true
	return r, nil
}

// cancel ends a run. A run that cannot be advanced is passed to the resume function, which quarantines it.
func (u Users) cancel(ctx context.Context, uid string, w records.Unended) error {
	if w.Quarantined {
		return nil
	}
	_, err := u.Loop.Cancel(ctx, uid, w.RunID)
	if err == nil || fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return nil
	}
	return errors.Join(err, u.Queue.Resume(ctx, queue.Message{RunID: w.RunID}))
}

// withdrawer is a queue that can withdraw messages: the embedded one. Pub/Sub cannot; its messages find no run and do
// nothing.
type withdrawer interface {
	Withdraw(ctx context.Context, drop func(ctx context.Context, runIDs []string) (map[string]bool, error)) (int, error)
}

// withdraw removes the queue's messages about the user's runs. A message about a missing run is removed too, because
// that run was deleted.
func (u Users) withdraw(ctx context.Context, uid string) error {
	q, ok := u.Queue.(withdrawer)
	if !ok {
		return nil
	}
	_, err := q.Withdraw(ctx, func(ctx context.Context, runIDs []string) (map[string]bool, error) {
		drop := map[string]bool{}
		for _, id := range runIDs {
			owner, found, err := u.Records.RunOwner(ctx, id)
			if err != nil {
				return nil, err
			}
			drop[id] = !found || owner == uid
		}
		return drop, nil
	})
	return err
}
