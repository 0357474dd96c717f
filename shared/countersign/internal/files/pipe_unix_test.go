//go:build unix

package files_test

import "syscall"

func pipe(name string) error { return syscall.Mkfifo(name, 0o600) }
