//go:build unix

package main

import "syscall"

// become replaces this process with the program.
func become(program string, args, env []string) error { return syscall.Exec(program, args, env) }

// replaces reports whether this system can replace a process.
const replaces = true
