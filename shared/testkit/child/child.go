// Package child runs the programs that serve tests: emulators, and servers with a provider's API. They end with their
// test and, where the system can do that, with this process.
package child

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
)

// startBound ends the wait for the first answer of a program; it takes at most 3 s on an idle machine.
const startBound = await.Most

// T is the owner of a program: a test, or a trial of a part. The program ends with it.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Start starts the program. The channel is closed when the program has ended. The signal of [DieWithParent] is tied to
// the thread that started the program, not to this process, so Start keeps that thread as long as the program runs.
func Start(cmd *exec.Cmd) (ended <-chan struct{}, err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // the exit status is in cmd.ProcessState
		close(done)
	}()
	return done, <-started
}

// Answers waits until a program answers anything at the URL.
func Answers(ctx context.Context, url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second} // no proxy
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case <-ended:
			tick.Stop()
			return errors.New("the program ended before it answered")
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("no answer at %s: %w", url, ctx.Err())
		case <-tick.C:
		}
		if res, err := client.Get(url); err == nil {
			tick.Stop()
			return res.Body.Close()
		}
	}
}

// Serve starts an HTTP server on a free loopback port, waits until it answers at the path, and returns its address
// without a trailing slash. command returns its program for a port. The server ends with the test.
func Serve(t T, path string, command func(port string) *exec.Cmd) (base string) {
	t.Helper()
	var failed error
	for range 3 { // another program may take the free port first
		base, stop, err := serve(path, command)
		if err == nil {
			t.Cleanup(stop)
			return base
		}
		failed = err
	}
	t.Fatalf("%v", failed)
	return ""
}

func serve(path string, command func(port string) *exec.Cmd) (base string, stop func(), err error) {
	port, err := freeport.Port()
	if err != nil {
		return "", nil, err
	}
	cmd, printed := command(port), Tail{}
	cmd.Stdout, cmd.Stderr = &printed, &printed
	DieWithParent(cmd)
	ended, err := Start(cmd)
	if err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-ended
	}
	base = "http://127.0.0.1:" + port
	if err := Answers(context.Background(), base+path, ended); err != nil {
		stop()
		return "", nil, fmt.Errorf("%s: %w\n%s", cmd.Path, err, printed.String())
	}
	return base, stop, nil
}
