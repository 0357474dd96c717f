// Package engine groups what moves a run. The packages at its core each know only those before them:
//
//		queue < journal < approval < effect < conversation < loop < planner, chat
//
//	  - queue delivers "resume this run".
//	  - journal is the unit of work: load, lease, decide, commit, retry.
//	  - approval holds a call until its user has decided about it.
//	  - effect carries a call out once.
//	  - conversation is the run as the model sees it.
//	  - loop is the life of a run, from its start to its end.
//	  - planner starts and refines sessions, chat runs the agents of web pages.
//
// Beside the moving of runs, records is what users read and withdraw of their own, and offboard deletes a user.
package engine
