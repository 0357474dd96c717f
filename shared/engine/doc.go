// Package engine groups the packages that advance a run:
//
//   - queue delivers the message that asks for a run to be advanced.
//   - observe makes the spans and measurements of runs.
//   - toolbox holds the tools that the model of a run may call.
//   - unit is the unit of work: load, lease, decide, commit, retry.
//   - outbox publishes the notifications of runs and reminds users of waiting approvals.
//   - approval holds a call until its user has decided about it.
//   - effect runs a call exactly once.
//   - conversation is the run in the form that the model sees.
//   - loop is the life of a run, from its start to its end.
//   - planner starts and refines sessions; chat runs the agents of web pages.
//
// Each of them imports only the ones before it. Two more packages advance no run: records lets users read and delete
// their own data, and offboard deletes a user.
package engine
