// Package agent groups the packages of the domain: what an agent, a tool, a run and a plan are, and the rules for them.
// These packages decide and start nothing, and read no store and no network. The client in model/gemini is the only
// exception.
//   - tool defines what a model can call, and model the interface for calling Gemini.
//   - registry holds the agents.
//   - policy decides whether a call needs its user's approval, and taint whether it carries text from strangers.
//   - plan defines the parts of a planner session.
//   - run defines runs, actions, approvals and events, and the state that follows from them.
//   - provenance records who wrote the texts that the model of a run has seen.
package agent
