// Package agent groups the domain: what an agent, a tool, a run and a plan are, and the rules about them. Apart from
// the client in model/gemini, these packages decide and start nothing: they read no store and no network.
//   - tool defines what a model can call, model the port for calling Gemini.
//   - registry holds the agents.
//   - policy decides whether a call needs its user's approval, taint whether it carries what strangers wrote.
//   - plan has the parts of a planner session.
//   - run has runs, actions, approvals and events, and the state that follows from them.
package agent
