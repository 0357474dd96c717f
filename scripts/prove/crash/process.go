package crash

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// process is the parent's handle of a worker.
type process struct {
	*proof.Worker
	replies chan string // the replies to orders
	hits    chan string // the points where it was interrupted; closed when the process has exited
	url     string
	client  *http.Client
}

// patience is the longest time that a worker may take for an order.
const patience = await.Most

// spawn starts a worker.
func spawn(program string, o order, log io.Writer) (p *process, err error) {
	p = &process{replies: make(chan string, 4), hits: make(chan string, 4),
		client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	if p.Worker, err = proof.Start(program, "crash", o, log, p.hear); err != nil {
		return nil, err
	}
	go func() { <-p.Ended(); close(p.hits); close(p.replies) }()
	ready, err := p.reply()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a worker: %w", err), p.kill())
	}
	p.url = strings.TrimPrefix(ready, "ready ")
	return p, nil
}

func (p *process) hear(line string) {
	if name, ok := strings.CutPrefix(line, "hit "); ok {
		p.hits <- name
		return
	}
	p.replies <- line
}

func (p *process) reply() (string, error) {
	select {
	case line, alive := <-p.replies:
		if !alive {
			return "", errors.New("the worker has exited")
		}
		return line, nil
	case <-time.After(patience):
		return "", errors.New("the worker did not reply in time")
	}
}

func (p *process) order(format string, args ...any) (string, error) {
	if err := p.Tell(format, args...); err != nil {
		return "", err
	}
	answer, err := p.reply()
	return strings.TrimSpace(strings.TrimPrefix(answer, "ok")), err
}

// arm makes the worker interrupt itself at the n-th point from now.
func (p *process) arm(n int, how string) error {
	_, err := p.order("arm %d %s", n, how)
	return err
}

// struck waits until the worker has interrupted itself, or until done is closed.
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

// wake continues a paused worker.
func (p *process) wake() error {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	_, err := p.order("wake")
	return err
}

// kill kills the worker with SIGKILL, and waits until it has exited.
func (p *process) kill() error {
	p.client.CloseIdleConnections()
	return p.Kill()
}
