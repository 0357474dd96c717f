// Command dev runs Countersign on one machine: every function at its path, without an installation or an account.
//
//	go run ./scripts/dev             the embedded store, a local mailbox and calendar, an offline demo model and host
//	go run ./scripts/dev -emulators  the same on the Firestore and Pub/Sub emulators of the gcloud SDK
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
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/outbound"
)

func main() {
	addr := flag.String("addr", "", "where to listen; loopback only (default 127.0.0.1 and PORT, or 8080)")
	emulated := flag.Bool("emulators", false, "run on the Firestore and Pub/Sub emulators")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := execute(ctx, *addr, *emulated); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// execute serves until ctx ends, and then waits a while for requests to finish.
func execute(ctx context.Context, addr string, emulated bool) error {
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
	s, err := newServer(ctx, "http://"+ln.Addr().String(), emulated)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	web := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 4 << 20, // the functions refuse more than 64 KiB themselves, with a message
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	if err := s.start(ctx); err != nil {
		return errors.Join(err, web.Close(), s.close())
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
	return net.Listen("tcp", addr)
}
