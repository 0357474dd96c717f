// Package countersign is the agent runtime of this module as a Go package: an agent with typed tools inside a program
// of yours, with the same loop, approvals, exactly-once effects and audit as the functions, and without a server.
//
// An [Agent] is made once, by [New], and serves many users and sessions. A [Session] is one conversation; each
// [Session.Send] is a run in it. What [DefineTool] makes is called at once. What [DefineEffect] makes changes something
// outside and waits for a yes, unless [Options].Approve or [Options].Effects decide.
//
// Everything that happened is in [Options].Store when it is told: a process may be killed at any moment, and
// [Agent.Resume] with [Session.Continue] goes on where it was.
//
// # Skills
//
// [SkillDir] and [SkillFS] read guidance for kinds of tasks, in the open format of https://agentskills.io. The model is
// told the skills' names and descriptions, reads a text by the tool activate_skill ([SkillActivated]) and its files by
// read_skill_file. It stands below the instructions and the policy: it runs nothing, approves nothing, and may only
// narrow which tools are called while it is followed. After a compression the model still has the newest active one.
//
// # Tests
//
// Package agenttest tests agents without a key: by a script that is as strict as the service, or by a recording of it.
//
// # Promise
//
// Package countersign, its packages agenttest and mcp, and package shared/store with its backends and storetest keep
// to what they export. All other packages of this module can be imported, and promise nothing.
//
// # CHANGES
//
// An incompatible change to what is exported since the last release stands here, as "- Name: what has changed". There
// is none.
package countersign
