// Package agent has the nouns of Countersign: run, thread, action, approval, event. It imports no backend and does no
// input or output.
//
// A run is an append-only list of events. Fold reads them into a State, and State.Apply refuses an event that the state
// machine (seed 000 §3) does not permit, so that a wrong transition is an error here and not a wrong document later.
// A Run is what the store keeps of it: who owns it, who moves it now (Lease), and its events in a Log whose newest part
// lies in the run's own document, so that moving a run reads one document and writes one.
package agent
