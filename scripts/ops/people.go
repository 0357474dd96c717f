package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/offboard"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/wait"
)

// user opens the deployment for a command about a user, and refuses an invalid user id.
func (d *operator) user(ctx context.Context, uid string) (*app.App, error) {
	if store.ValidPath(document.UserPath(uid)) != nil {
		return nil, errors.New("USER is the subject of the user's ID tokens, and this is none")
	}
	return d.people(ctx)
}

const yesText = "do it; without it, say what would be done"

func revoke(flags *flag.FlagSet) func(context.Context, *operator, []string) error {
	yes := flags.Bool("yes", false, yesText)
	return func(ctx context.Context, d *operator, args []string) error {
		p, err := d.user(ctx, args[0])
		if err != nil {
			return err
		}
		if !*yes {
			return d.would(ctx, p, args[0],
				"shut out, and their account unlinked; what waits stays, and nothing of it is carried out")
		}
		r, err := p.Offboard().Revoke(ctx, args[0])
		if err != nil {
			return err
		}
		if err := errors.Join(d.say("the user is shut out (%s); %s", changed(r.Changed), r.Link),
			d.waiting(r.Waiting)); err != nil {
			return err
		}
		if r.Link == offboard.Kept {
			return errors.Join(d.say("ask again when it has its outcome"), errLeft)
		}
		return nil
	}
}

func changed(is bool) string {
	if is {
		return "from now on"
	}
	return "as before"
}

func restore(flags *flag.FlagSet) func(context.Context, *operator, []string) error {
	yes := flags.Bool("yes", false, yesText)
	return func(ctx context.Context, d *operator, args []string) error {
		p, err := d.user(ctx, args[0])
		if err != nil {
			return err
		}
		if !*yes {
			return d.would(ctx, p, args[0],
				"let in again; what was approved before and is still in time may be carried out")
		}
		was, err := p.API.Records.SetDisabled(ctx, args[0], false)
		if err != nil {
			return err
		}
		if !was {
			return d.say("the user was not shut out")
		}
		return d.say("the user is let in again; their account has to be linked anew")
	}
}

// deleteUser waits for effects in progress: the resume function settles them, not this command.
func deleteUser(flags *flag.FlagSet) func(context.Context, *operator, []string) error {
	yes := flags.Bool("yes", false, yesText)
	patience := flags.Duration("wait", 2*time.Minute, "how long to wait for runs that are ending")
	return func(ctx context.Context, d *operator, args []string) error {
		p, err := d.user(ctx, args[0])
		if err != nil {
			return err
		}
		if !*yes {
			return d.would(ctx, p, args[0], "shut out, their runs cancelled, and all that is kept of them deleted "+
				"but the audit, which has their id and no content")
		}
		for end := time.Now().Add(*patience); ; {
			r, err := p.Offboard().Delete(ctx, args[0])
			switch {
			case err != nil:
				return fmt.Errorf("%w; ask again: it goes on where it stopped", err)
			case r.Gone:
				return d.say("deleted; %s; the audit and the lock on the id stay, and backups of the store hold the "+
					"rest until they end", r.Link)
			case !time.Now().Before(end):
				return errors.Join(d.waiting(r.Waiting),
					d.say("nothing is deleted before these runs have ended; ask again"), errLeft)
			}
			if err := wait.For(ctx, time.Second); err != nil {
				return err
			}
		}
	}
}

// would prints what a command would do, and to how much data.
func (d *operator) would(ctx context.Context, p *app.App, uid, what string) error {
	u, err := p.API.Records.User(ctx, uid)
	if err != nil {
		return err
	}
	open, err := p.API.Records.Unended(ctx, uid)
	if err != nil {
		return err
	}
	runs, threads := 0, 0
	err = p.API.Records.Each(ctx, uid, func(i records.Item) error {
		switch i.Kind {
		case records.ItemRun:
			runs++
		case records.ItemThread:
			threads++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return errors.Join(d.say("the user would be %s", what),
		d.say("now: shut out: %t, runs: %d, threads: %d, always allowed: %d", u.Disabled, runs, threads, len(u.Allow)),
		d.waiting(open), d.say("-yes does it"))
}

// waiting prints the runs that have not ended.
func (d *operator) waiting(all []records.Unended) (err error) {
	for _, w := range all {
		acting := ""
		if w.Acting {
			acting = ", an effect is under way"
		}
		if w.Aside {
			acting += ", nobody could move it and it was put aside (runbook run-aside)"
		}
		err = errors.Join(err, d.say("run %s is %s, %d approvals wait%s", w.RunID, w.Status, w.Approvals, acting))
	}
	return err
}

func export(*flag.FlagSet) func(context.Context, *operator, []string) error {
	return func(ctx context.Context, d *operator, args []string) error {
		p, err := d.user(ctx, args[0])
		if err != nil {
			return err
		}
		lines := json.NewEncoder(d.out)
		lines.SetEscapeHTML(false)
		links, err := google.Linked(ctx, p.Store, args[0])
		if err != nil {
			return err
		}
		for _, l := range links {
			if err := lines.Encode(records.Item{Kind: "connection", Data: l}); err != nil {
				return err
			}
		}
		return p.API.Records.Export(ctx, args[0], func(i records.Item) error { return lines.Encode(i) })
	}
}
