// Package plan defines the parts of a planner session (seed 004): the plan that the user confirms, the permissions that
// the confirmation gives, and the course of the session. It is pure: it does no I/O, reads no clock and does not depend
// on runs.
//
// The model proposes a [Plan] ([Proposing]), or its user edits one. [Bind.Normalize] brings it into its normal form: it
// sets the repository and the deadline, assigns IDs, enforces every limit, and reduces each grant's target to the
// tool's pinned arguments. The canonical JSON of the normal form is shown, hashed and confirmed.
//
// A [Session] is the fold of its history: an [Event] for each step of the plan itself, and an [Act] for each call.
// [Session.Apply] refuses an event that is not permitted and leaves the session unchanged. The six states of the seed
// (FR-102) are therefore a property of the record, whatever code writes it. A session answers these questions:
//
//   - [Session.Phase] returns what comes next: planning, waiting for the user, working, or the end.
//   - [Session.GrantFor] returns the grant of the newest confirmed plan that allows a call. It is called when the
//     policy checks the call, and again in the commit of the call's intent.
//   - [Session.Judge] returns what follows from the model's reflection: the end of a task, a refused claim, changes
//     that apply at once, or changes that the user must confirm first.
//   - [Session.Stuck] returns why a task makes no progress.
//
// Reading order: plan.go, bind.go, diff.go; then event.go, session.go, fold.go, grant.go, judge.go.
package plan
