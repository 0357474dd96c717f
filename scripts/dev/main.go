// Command dev runs Countersign on one machine: every function at its path, without an installation or an account.
//
// The server is the command in the folder local, which links all of Countersign: its first build takes a minute or two.
// This one is built at once. It checks that the port is free, says that it compiles, and becomes `go run` of the
// server, with the same flags.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/countersign-run/countersign/shared/testkit/gorun"
)

// server is the import path of the command that serves.
const server = "github.com/countersign-run/countersign/scripts/dev/local"

func main() {
	if addr := wanted(os.Args[1:], os.Getenv("PORT")); !asksForHelp(os.Args[1:]) {
		if err := taken(addr); err != nil {
			fmt.Fprintln(os.Stderr, "dev:", err)
			os.Exit(1)
		}
	}
	fmt.Fprintln(os.Stderr, "Compiling the local server: a minute or two the first time, a second or two later on.")
	env := os.Environ()
	if pid := gorun.Parent(); pid != 0 {
		env = append(env, fmt.Sprintf("DEV_PARENT=%d", pid))
	}
	err := launch(os.Args[1:], env)
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode()) // the server has said why
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

// launch hands this process over to go run of the server. It returns only where that could not be done, or, where the
// system has no such thing, when the server has ended.
func launch(args, env []string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("the go command compiles the server: %w", err)
	}
	return become(tool, append([]string{"go", "run", server}, args...), env)
}
