//go:build !unix

package main

// endWith does nothing: this system does not tell whether a process is gone.
func endWith(int) {}
