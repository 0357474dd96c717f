// Command local is the local server, which `go run ./scripts/dev` compiles and starts.
//
//	go run ./scripts/dev             with the embedded store, local mail and calendar, a demo model and a demo host
//	go run ./scripts/dev -emulators  with the Firestore and Pub/Sub emulators of the gcloud SDK
//	go run ./scripts/dev -log json   with the log lines of Cloud Logging instead of short ones
//
// Each part that the environment configures is the real one: Gemini with GEMINI_API_KEY or config/.gemini.yaml, Gmail
// and Calendar with GOOGLE_OAUTH_CLIENT_ID, an OIDC issuer with AUTH_ISSUER. The local parts speak the real protocols,
// so the clients and the checks are the same as in the cloud. All data is in DATA_DIR. Nothing is lost if the process
// is killed: the next start continues.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/testkit/gorun"
)

func main() {
	gorun.Follow()
	if pid, err := strconv.Atoi(os.Getenv("DEV_PARENT")); err == nil { // the `go run` that started scripts/dev
		go gorun.With(pid)
	}
	if os.Getenv(supervises) != "" {
		code, err := supervise()
		if err != nil {
			fmt.Fprintln(os.Stderr, "dev:", err)
		}
		os.Exit(code)
	}
	o, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return // the error has been printed
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err == nil {
		err = execute(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// options are the flags of the command.
type options struct {
	addr     string
	emulated bool
	log      string // short or json
}

const usage = `usage: go run ./scripts/dev [flags]

Runs Countersign on this machine until Ctrl-C. Parts that the environment does not configure are local.

  go run ./scripts/dev                          the embedded store, the offline demo model, a local mailbox
  go run ./scripts/dev -addr 127.0.0.1:9000     on another port; so does PORT=9000
  GEMINI_API_KEY=... go run ./scripts/dev       with Gemini
  go run ./scripts/dev -emulators               on the Firestore and Pub/Sub emulators

`

// parse reads the flags. With a help flag it prints the help to out and returns flag.ErrHelp.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are returned
	flags.StringVar(&o.addr, "addr", "", "where to listen; loopback only (default 127.0.0.1 and PORT, or 8080)")
	flags.BoolVar(&o.emulated, "emulators", false, "run on the Firestore and Pub/Sub emulators")
	flags.StringVar(&o.log, "log", "short", "short: one line for each request, except sweeps and health checks; "+
		"json: the lines of Cloud Logging")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; -h prints the flags", err)
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: dev takes only flags; -h prints them", flags.Arg(0))
	case o.log != "short" && o.log != "json":
		return o, fmt.Errorf("-log is %q; it must be short or json", o.log)
	}
	return o, nil
}

// execute serves until ctx is done, and then waits for requests to finish, for a limited time.
func execute(ctx context.Context, o options) error {
	addr := o.addr
	if addr == "" {
		var err error
		if addr, err = address(os.Getenv("PORT")); err != nil {
			return err
		}
	}
	ln, err := listen(addr)
	if err != nil {
		return err
	}
	s, err := newServer(ctx, "http://"+ln.Addr().String(), o)
	if err != nil {
		return errors.Join(unlessStopped(ctx, err), ln.Close())
	}
	web := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 4 << 20, // the functions refuse headers over 64 KiB themselves, with a message
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	if err := s.start(ctx); err != nil {
		return errors.Join(unlessStopped(ctx, err), web.Close(), s.close())
	}
	s.greet(os.Stdout)
	debug.FreeOSMemory() // return the memory that only the start needed
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s.stop(draining)
	return errors.Join(ignoreClosed(err), web.Shutdown(draining), s.close())
}

// unlessStopped returns err, or nil if ctx is done, because a start that is interrupted may fail anywhere.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// address returns the address to listen on. The port is from PORT.
func address(port string) (string, error) {
	if port == "" {
		port = "8080"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("PORT is %q; it must be a number from 0 to 65535", port)
	}
	return "127.0.0.1:" + port, nil
}

// listen accepts only loopback addresses, because the local issuer issues tokens to any caller.
func listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("-addr is %q; it must be a host and a port, such as 127.0.0.1:8080", addr)
	}
	if !outbound.Loopback(host) {
		return nil, fmt.Errorf("-addr is %q; it must be a loopback address, because anyone who can reach the server "+
			"can sign in", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is used by another program: choose another port with -addr 127.0.0.1:PORT, or "+
			"set PORT", addr)
	}
	return ln, err
}
