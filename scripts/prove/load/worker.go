package load

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof" // a worker shows its profile beside the functions
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/app"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
)

// order is the configuration of a worker.
type order struct {
	Settings map[string]string
	Relay    string        // push URL of the embedded queue; empty: it does not deliver
	Working  bool          // it advances runs while it serves requests, as the local server does
	Expires  time.Duration // the lifetime of approvals; 0: as configured, which is at least a minute
	Hurry    bool          // a dead worker's lease ends sooner
}

func (o order) setting(name string) string { return o.Settings[name] }

// The lease times of a worker with Hurry. Even a busy machine must be able to finish a call within leaseTimeout.
const (
	leaseTimeout = 10 * time.Second
	leaseMargin  = 2 * time.Second
)

// limit shortens times of a minute or more, so that they pass within a measurement of a second.
func (o order) limit(l *unit.Env) {
	if o.Hurry {
		l.LeaseMargin = leaseMargin
	}
	for _, a := range l.Agents {
		if o.Hurry {
			a.Limits.ModelTimeout, a.Limits.ToolTimeout = leaseTimeout, leaseTimeout
		}
		if o.Expires > 0 {
			a.Limits.ApprovalTTL = o.Expires
		}
	}
}

// work runs Countersign. It serves on the inherited listener, and ends when its parent does.
func work(ctx context.Context, first proof.Order) error {
	var o order
	if err := first.Read(&o); err != nil {
		return err
	}
	functions, err := net.FileListener(first.File(0))
	if err != nil {
		return err
	}
	profile, err := net.FileListener(first.File(1))
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(profile, nil) }() // it ends with the process
	keepConnections()
	options := []app.Option{app.WithEnv(o.limit)}
	if o.Working {
		options = append(options, app.Working())
	}
	a, stop, err := testkit.Serve(ctx, functions, o.setting, os.Stderr, nil, options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { a.Work(ctx) })
	if q, ok := a.Queue.(*queueembedded.Queue); ok && o.Relay != "" {
		push := queueembedded.HTTPPush(o.Relay, func(context.Context) (string, error) { return "none", nil },
			http.DefaultClient)
		go func() { _ = q.Run(ctx, push) }() // it ends only with the context
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent closes it or ends
	cancel()
	working.Wait()
	return errors.Join(err, stop())
}

// keepConnections makes this process keep one connection to a host for each concurrent request. By default it would
// keep two, and a load would spend its time opening others. Connections that are unused for a few seconds are closed,
// so that the remaining goroutines can be counted.
var keepConnections = sync.OnceFunc(func() {
	t := http.DefaultTransport.(*http.Transport)
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = 0, 1000, 2*time.Second
})

// process is the parent's handle of a worker.
type process struct {
	*proof.Worker
	profile string // URL of its profile
}

// startWorker starts a worker. The listener stays open in the parent, so that a client that connects while no worker
// runs waits instead of being refused.
func startWorker(functions *os.File, o order, logs io.Writer) (*process, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	profile, err := inheritable(ln)
	if err != nil {
		return nil, err
	}
	defer profile.Close()
	w, err := proof.Start("", "load", o, logs, nil, functions, profile)
	return &process{w, "http://" + ln.Addr().String() + "/debug/pprof/"}, err
}

// inheritable returns a copy of the listener to pass to workers. The listener's own File would become blocking when it
// is passed on, and so would the listener of every process that shares it: Close would not end an Accept in progress.
func inheritable(ln net.Listener) (f *os.File, err error) {
	raw, err := ln.(*net.TCPListener).SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		syscall.ForkLock.RLock() // a process that is being started must not inherit it
		defer syscall.ForkLock.RUnlock()
		var dup int
		if dup, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(dup)
			f = os.NewFile(uintptr(dup), "listener")
		}
	})
	return f, errors.Join(failed, err)
}

// kill sends SIGKILL.
func (g *env) kill(p *process) error {
	if err := p.Kill(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers = slices.DeleteFunc(g.workers, func(other *process) bool { return other == p })
	g.spent += p.Seconds()
	return nil
}

// goroutines returns the worker's number of goroutines.
func (p *process) goroutines(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.profile+"goroutine?debug=1", nil)
	if err != nil {
		return 0, err
	}
	req.Close = true // a kept connection has additional goroutines
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(body), "\n")
	return strconv.Atoi(strings.TrimPrefix(first, "goroutine profile: total "))
}
