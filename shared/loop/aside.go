package loop

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// maxDeliveries is how often a run is offered that cannot be read or moved, or that ends whoever reads it: at once, and
// after 1, 2, 4 and 8 minutes. Then it is put aside: nobody is offered it any more until somebody asks for it (ops
// redrive) or its owner decides something.
const maxDeliveries = 5

// errPostponed says that a run cannot be moved by anybody, and that this is on record: delivering again will not mend
// it.
var errPostponed = errors.New("loop: the run cannot be read or moved, and was set back")

// Postponed reports whether Advance found a run that nobody can move, and has put its next try off or put it aside.
func Postponed(err error) bool { return errors.Is(err, errPostponed) }

// stuck reports whether the error is the run's own: a document that cannot be read, events that do not fit together, or
// more than the store takes. It is met again whoever tries.
func stuck(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err != nil && !errors.Is(err, errStore) && !errors.Is(err, context.Canceled) &&
			!errors.Is(err, context.DeadlineExceeded)
	}
	return f.Code == fault.CodeInternal || f.Class == fault.Validation && f.Code == codeTooLarge
}

// lateAfter is how late a run may come to a process without that telling of anything: the sweep's minute, and what the
// queue needs.
const lateAfter = 3 * time.Minute

// loadCounted loads the run. A process that dies of what it reads leaves no lease behind, so where the run comes so
// late that an earlier one may have died of it, or was set back already, the attempt is counted before anything is made
// of the documents. A run that comes in time, as all do but for an outage, costs no commit for that.
func (ex *execution) loadCounted(ctx context.Context) error {
	path := document.RunPath(ex.id)
	if err := ex.read(ctx, path); err != nil {
		return err
	}
	d := ex.docs[path]
	f := document.RunFieldsOf(d)
	late := d.ReadTime.Sub(f.Due)
	if f.Due.IsZero() || late < 0 || late < lateAfter && f.Tries == 0 {
		return ex.fold(ctx)
	}
	tries := f.Tries
	given := tries >= maxDeliveries // as many died of it
	fields := postponedFields(d, min(tries+1, maxDeliveries), given)
	versions, err := ex.Store.Commit(ctx, store.Update(path, d.Version, fields, d.Data))
	switch {
	case errors.Is(err, store.ErrConflict):
		return errHeld // another process was here just now
	case err != nil:
		return storeError(err)
	case given:
		ex.Log.ErrorContext(ctx, "a run ended every process that read it and was put aside", "counter", "run_aside",
			"runId", ex.id, "tries", tries)
		return errPostponed
	}
	d.Version, d.Fields = versions[0], fields
	ex.docs[path], ex.counted = d, true
	ex.observeTime(d.Version)
	return ex.fold(ctx)
}

// postponedFields are the fields of a run that was tried as many times: it is due later and later, and put aside never.
func postponedFields(d store.Doc, tries int64, asideNow bool) map[string]any {
	f := document.RunFieldsOf(d)
	f.Tries, f.Due = tries, d.ReadTime.UTC().Truncate(time.Microsecond).Add(time.Minute<<(tries-1))
	if asideNow {
		f.Due, f.Aside = document.Never, true
	}
	return f.Map()
}

// postpone puts the next try off, or after the last the run aside, so that what nobody can move stands in nobody's way.
// It changes only what the sweep looks at: the document may be one that cannot be read.
func (ex *execution) postpone(ctx context.Context, cause error) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	path := document.RunPath(ex.id)
	docs, err := ex.Store.Get(ctx, path)
	if err != nil || !docs[0].Exists() {
		return cause
	}
	d := docs[0]
	tries := document.RunFieldsOf(d).Tries
	if !ex.counted || tries == 0 { // a commit that moves the run takes the count with it
		tries++
	}
	if _, err := ex.Store.Commit(ctx,
		store.Update(path, d.Version, postponedFields(d, tries, tries >= maxDeliveries), d.Data)); err != nil {
		return cause // somebody else was here, or the store is down: it is offered again
	}
	if tries < maxDeliveries {
		ex.Log.WarnContext(ctx, "a run cannot be read or moved and is tried again later", "counter", "run_set_back",
			"runId", ex.id, "tries", tries, "error", cause)
	} else {
		ex.Log.ErrorContext(ctx, "a run cannot be read or moved and was put aside", "counter", "run_aside", "runId",
			ex.id, "tries", tries, "error", cause)
	}
	return errPostponed
}
