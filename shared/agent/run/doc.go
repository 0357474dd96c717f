// Package run defines the types of Countersign's domain: run, thread, action, approval, event. It imports no backend
// and does no I/O.
//
// [Terms.Next] returns what a run needs next. It depends only on the run's state, its agent's terms and the time. This
// package also makes every statement about a run, from the run's events and never from the model's claims.
//
// A run is an append-only list of events. [Fold] turns them into a [State]. [State.Apply] refuses an event that the
// state machine (seed 000 §3) does not permit, so that a wrong transition is an error here and not a wrong document
// later. A [Run] is the stored document: it names the run's owner and the process that advances it ([Lease]), and holds
// the events in a log. The newest part of the log is inside the run's own document, so that advancing a run reads one
// document and writes one.
package run
