// Package sdk compares Countersign as a Go package with a chat of the genai SDK and other Go frameworks: the same
// turns in one process, with one fake Gemini on loopback in a process of its own.
//
//	taskset -c 1 go -C scripts/bench test ./sdk -run '^$' -bench . -benchmem -count 5
//
// ms/op and the allocations are the contestant's alone. Each framework is written as its own documents show it.
// Frameworks that store sessions on disk sync each answered turn. Genkit has no such store for Go, so this package has
// one. adk-go is missing, because no version was available when this was written.
package sdk
