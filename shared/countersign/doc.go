// Package countersign is the agent runtime of this module as a Go package: an agent with typed tools inside a program
// of yours, with the same loop, approvals, exactly-once effects and audit as the functions, and without a server.
//
// # An agent
//
// An [Agent] is made once, by [New], which reports everything that is wrong with its [Options] at once and needs no
// network. It serves many users ([Agent.As]) and sessions. A [Session] is one conversation, each [Session.Send] a run
// in it; [Session.SendStream] yields what happens as [Event] values, and [SendAs] has the answer be a Go type.
//
// # Tools
//
// What [DefineTool] makes is called at once. What [DefineEffect] makes changes something outside: its user sees a
// [Preview] of exactly the arguments and says [Yes], [No], [Edited] or [Later], in the process (Options.Approve) or
// days later ([Agent.Approvals], [Agent.Resolve], [Session.Continue]). It is carried out once. Where an outcome was
// lost and Reconcile cannot tell, the call waits as a review: [WasDone] or [TryAgain]. Options.Policy comes before
// every yes, and Options.Effects says whether there are questions at all.
//
// Each call gets a [SessionContext]: where it is, the files of a folder ([FS]) and the commands of a list ([Shell]).
// Package mcp has the tools of MCP servers, and [SkillDir] and [SkillFS] guidance that the model reads when it needs
// it.
//
// # Crashes
//
// What is told has happened, and is in Options.Store: memory, one SQLite file (package store/embedded) or Firestore. A
// process may be killed at any moment. [Agent.Sessions] finds what was cut off, [Agent.Resume] and [Session.Continue]
// go on with it: the model's stored answers are not asked for again, and no effect is repeated on a guess. A loop over
// a stream may be left, and a ctx cancelled, with the same result.
//
// One run at a time is open in a session; an [OpenError] names the one that stands in the way.
//
// # Errors
//
// An [Error] has one of five classes and a code. [ErrNoSession], [ErrClosed], [ErrContextFull] and [ErrCommandDenied]
// are told by errors.Is, [OpenError], [OutputError] and [BudgetError] by errors.As. A [ToolError] is what an action
// returns for the model to read; of any other error the model hears that the tool failed, and the program gets it in
// [ToolFinished]. [Session.Send] returns an error of Options.InstructionsFunc or Options.Approve unchanged; neither the
// store nor the log has its text.
//
// # Bounds and traces
//
// Options.Budget bounds the tokens, the effects and the money of one run, in whatever processes it is moved: one that
// comes to a limit ends with a [*BudgetError]. Options.TracerProvider takes OpenTelemetry's spans of runs.
//
// # Tests
//
// Package offline has a scripted model that is as strict as the service, for a program without a key. Package
// agenttest has the same scripts for tests, and recordings of the real model.
//
// # Promise
//
// Package countersign, its packages agenttest, mcp and offline, and package shared/store with its backends and
// storetest keep to what they export. All other packages of this module can be imported, and promise nothing.
package countersign
