package emulate

import (
	"net/http"
	"net/http/httptest"
)

// A Fault makes one call fail.
type Fault struct {
	After  bool   // the emulator has executed the call; otherwise it did not receive it
	Status int    // of the answer; 0: the connection is reset
	Reason string // Google's reason beside the status
}

// Break makes the next calls of the operation fail, one after the other. The operations are "calendar.events.list",
// "token" and "revoke". If a fault is unused at the end of the test, the test fails.
func (e *Emulator) Break(op string, faults ...Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults[op] = append(e.faults[op], faults...)
}

// Calls returns the number of calls of the operation with a valid token.
func (e *Emulator) Calls(op string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[op]
}

func (e *Emulator) checkFaults() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for op, left := range e.faults {
		if len(left) > 0 {
			e.t.Errorf("%d faults of %s were not used", len(left), op)
		}
	}
}

// failing counts a call and applies its fault.
func (e *Emulator) failing(op string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f := e.count(op)
		if f == nil {
			next(w, r)
			return
		}
		if f.After && !e.acted(op, next, r) {
			refuse(w, http.StatusNotImplemented, "")
			return
		}
		if f.Status == 0 {
			cut(w)
			return
		}
		refuse(w, f.Status, f.Reason)
	}
}

func (e *Emulator) count(op string) *Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[op]++
	queue := e.faults[op]
	if len(queue) == 0 {
		return nil
	}
	e.faults[op] = queue[1:]
	return &queue[0]
}

// acted lets the emulator execute the call, and drops the answer.
func (e *Emulator) acted(op string, next http.HandlerFunc, r *http.Request) bool {
	rec := httptest.NewRecorder()
	next(rec, r)
	if rec.Code >= 300 {
		e.t.Errorf("%s was to fail after it was done, but was refused with status %d", op, rec.Code)
	}
	return rec.Code < 300
}
