package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process is a worker, for its parent.
type process struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	replies chan string // the replies to orders
	hits    chan string // the points at which it was struck; closed when it has ended
	url     string
	client  *http.Client
}

// patience is the time limit of a worker for any order.
const patience = 20 * time.Second

// spawn starts this program again as a worker, with settings as its environment.
func spawn(settings map[string]string, log io.Writer) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), replies: make(chan string, 4), hits: make(chan string, 4),
		client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	p.cmd.Env = append(os.Environ(), asWorker+"=1")
	for name, value := range settings {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out)
	ready, err := p.answer()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a worker does not start: %w", err), p.kill())
	}
	p.url = strings.TrimPrefix(ready, "ready ")
	return p, nil
}

func (p *process) listen(out io.Reader) {
	defer close(p.hits)
	defer close(p.replies)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "hit "); ok {
			p.hits <- name
		} else {
			p.replies <- lines.Text()
		}
	}
}

func (p *process) answer() (string, error) {
	select {
	case line, alive := <-p.replies:
		if !alive {
			return "", errors.New("it is gone")
		}
		return line, nil
	case <-time.After(patience):
		return "", errors.New("it says nothing")
	}
}

func (p *process) order(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(p.orders, format+"\n", args...); err != nil {
		return "", err
	}
	answer, err := p.answer()
	return strings.TrimSpace(strings.TrimPrefix(answer, "ok")), err
}

// arm makes the worker strike itself at the n-th point from now.
func (p *process) arm(n int, how string) error {
	_, err := p.order("arm %d %s", n, how)
	return err
}

// struck waits until the worker was struck, or until done is closed.
func (p *process) struck(done <-chan struct{}) (name string, ok bool) {
	select {
	case name, ok = <-p.hits:
		return name, ok
	case <-done:
	}
	if p.arm(0, "none") == nil {
		return "", false
	}
	name, ok = <-p.hits
	return name, ok
}

// wake continues a stopped worker.
func (p *process) wake() error {
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	_, err := p.order("wake")
	return err
}

// kill ends the worker with SIGKILL, and waits until it has ended.
func (p *process) kill() error {
	p.client.CloseIdleConnections()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
