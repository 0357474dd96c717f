//go:build !unix

package main

import "errors"

// become replaces this process with the program, which this system cannot.
func become(string, []string, []string) error { return errors.ErrUnsupported }

// replaces reports whether this system can replace a process.
const replaces = false
