//go:build unix

package main

import "syscall"

// become replaces this process, so that its id, its terminal and its signals are the other's.
func become(program string, args, env []string) error { return syscall.Exec(program, args, env) }
