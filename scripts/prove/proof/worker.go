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
)

// The environment of a worker: the proof whose it is, and its order.
const (
	workerOf    = "PROVE_WORKER"
	workerOrder = "PROVE_ORDER"
)

// Order is what a worker is told: JSON as given to Start. More may come on its standard input, which ends when the
// process that started it wants its end or is gone itself; what it prints on its standard output is heard.
type Order json.RawMessage

// Read decodes the order.
func (o Order) Read(into any) error { return json.Unmarshal(o, into) }

// File returns the n-th of the files that Start was given.
func (o Order) File(n int) *os.File { return os.NewFile(uintptr(3+n), "") }

// Worked does what this process was started for, if it is a worker of the proof, and reports whether it is. Its process
// ends here where that fails. Tests of a proof that starts workers begin with it.
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

// Worker is a process that runs Countersign, for the proof that has started it.
type Worker struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	heard  chan struct{} // closed when it has said its last
}

// Start starts a program that has the named proof as a worker of it; without one, this program again. hear is called
// with each line that it prints, and may be nil; files are its own to read, from Order.File(0). It ends with this
// process on Linux, however that ends.
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
	dieWithParent(w.cmd)
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

// Tell sends the worker a line.
func (w *Worker) Tell(format string, args ...any) error {
	_, err := fmt.Fprintf(w.orders, format+"\n", args...)
	return err
}

// Ended returns a channel that is closed when the worker has said its last.
func (w *Worker) Ended() <-chan struct{} { return w.heard }

// PID returns its process id.
func (w *Worker) PID() int { return w.cmd.Process.Pid }

// Signal sends it a signal.
func (w *Worker) Signal(s syscall.Signal) error { return w.cmd.Process.Signal(s) }

// Kill is kill -9. It returns when the worker has ended.
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

// Stop lets the worker end in good order.
func (w *Worker) Stop() error {
	err := w.orders.Close()
	<-w.heard
	return errors.Join(err, w.cmd.Wait())
}

// Seconds returns the CPU time of a worker that has ended.
func (w *Worker) Seconds() float64 {
	return (w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()).Seconds()
}
