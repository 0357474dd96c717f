// Command crash kills Countersign at every point at which it can die, and checks what is left.
//
//	go run ./scripts/prove/crash -kills 7200                    the whole matrix on the embedded store
//	go run ./scripts/prove/crash -kills 2000 -store firestore   on the Firestore emulator
//	go run ./scripts/prove/crash -kills 2000 -anywhen           at random moments instead of at the known points
//
// Workers are processes of their own, with all functions on one address; Gmail, Calendar, the model and the store's
// file or emulator outlive them. A first walk of each kind counts the points at which a worker calls something outside
// itself: before and after each read, commit, publish, model call and provider call, and before each answer. Then each
// trial takes a fresh user through a walk (approve, edit, always allow, reject, cancel, expire), strikes one worker at
// one point, with or without a fault of the provider at the same time, lets the client, the queue and the sweep retry
// as they would, and compares the documents with what the providers received.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// options are the flags.
type options struct {
	kills   int
	store   string
	lanes   int
	seed    uint64
	anywhen bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv(asWorker) != "" {
		exit(work(ctx, os.Stdin, os.Stdout))
		return
	}
	var o options
	flag.IntVar(&o.kills, "kills", 7200, "how many workers to strike")
	flag.StringVar(&o.store, "store", "embedded", "embedded, or firestore for the emulator")
	flag.IntVar(&o.lanes, "lanes", 8, "how many trials at a time")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the trials' choice and order")
	flag.BoolVar(&o.anywhen, "anywhen", false, "kill at random moments instead of at the known points")
	flag.Parse()
	exit(run(ctx, o, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.kills < 1 || o.lanes < 1 || o.store != "embedded" && o.store != "firestore" {
		return errors.New("-kills and -lanes must be at least 1, and -store embedded or firestore")
	}
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.store == "firestore" {
		e, err := emulators.StartFirestore(ctx, io.Discard)
		if err != nil {
			return err
		}
		defer func() { _ = e.Stop() }() // it ends with this process in any case
		if err := os.Setenv("FIRESTORE_EMULATOR_HOST", e.Addr); err != nil {
			return err
		}
	}
	r, err := try(ctx, o, dir)
	if err != nil {
		return err
	}
	r.print(out)
	if r.violations > 0 {
		return fmt.Errorf("%d violations; -seed %d repeats the choice", r.violations, o.seed)
	}
	return nil
}
