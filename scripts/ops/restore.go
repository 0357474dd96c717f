package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// restore quarantines a store that was restored from a backup, and reports on its open runs. Run it on the restored
// store before any function uses it, and again, without -since, after the functions have used it for some minutes. The
// embedded store quarantines itself when it detects that it is an older copy; restore then only reports.
//
// The functions look up each call that the copy has as not done at its provider: by the e-mail's header, the event's
// ID, the mark on GitHub, or the journal on the host. A call that was done is recorded as done. A call that was
// permitted in the copy becomes a review if its provider cannot tell. The users of all other calls are asked about
// them.
func restore(flags *flag.FlagSet) runFunc {
	since := flags.String("since", "", "the time of the backup, such as 2026-11-29T09:30:00Z; without it, only report")
	from := flags.String("audit", "", "with -since: the `FOLDER` of an audit export of the old database; users whom "+
		"it says were disabled are disabled in the copy")
	return func(ctx context.Context, o *operator, _ []string) error {
		a, err := o.app(ctx)
		switch {
		case err != nil:
			return err
		case *since != "":
			err = o.quarantine(ctx, a, *since, *from)
		case *from != "":
			err = errors.New("-audit requires -since")
		}
		if err != nil {
			return err
		}
		r, found, err := a.API.Loop.Restored(ctx)
		switch {
		case err != nil:
			return err
		case !found:
			return errors.New("this store was never quarantined: -since is required, and is the time of its backup")
		}
		got, err := aftermath(ctx, a)
		if err != nil {
			return err
		}
		return o.printRestore(r, got)
	}
}

// quarantine marks the open runs of a store that is a copy from the time since. It disables the users whom the exported
// audit in the folder from records as disabled. It refuses a store with a change later than since, unless the store was
// already quarantined with that time. Such a store is not the copy, or functions have used it since.
func (o *operator) quarantine(ctx context.Context, a *app.App, since, from string) error {
	at, err := time.Parse(time.RFC3339, since)
	switch {
	case err != nil:
		return fmt.Errorf("-since is %q; it must be a time such as 2026-11-29T09:30:00Z", since)
	case at.After(time.Now()):
		return fmt.Errorf("-since is %s, which is in the future", since)
	}
	known, _, err := a.API.Loop.Restored(ctx)
	if err != nil {
		return err
	}
	if !known.Since.Equal(at) {
		if err := checkAge(ctx, a.Store, at); err != nil {
			return err
		}
	}
	if from != "" {
		if err := o.disableAgain(ctx, a, from); err != nil {
			return err
		}
	}
	_, err = a.API.Loop.Quarantine(ctx, at.UTC())
	return err
}

// disableAgain disables each user whose last entry in the exported audit disables the user or begins the deletion of
// the user's data. It keeps the linked accounts, because the functions look up calls with them. revoke or delete-user
// removes them later.
func (o *operator) disableAgain(ctx context.Context, a *app.App, from string) error {
	last, err := lastOfUsers(from)
	if err != nil {
		return err
	}
	for _, uid := range slices.Sorted(maps.Keys(last)) {
		again := "revoke"
		switch last[uid].Kind {
		case audit.Enabled:
			continue
		case audit.Deletion:
			again = "delete-user"
		}
		if _, err := a.API.Records.SetDisabled(ctx, uid, true); err != nil {
			return err
		}
		if err := o.printf("user %s is disabled again; run %s for them when the functions have looked up all calls",
			uid, again); err != nil {
			return err
		}
	}
	return nil
}

// lastOfUsers returns, by user ID, the last entry of an exported audit that disables or enables the user, or that
// begins the deletion of the user's data. Entries about a deleted conversation are under the conversation's ID.
func lastOfUsers(from string) (map[string]audit.Entry, error) {
	files, err := filepath.Glob(filepath.Join(from, "*.ndjson"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("-audit: %s has no file DAY.ndjson, as audit export writes", from)
	}
	last := map[string]audit.Entry{}
	for _, file := range files {
		if wrong := readLast(file, last); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", file, wrong))
		}
	}
	return last, err
}

// readLast replaces the entries in last with later ones from a file.
func readLast(file string, last map[string]audit.Entry) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, store.MaxDoc)
	for lines.Scan() {
		e, err := audit.Decode(lines.Bytes())
		switch {
		case err != nil:
			return err
		case e.Kind != audit.Disabled && e.Kind != audit.Enabled && (e.Kind != audit.Deletion || e.Ref != ""):
		case e.Seq > last[e.UID].Seq:
			last[e.UID] = e
		}
	}
	return lines.Err()
}

// checkAge returns an error if a run was changed after the time.
func checkAge(ctx context.Context, st store.Store, at time.Time) error {
	return eachRun(ctx, st, func(r run.Run) error {
		if r.UpdatedAt.After(at) {
			return fmt.Errorf("run %s was changed at %s, after -since: this store is not a copy of that time, or "+
				"functions have used it since. Check FIRESTORE_DATABASE and -since", r.ID,
				r.UpdatedAt.UTC().Format(time.RFC3339))
		}
		return nil
	})
}

// eachRun calls f for all runs that can be read.
func eachRun(ctx context.Context, st store.Store, f func(run.Run) error) error {
	for d, err := range document.All(ctx, st, document.AllRuns(pageSize)) {
		if err != nil {
			return err
		}
		var r run.Run
		if document.Decode(d, &r) != nil {
			continue // Restore.Unreadable counts it
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

// restoredRun counts the calls of a quarantined run by their outcomes.
type restoredRun struct {
	id, uid                         string
	done, review, asks, left, under int
}

// aftermath returns the quarantined runs.
func aftermath(ctx context.Context, a *app.App) (all []restoredRun, err error) {
	err = eachRun(ctx, a.Store, func(r run.Run) error {
		if r.Quarantined == 0 || r.Forged {
			return nil
		}
		kept, err := a.API.Records.RunDetails(ctx, r)
		if err == nil {
			all = append(all, countCalls(r, kept))
		}
		return err
	})
	return all, err
}

func countCalls(r run.Run, kept records.RunDetails) restoredRun {
	c := restoredRun{id: r.ID, uid: r.UID}
	if r.ToLookUp(kept.State) != nil {
		c.left = 1
	}
	for _, a := range kept.State.Actions {
		switch {
		case a.Status == run.ActionExecuting:
			c.under++
		case a.Waiting() && a.Kind == run.KindReview:
			c.review++
		case a.Waiting():
			c.asks++
		case a.Started.Found && a.Status == run.ActionCompleted && a.Decision != run.ConfirmDone:
			c.done++
		}
	}
	return c
}

// printRestore prints the counts, and the runs that need attention. It returns errFailed while any calls still have to
// be looked up.
func (o *operator) printRestore(r unit.Restore, all []restoredRun) error {
	var sum restoredRun
	for _, c := range all {
		sum.done, sum.review, sum.asks = sum.done+c.done, sum.review+c.review, sum.asks+c.asks
		sum.left, sum.under = sum.left+c.left, sum.under+c.under
	}
	since := "an unknown time"
	if !r.Since.IsZero() {
		since = r.Since.Format(time.RFC3339)
	}
	err := errors.Join(
		o.printf("quarantined since %s: %d open runs were marked at %s", since, r.Runs,
			r.BeganAt.Format(time.RFC3339)),
		o.printf("%4d calls were done after the backup, and are recorded as done", sum.done),
		o.printf("%4d calls are reviews: their users say whether they were done", sum.review),
		o.printf("%4d calls wait for a decision", sum.asks),
		o.printf("%4d calls had begun in the backup and have no outcome yet", sum.under),
		o.printf("%4d runs have calls that were not looked up yet", sum.left),
		o.printf("%4d runs cannot be read; they stay inactive until they can be", r.Unreadable),
		o.printf("%4d always-allow entries were removed, because their users may have withdrawn them since", r.Allowed),
		o.printf("%4d tokens of agents were removed, likewise", r.Tokens),
		o.printf("%4d hosts let read-only commands run without approval, and ask about each command now", r.Hosts),
		o.printf("%4d users are not disabled: run revoke or delete again for those it was run for after the backup",
			r.Users))
	for _, c := range all {
		if c.done+c.review+c.asks+c.under+c.left > 0 {
			err = errors.Join(err, o.printf("run %s of %s: %d done, %d reviews, %d decisions, %d begun, looked up: %t",
				c.id, c.uid, c.done, c.review, c.asks, c.under, c.left == 0))
		}
	}
	if sum.left+sum.under > 0 {
		return cmp.Or(err, o.printf("start the functions on this store, and run this again without -since"), errFailed)
	}
	return err
}
