//go:build unix

package main

import "syscall"

// become replaces this process with the program, which keeps the process ID, the terminal and the signals.
func become(program string, args, env []string) error { return syscall.Exec(program, args, env) }
