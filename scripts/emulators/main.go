// Command emulators runs one Firestore and one Pub/Sub emulator for any number of programs and test binaries:
//
//	go run ./scripts/emulators
//
// It prints the two lines that a shell evaluates to use them, and runs until its standard input ends or it receives an
// interrupt. The emulators keep everything in memory.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "emulators:", err)
		os.Exit(1)
	}
}

// serve starts both emulators, prints their addresses to out, and stops them when in or ctx ends.
func serve(ctx context.Context, in io.Reader, out, logs io.Writer) (err error) {
	firestore, err := emulators.StartFirestore(ctx, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, firestore.Stop()) }()
	pubsub, err := emulators.StartPubSub(ctx, logs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pubsub.Stop()) }()
	if _, err := fmt.Fprintf(out, "export FIRESTORE_EMULATOR_HOST=%s\nexport PUBSUB_EMULATOR_HOST=%s\n",
		firestore.Addr, pubsub.Addr); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, in)
		ended <- err
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}
