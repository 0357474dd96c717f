//go:build !unix

package main

import (
	"os"
	"os/exec"
	"os/signal"
)

// become runs a child on this process's terminal, and leaves interrupts to the child.
func become(program string, args, env []string) error {
	signal.Ignore(os.Interrupt)
	child := exec.Command(program, args[1:]...)
	child.Env, child.Stdin, child.Stdout, child.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	return child.Run()
}
