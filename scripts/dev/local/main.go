// Command local is the local server, which `go run ./scripts/dev` compiles and starts.
//
//	go run ./scripts/dev             the embedded store, a local mailbox and calendar, an offline demo model and host
//	go run ./scripts/dev -emulators  the same on the Firestore and Pub/Sub emulators of the gcloud SDK
//	go run ./scripts/dev -log json   with the lines of Cloud Logging in place of short ones
//
// A part that the environment configures is the real one instead: Gemini with GEMINI_API_KEY or config/.gemini.yaml,
// Gmail and Calendar with GOOGLE_OAUTH_CLIENT_ID, an OIDC issuer with AUTH_ISSUER. Local parts speak the real
// protocols, so the clients and the checks are those of the cloud. All data is in DATA_DIR, and nothing is lost when
// the process is killed: the next one continues.
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
	if pid, err := strconv.Atoi(os.Getenv("DEV_PARENT")); err == nil { // the `go run` that has started scripts/dev
		go gorun.With(pid)
	}
	o, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		return // it has been printed
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

Runs Countersign on this machine until Ctrl-C. What is not configured by the environment is local.

  go run ./scripts/dev                          the embedded store, the offline demo model, a local mailbox
  go run ./scripts/dev -addr 127.0.0.1:9000     on another port; so does PORT=9000
  GEMINI_API_KEY=... go run ./scripts/dev       with Gemini
  go run ./scripts/dev -emulators               on the Firestore and Pub/Sub emulators

`

// parse reads the flags. A request for help is answered on out, and returned as flag.ErrHelp.
func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("dev", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is returned
	flags.StringVar(&o.addr, "addr", "", "where to listen; loopback only (default 127.0.0.1 and PORT, or 8080)")
	flags.BoolVar(&o.emulated, "emulators", false, "run on the Firestore and Pub/Sub emulators")
	flags.StringVar(&o.log, "log", "short", "short: a line to read for each request, and none for sweeps and health; "+
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
		return o, fmt.Errorf("%q: it takes flags, and nothing else; -h prints them", flags.Arg(0))
	case o.log != "short" && o.log != "json":
		return o, fmt.Errorf("-log %q: short or json is needed", o.log)
	}
	return o, nil
}

// execute serves until ctx ends, and then waits a while for requests to finish.
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
		MaxHeaderBytes: 4 << 20, // the functions refuse more than 64 KiB themselves, with a message
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	if err := s.start(ctx); err != nil {
		return errors.Join(unlessStopped(ctx, err), web.Close(), s.close())
	}
	s.greet(os.Stdout)
	debug.FreeOSMemory() // what the start used and an idle server does not
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	draining, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s.stop(draining)
	return errors.Join(ignoreClosed(err), web.Shutdown(draining), s.close())
}

// unlessStopped returns err, or nil if ctx has ended: then the start was stopped on request.
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

// address returns the address to listen on, from PORT.
func address(port string) (string, error) {
	if port == "" {
		port = "8080"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("PORT holds %q, and needs a number from 0 to 65535", port)
	}
	return "127.0.0.1:" + port, nil
}

// listen accepts loopback addresses only: the local issuer issues tokens to any caller.
func listen(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("-addr %q: a host and a port are needed, such as 127.0.0.1:8080", addr)
	}
	if !outbound.Loopback(host) {
		return nil, fmt.Errorf("-addr %q: only a loopback address is served, because anybody who reaches it "+
			"may sign in", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: choose another port with -addr 127.0.0.1:PORT, or "+
			"with PORT in the environment", addr)
	}
	return ln, err
}
