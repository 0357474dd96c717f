// Package countersign is the agent runtime of this module as a Go package: an agent with typed tools inside your
// program. It has the same loop, approvals, exactly-once effects and audit as the functions, and needs no server.
//
// # An agent
//
// Create an [Agent] once, with [New], which reports all mistakes in its [Options] at once and needs no network. An
// agent serves many users ([Agent.As]) and sessions. A [Session] is one conversation, and each [Session.Send] starts a
// run in it. [Session.SendStream] yields the run's progress as [Event] values, and [SendAs] returns the answer as a Go
// type.
//
// # Tools
//
// A tool from [DefineTool] runs at once. A tool from [DefineEffect] changes something outside: its user sees a
// [Preview] of exactly the arguments and answers [Yes], [No], [Edited] or [Later], in the process (Options.Approve) or
// days later ([Agent.Approvals], [Agent.Resolve], [Session.Continue]). [Undo] revokes a decision that is held. The
// effect runs once. If its outcome was lost
// and Reconcile cannot determine it, the call waits as a review: [WasDone] or [TryAgain]. Options.Policy applies before
// every yes, and Options.Effects decides whether calls ask at all.
//
// Each call gets a [SessionContext] with the IDs of its session, run and action, the files of a folder ([FS]) and the
// commands of a list ([Shell]). Package mcp provides the tools of MCP servers. [SkillDir] and [SkillFS] provide
// guidance that the model reads when it needs it.
//
// # Crashes
//
// Every reported event is stored before it is reported, in Options.Store: memory, one SQLite file (package
// store/embedded) or Firestore. You can kill the process at any moment. [Agent.Sessions] finds interrupted runs, and
// [Agent.Resume] and [Session.Continue] continue them: stored answers of the model are not requested again, and no
// effect is repeated on a guess. Leaving a loop over a stream, or cancelling ctx, has the same result.
//
// A session has at most one open run; an [OpenError] names it.
//
// # Errors
//
// An [Error] has one of five classes and a code. Test for [ErrNoSession], [ErrClosed], [ErrContextFull] and
// [ErrCommandDenied] with errors.Is, and for [OpenError], [OutputError] and [BudgetError] with errors.As. An action
// returns a [ToolError] to give the model a text. For any other error the model learns only that the tool failed,
// unless [ToolConfig].SendErrorsToModel is set; the program gets the error in [ToolFinished]. [Session.Send] returns an
// error of Options.InstructionsFunc, Options.Approve or a hook unchanged; neither the store nor the log has its text.
//
// # Bounds and traces
//
// Options.Budget limits the tokens, the effects and the money of one run, in any number of processes. A run that
// reaches a limit ends with a [*BudgetError]. Options.TracerProvider receives OpenTelemetry spans of runs.
//
// # Hooks
//
// Options.Hooks are functions of the program that see each request to the model, each answer, each call of a tool and
// each result. They can remove private data from what the model reads, and stop a run or a call. They cannot approve.
//
// # Tests
//
// Package offline provides a scripted model that is as strict as the service, for programs without a key. Package
// agenttest provides the same scripts for tests, and recordings of the real model. Package eval measures an agent with
// cases from files.
//
// # Promise
//
// Package countersign, its packages agenttest, eval, mcp and offline, and package shared/store with its backends and
// storetest keep their exported names stable. You can import all other packages of this module, but they may change.
package countersign
