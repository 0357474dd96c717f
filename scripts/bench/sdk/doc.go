// Package sdk measures Countersign as a Go package beside a chat of the genai SDK and other Go frameworks: the same
// turns in one process, with one fake Gemini on loopback in a process of its own.
//
//	taskset -c 1 go -C scripts/bench test ./sdk -run '^$' -bench . -benchmem -count 5
//
// ms/op and the allocations are the contestant's alone. Each framework is written as its own documents show it. Those
// that keep sessions on disk have each answered turn there, synced; genkit has no such store for Go, so that one is
// written here. adk-go is not among them: no version of it could be had where this was written.
package sdk
