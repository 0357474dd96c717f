package proof

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/countersign-run/countersign/shared/testkit/child"
)

// Environment variables of a worker: the name of its proof, and its order.
const (
	workerOf    = "PROVE_WORKER"
	workerOrder = "PROVE_ORDER"
)

// Order is the configuration of a worker, the JSON of the value given to Start. Further orders can arrive on standard
// input, which ends when the parent process stops the worker or exits. The parent reads the worker's standard output.
type Order json.RawMessage

// Read decodes the order into a value.
func (o Order) Read(into any) error { return json.Unmarshal(o, into) }

// File returns the n-th of the files passed to Start.
func (o Order) File(n int) *os.File { return os.NewFile(uintptr(3+n), "") }

// Worked reports whether this process is a worker of the proof. If it is, Worked runs the worker's function first, and
// exits if that fails. Tests of a proof that starts workers call it first.
func Worked(p Proof) bool {
	worked, err := work([]Proof{p})
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(Unable)
	}
	return worked
}

func work(proofs []Proof) (worked bool, err error) {
	name := os.Getenv(workerOf)
	if name == "" {
		return false, nil
	}
	for _, p := range proofs {
		if p.Name == name && p.Work != nil {
			return true, p.Work(context.Background(), Order(os.Getenv(workerOrder)))
		}
	}
	return true, fmt.Errorf("%q starts no workers", name)
}

// Worker is the parent's handle of a worker process.
type Worker struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	heard  chan struct{} // closed at the end of the worker's output
}

// Start starts a program as a worker of the named proof, or this program again if no program is named. It calls hear
// with each line of output; hear may be nil. The worker gets the files, from Order.File(0) on. On Linux the worker ends
// with this process, however this process ends.
func Start(program, name string, order any, logs io.Writer, hear func(line string), files ...*os.File) (
	w *Worker, err error) {
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	w = &Worker{cmd: exec.Command(program), heard: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerOf+"="+name, workerOrder+"="+string(data))
	w.cmd.Stderr, w.cmd.ExtraFiles = logs, files
	child.DieWithParent(w.cmd)
	if w.orders, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(w.heard)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if hear != nil {
				hear(lines.Text())
			}
		}
	}()
	return w, nil
}

// Tell sends a line to the worker.
func (w *Worker) Tell(format string, args ...any) error {
	_, err := fmt.Fprintf(w.orders, format+"\n", args...)
	return err
}

// Ended returns a channel that is closed at the end of the worker's output.
func (w *Worker) Ended() <-chan struct{} { return w.heard }

// PID returns the worker's process ID.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Signal sends the worker a signal.
func (w *Worker) Signal(s syscall.Signal) error { return w.cmd.Process.Signal(s) }

// Kill kills the worker with SIGKILL, and returns when it has exited.
func (w *Worker) Kill() error {
	if err := w.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-w.heard
	var exit *exec.ExitError
	if err := w.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// Stop closes the worker's input, and waits until the worker has exited.
func (w *Worker) Stop() error {
	err := w.orders.Close()
	<-w.heard
	return errors.Join(err, w.cmd.Wait())
}

// Seconds returns the CPU time of a worker that has exited.
func (w *Worker) Seconds() float64 {
	return (w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()).Seconds()
}
