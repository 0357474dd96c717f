package loop

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// maxTries is how often a run is offered that cannot be read or moved: at once, and after 1, 2, 4 and 8 minutes. Then it is put
// aside: nobody is offered it any more until somebody asks for it (ops redrive) or its owner decides something.
const maxTries = 5

// never is when a run that was put aside is due. It keeps a time, because a run without one has ended (records.DeleteThread).
var never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// The fields of a run's document that say so. They go with the next commit that moves the run.
const (
	fieldDue   = "due"
	fieldTries = "tries" // as many times nobody could move it
	fieldAside = agent.FieldAside
)

// errSetBack says that a run cannot be moved by anybody, and that this is on record: delivering again will not mend it.
var errSetBack = errors.New("loop: the run cannot be read or moved, and was set back")

// SetBack reports whether Advance found a run that nobody can move, and has put its next try off or put it aside.
func SetBack(err error) bool { return errors.Is(err, errSetBack) }

// stuck reports whether the error is the run's own: a document that cannot be read, events that do not fit together, or more
// than the store takes. It is met again whoever tries.
func stuck(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return f.Code == fault.CodeInternal || f.Class == fault.Validation && f.Code == codeTooLarge
}

// setBack puts the next try off, or after the last the run aside, so that what nobody can move stands in nobody's way. It
// changes only what the sweep looks at: the document may be one that cannot be read.
func (l *Loop) setBack(ctx context.Context, runID string, cause error) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	path := agent.RunPath(runID)
	docs, err := l.Store.Get(ctx, path)
	if err != nil || !docs[0].Exists() {
		return cause
	}
	d := docs[0]
	fields := maps.Clone(d.Fields)
	tries, _ := fields[fieldTries].(int64)
	tries++
	fields[fieldTries] = tries
	if tries < maxTries {
		fields[fieldDue] = d.ReadTime.UTC().Truncate(time.Microsecond).Add(time.Minute << (tries - 1))
	} else {
		fields[fieldDue], fields[fieldAside] = never, true
	}
	if _, err := l.Store.Commit(ctx, store.Update(path, d.Version, fields, d.Data)); err != nil {
		return cause // somebody else was here, or the store is down: it is offered again
	}
	if tries < maxTries {
		l.Log.WarnContext(ctx, "a run cannot be read or moved and is tried again later", "counter", "run_set_back", "runId", runID, "tries", tries, "error", cause)
	} else {
		l.Log.ErrorContext(ctx, "a run cannot be read or moved and was put aside", "counter", "run_aside", "runId", runID, "tries", tries, "error", cause)
	}
	return errSetBack
}
