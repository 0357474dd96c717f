//go:build !unix

package process

import "os"

func exitCode(s *os.ProcessState) int { return s.ExitCode() }

func outOfResources(error) bool { return false }
