// Command dev runs Countersign on one machine, with every function at its path. It needs no installation and no
// account.
//
// The server is the command in the folder local. That command links all of Countersign, so its first build takes a
// minute or two. This small command builds at once. It checks that the port is free, compiles the server, reports the
// progress, and replaces itself with the server, with the same flags.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/countersign-run/countersign/shared/testkit/gorun"
)

// server is the import path of the local server.
const server = "github.com/countersign-run/countersign/scripts/dev/local"

func main() {
	if addr := wanted(os.Args[1:], os.Getenv("PORT")); !asksForHelp(os.Args[1:]) {
		if err := taken(addr); err != nil {
			fmt.Fprintln(os.Stderr, "dev:", err)
			os.Exit(1)
		}
	}
	env := os.Environ()
	if pid := gorun.Parent(); pid != 0 {
		env = append(env, fmt.Sprintf("DEV_PARENT=%d", pid))
	}
	err := launch(os.Args[1:], env)
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode()) // the go command or the server has printed the error
	default:
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

func asksForHelp(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.Contains([]string{"-h", "-help", "--help"}, a)
	})
}

// launch compiles the server and replaces this process with it. It returns only if that fails or, on systems that
// cannot replace a process, when the server has exited.
func launch(args, env []string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("compiling the local server: %w", err)
	}
	program, err := compile(tool, os.Stderr)
	if err != nil {
		return err
	}
	return become(program, append([]string{program}, args...), env)
}
