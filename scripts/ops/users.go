package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// user opens the deployment, with further parts, for a command about a user. It returns an error for an invalid user
// ID.
func (o *operator) user(ctx context.Context, uid string, further ...app.Part) (*app.App, error) {
	if store.ValidPath(document.UserPath(uid)) != nil {
		return nil, errors.New("USER is not a valid user ID: it is the subject of the user's ID tokens")
	}
	return o.app(ctx, further...)
}

// ifYes returns a command about a user. Without -yes it only prints what do would do.
func ifYes(flags *flag.FlagSet, what string, do func(context.Context, *operator, *app.App, string) error) runFunc {
	yes := flags.Bool("yes", false, "do it; without -yes, print what would be done")
	return func(ctx context.Context, o *operator, args []string) error {
		a, err := o.user(ctx, args[0])
		if err != nil {
			return err
		}
		if !*yes {
			return o.dryRun(ctx, a, args[0], what)
		}
		return do(ctx, o, a, args[0])
	}
}

func revoke(flags *flag.FlagSet) runFunc {
	const what = "disabled and their accounts unlinked; waiting approvals stay, and their actions do not run"
	return ifYes(flags, what, func(ctx context.Context, o *operator, a *app.App, uid string) error {
		r, err := a.Offboard().Revoke(ctx, uid)
		if err != nil {
			return err
		}
		if err := errors.Join(o.printf("user disabled%s; %s", changed(r.Changed), links(r.Link, r.GitHub)),
			o.printRuns(r.Waiting)); err != nil {
			return err
		}
		if r.Link == offboard.Kept {
			return cmp.Or(o.printf("run this again when the effect has its outcome"), errFailed)
		}
		return nil
	})
}

// links describes the result for the linked accounts. It mentions GitHub only if a GitHub account was linked.
func links(atGoogle, atGitHub offboard.Link) string {
	if atGitHub == offboard.UnlinkedGitHub || atGitHub == offboard.ForgottenGitHub {
		return string(atGoogle) + "; " + string(atGitHub)
	}
	return string(atGoogle)
}

func changed(is bool) string {
	if is {
		return ""
	}
	return " already"
}

func enable(flags *flag.FlagSet) runFunc {
	const what = "enabled; approved actions that have not expired can run"
	return ifYes(flags, what, func(ctx context.Context, o *operator, a *app.App, uid string) error {
		was, err := a.API.Records.SetDisabled(ctx, uid, false)
		if err != nil {
			return err
		}
		if !was {
			return o.printf("the user was not disabled")
		}
		return o.printf("user enabled; they must link their accounts again")
	})
}

// deleteUser waits for effects in progress. The resume function reconciles them; this command does not.
func deleteUser(flags *flag.FlagSet) runFunc {
	const what = "disabled, their runs cancelled, and all of their data deleted except the audit, which has their ID " +
		"and no content"
	within := flags.Duration("wait", 2*time.Minute, "how long to wait for ending runs")
	return ifYes(flags, what, func(ctx context.Context, o *operator, a *app.App, uid string) error {
		for end := time.Now().Add(*within); ; {
			r, err := a.Offboard().Delete(ctx, uid)
			switch {
			case err != nil:
				return fmt.Errorf("%w; run this again to continue", err)
			case r.Gone:
				return o.printf("deleted; %s; the audit and the lock on the ID stay, and backups of the store have "+
					"the deleted data until they expire", links(r.Link, r.GitHub))
			case !time.Now().Before(end):
				return cmp.Or(errors.Join(o.printRuns(r.Waiting),
					o.printf("nothing is deleted before these runs have ended; run this again")), errFailed)
			}
			if err := wait.For(ctx, time.Second); err != nil {
				return err
			}
		}
	})
}

// dryRun prints what a command would do, and how much data it would affect.
func (o *operator) dryRun(ctx context.Context, a *app.App, uid, what string) error {
	u, err := a.API.Records.User(ctx, uid)
	if err != nil {
		return err
	}
	open, err := a.API.Records.Unended(ctx, uid)
	if err != nil {
		return err
	}
	runs, threads, hosts := 0, 0, 0
	err = a.API.Records.Each(ctx, uid, func(i records.Item) error {
		switch i.Kind {
		case records.ItemRun:
			runs++
		case records.ItemThread:
			threads++
		case records.ItemHost:
			hosts++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(o.printf("the user would be %s", what),
		o.printf("now: disabled: %t, runs: %d, threads: %d, always allowed: %d, hosts: %d", u.Disabled, runs, threads,
			len(u.Allow), hosts),
		o.printRuns(open), o.printf("-yes does it"))
}

// printRuns prints the runs that have not ended.
func (o *operator) printRuns(all []records.Unended) (err error) {
	for _, w := range all {
		acting := ""
		if w.Acting {
			acting = ", an effect is running"
		}
		if w.Quarantined {
			acting += ", quarantined because no process could advance it (runbook run-aside)"
		}
		err = errors.Join(err, o.printf("run %s is %s, %d approvals wait%s", w.RunID, w.Status, w.Approvals, acting))
	}
	return err
}

func export(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, args []string) error {
		a, err := o.user(ctx, args[0])
		if err != nil {
			return err
		}
		lines := json.NewEncoder(o.out)
		lines.SetEscapeHTML(false)
		for _, p := range []linking.Provider{google.Provider, github.Provider} {
			found, err := p.Linked(ctx, a.Store, args[0])
			if err != nil {
				return err
			}
			for _, l := range found {
				if err := lines.Encode(records.Item{Kind: "connection", Data: l}); err != nil {
					return err
				}
			}
		}
		return a.API.Records.Export(ctx, args[0], func(i records.Item) error { return lines.Encode(i) })
	}
}
