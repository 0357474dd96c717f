// Package loop advances runs. The files of a run's path, in the order in which a run passes through them:
//
//   - start.go: [Loop.Start] takes a [StartRequest], which says who asks and where, and an [Input], which says for
//     what.
//   - input.go, prompt.go, call.go, session.go, import.go, compress.go: an input checks itself, has a stored form, and
//     adds what only such a run begins with. A [Prompt] adds nothing; a [Call] adds itself, as if it were the model's
//     answer; a [Session] may add a plan; an [Import] adds the end.
//   - create.go: one commit stores the run, its thread and the user's message.
//   - advance.go: the loop asks the run's state for the next step and makes it, until no step is left for this process.
//     [Loop.Advance] and [Loop.Resume] (resume.go) enter here, with a run that another process has left. If the run's
//     approval was undone, reopen.go then starts runs for the cards that the approval had replaced.
//   - turn.go and generate.go: a model call. ahead.go begins the call while the commit before it is under way.
//     summary.go first compresses a context that is too large, and limits.go ends a run that has used up its budget.
//     One commit stores the answer with everything that follows from it.
//   - propose.go: a call of the answer is validated and gets its approval (package approval). task.go and plan.go do
//     this for a session. The call is then executed (package effect).
//   - end.go: expired approvals and calls that no longer run are closed; the run ends with its last message.
//   - cleanup.go: what the run's calls have created elsewhere is removed.
//
// Other ways into a run record something and do nothing else; the process that receives the resume continues in
// advance.go: [Loop.Resolve] a decision, [Loop.Answer] a client's answer, [Loop.Cancel] a cancel, [Grants.Revoke] a
// revoked grant. [Loop.Get], [Loop.Watch], [Loop.Conversation] and [Terminals] read. [Loop.Sweep] (sweep.go, shards.go,
// measure.go) finds the runs that no process advances.
//
// Every step consists of transitions (package unit). A process may die between any two instructions; the next one
// reads the events and continues.
//
//   - Only the holder of a run's lease advances the run. Lease times are the store's, so workers' clocks do not matter.
//   - A model call may begin while the commit that it rests on is under way ([unit.Ahead]). All that leaves the
//     process, each effect and each further commit wait for that commit. If it fails, the call is cancelled and its
//     answer is dropped.
//   - An effect takes place only after a commit that names the process that carries it out ([run.Started]). An effect
//     that has started and has no outcome is never repeated on a guess: its tool finds the outcome (Reconcile), or its
//     user does (a review).
//   - A call that needs its user's decision waits in an approval.
//   - A call that the client carries out waits for the client's answer, for a limited time.
//   - The field "due" of a run's document says when a process must look at the run again. The field is the outbox:
//     Sweep publishes a resume for every overdue run, whether a publish was lost, a worker died, or an approval or an
//     answer did not arrive in time.
package loop
