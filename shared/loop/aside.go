package loop

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// maxTries is how often a run is offered that cannot be read or moved, or that ends whoever reads it: at once, and after 1, 2, 4
// and 8 minutes. Then it is put aside: nobody is offered it any more until somebody asks for it (ops redrive) or its owner decides something.
const maxTries = 5

// errSetBack says that a run cannot be moved by anybody, and that this is on record: delivering again will not mend it.
var errSetBack = errors.New("loop: the run cannot be read or moved, and was set back")

// SetBack reports whether Advance found a run that nobody can move, and has put its next try off or put it aside.
func SetBack(err error) bool { return errors.Is(err, errSetBack) }

// stuck reports whether the error is the run's own: a document that cannot be read, events that do not fit together, or more
// than the store takes. It is met again whoever tries.
func stuck(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err != nil && !errors.Is(err, errStore) && !errors.Is(err, context.Canceled) &&
			!errors.Is(err, context.DeadlineExceeded)
	}
	return f.Code == fault.CodeInternal || f.Class == fault.Validation && f.Code == codeTooLarge
}

// overdue is how late a run may come to a process without that telling of anything: the sweep's minute, and what the queue needs.
const overdue = 3 * time.Minute

// attempt loads the run. A process that dies of what it reads leaves no lease behind, so where the run comes so late that an
// earlier one may have died of it, or was set back already, the attempt is counted before anything is made of the documents. A
// run that comes in time, as all do but for an outage, costs no commit for that.
func (m *mover) attempt(ctx context.Context) error {
	path := document.RunPath(m.id)
	if err := m.read(ctx, path); err != nil {
		return err
	}
	d := m.docs[path]
	f := document.RunFieldsOf(d)
	late := d.ReadTime.Sub(f.Due)
	if f.Due.IsZero() || late < 0 || late < overdue && f.Tries == 0 {
		return m.fold(ctx)
	}
	tries := f.Tries
	given := tries >= maxTries // as many died of it
	fields := setBackTo(d, min(tries+1, maxTries), given)
	versions, err := m.Store.Commit(ctx, store.Update(path, d.Version, fields, d.Data))
	switch {
	case errors.Is(err, store.ErrConflict):
		return errHeld // another process was here just now
	case err != nil:
		return unavailable(err)
	case given:
		m.Log.ErrorContext(ctx, "a run ended every process that read it and was put aside", "counter", "run_aside", "runId", m.id, "tries", tries)
		return errSetBack
	}
	d.Version, d.Fields = versions[0], fields
	m.docs[path], m.counted = d, true
	m.sawTime(d.Version)
	return m.fold(ctx)
}

// setBackTo are the fields of a run that was tried as many times: it is due later and later, and put aside never.
func setBackTo(d store.Doc, tries int64, asideNow bool) map[string]any {
	f := document.RunFieldsOf(d)
	f.Tries, f.Due = tries, d.ReadTime.UTC().Truncate(time.Microsecond).Add(time.Minute<<(tries-1))
	if asideNow {
		f.Due, f.Aside = document.Never, true
	}
	return f.Map()
}

// setBack puts the next try off, or after the last the run aside, so that what nobody can move stands in nobody's way. It
// changes only what the sweep looks at: the document may be one that cannot be read.
func (m *mover) setBack(ctx context.Context, cause error) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	path := document.RunPath(m.id)
	docs, err := m.Store.Get(ctx, path)
	if err != nil || !docs[0].Exists() {
		return cause
	}
	d := docs[0]
	tries := document.RunFieldsOf(d).Tries
	if !m.counted || tries == 0 { // a commit that moves the run takes the count with it
		tries++
	}
	if _, err := m.Store.Commit(ctx, store.Update(path, d.Version, setBackTo(d, tries, tries >= maxTries), d.Data)); err != nil {
		return cause // somebody else was here, or the store is down: it is offered again
	}
	if tries < maxTries {
		m.Log.WarnContext(ctx, "a run cannot be read or moved and is tried again later", "counter", "run_set_back", "runId", m.id, "tries", tries, "error", cause)
	} else {
		m.Log.ErrorContext(ctx, "a run cannot be read or moved and was put aside", "counter", "run_aside", "runId", m.id, "tries", tries, "error", cause)
	}
	return errSetBack
}
