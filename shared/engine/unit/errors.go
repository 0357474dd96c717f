package unit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// Stuck reports whether the error lies in the run itself: an unreadable document, events that contradict each other, or
// a document that is too large for the store. Every process that tries would meet it again.
func Stuck(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err != nil && !errors.Is(err, errStore) && !errors.Is(err, context.Canceled) &&
			!errors.Is(err, context.DeadlineExceeded)
	}
	return f.Code == fault.CodeInternal || f.Class == fault.Validation && f.Code == CodeTooLarge
}

// CodeTooLarge is the error code for data that does not fit into the store.
const CodeTooLarge fault.Code = "too_large"

// ErrHeld means that another process holds the run's lease. The caller should try again after 10 seconds.
var ErrHeld = fault.New(fault.Tool, fault.CodeLeaseHeld,
	"Another process is working on this.").After(10 * time.Second)

// Held reports whether loop.Loop.Advance stopped because another process advances the run. The message should be
// delivered again later.
func Held(err error) bool { return fault.Is(err, fault.Tool, fault.CodeLeaseHeld) }

// StoreError turns a store's error into one that callers may show: ValidationError too_large or ToolExecutionError
// store_unavailable. A *fault.Error is returned unchanged. An error that no retry fixes is only wrapped.
func StoreError(err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, store.ErrTooLarge):
		return fault.New(fault.Validation, CodeTooLarge, "This is too large to store at once.").Because(err)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrConflict),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fault.Unavailable("The service is temporarily unavailable. Nothing was lost; please try again.", err)
	case errors.Is(err, store.ErrInvalid):
		return err
	}
	return fmt.Errorf("%w: %w", errStore, err)
}

// errStore wraps a store's error that no retry fixes and that does not depend on the run, such as a missing permission.
var errStore = errors.New("unit: the store failed")
