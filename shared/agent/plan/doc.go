// Package plan is what a session of the planner is made of (seed 004): the plan that its user confirms, what their yes
// covers, and what may become of it. It is pure: no I/O, no clock, and it knows nothing of runs.
//
// A [Plan] is proposed by the model ([Proposing]) or edited by its user, and [Bind.Normalize] brings it into its one
// form: repository and deadline are set here, ids are given out, every limit is held, and each grant's target is what
// its tool's Bound makes of it. The canonical JSON of that form is what is shown, hashed and confirmed.
//
// A [Session] is the fold of what happened: an [Event] for each step of the plan itself, and an [Act] for each call
// that was made. [Session.Apply] refuses an event that cannot follow and leaves the session as it was; so the six
// states of the seed (FR-102) are a property of the record and not of the code that writes it. What a session answers:
//
//   - [Session.Phase] says what is next: to plan, to wait for the user, to work, or to end.
//   - [Session.GrantFor] says whether a call rests on a grant of the plan that was confirmed last. It is asked when a
//     call is judged and once more in the commit of its intent.
//   - [Session.Judge] says what follows from the model's reflection: a task that is over, one that only claims to be,
//     changes that apply at once, changes that must be confirmed first.
//   - [Session.Stuck] says that a task leads nowhere.
//
// Reading order: plan.go, bind.go, diff.go; then event.go, session.go, fold.go, grant.go, judge.go.
package plan
