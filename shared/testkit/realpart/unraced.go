//go:build !race

package realpart

// raced reports whether this is a test with the race detector.
const raced = false
