// Command countersign-outlet runs the program in its arguments with the package hosts as its only network. Images in
// which dependencies can be installed have it in /usr/local/bin. It is an HTTP proxy on the container's own interface,
// and passes all requests over its standard input and output to Countersign, which decides about the hosts. The output
// of the program goes to standard error.
package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"time"

	"github.com/countersign-run/countersign/shared/tools/container/outlet"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "countersign-outlet:", err)
		code = 125
	}
	os.Exit(code)
}

// run returns the exit code of the program.
func run(command []string) (int, error) {
	if len(command) == 0 {
		return 0, errors.New("a program is needed")
	}
	proxy, err := outlet.Proxy(os.Stdin, os.Stdout)
	if err != nil {
		return 0, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	go func() { _ = (&http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}).Serve(l) }()
	cmd := exec.Command(command[0], command[1:]...) // #nosec G204 -- the program is this command's purpose
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = os.Environ()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		cmd.Env = append(cmd.Env, name+"=http://"+l.Addr().String())
	}
	cmd.Env = append(cmd.Env, "NO_PROXY=", "no_proxy=")
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}
