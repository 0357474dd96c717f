// Package run defines the types of Countersign's domain: run, thread, action, approval, event. It imports no backend
// and does no I/O.
//
// [Terms.Next] says what a run needs next, by its state, its agent's terms and the time alone; what is said of a run is
// made here too, from its events and never from what the model claims.
//
// A run is an append-only list of events. [Fold] reads them into a [State], and [State.Apply] refuses an event that the
// state machine (seed 000 §3) does not permit, so that a wrong transition is an error here and not a wrong document
// later. A [Run] is the document that the store keeps: who owns the run, which process advances it now ([Lease]), and
// its events in a log whose newest part is inside the run's own document, so that advancing a run reads one document
// and writes one.
package run
