package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof" // a worker shows its profile beside the functions
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/loop"
	queueembedded "github.com/countersign-run/countersign/shared/queue/embedded"
	"github.com/countersign-run/countersign/shared/testkit"
)

const (
	workerCommand = "worker"      // this program, started again to run Countersign only
	workerOrder   = "LOAD_WORKER" // the environment variable with its order
)

// order is the configuration of a worker.
type order struct {
	Settings map[string]string
	Relay    string        // push URL of the embedded queue; empty: it does not deliver
	Hurry    time.Duration // if set: the approval time, the model and tool timeouts, and the lease margin
}

func (o order) setting(name string) string { return o.Settings[name] }

// hurry shortens times of a minute or more, so that they pass within a soak of a second.
func (o order) hurry(l *loop.Loop) {
	if o.Hurry > 0 {
		l.LeaseMargin = o.Hurry
		for _, a := range l.Agents {
			a.Limits.ApprovalTTL, a.Limits.ModelTimeout, a.Limits.ToolTimeout = o.Hurry, o.Hurry, o.Hurry
		}
	}
}

// worker runs Countersign as a process: it serves on the inherited listener, and ends when its parent does.
func worker(errs io.Writer) int {
	if err := serve(errs); err != nil {
		fmt.Fprintln(errs, "worker:", err)
		return unable
	}
	return met
}

func serve(logs io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(workerOrder)), &o); err != nil {
		return err
	}
	functions, err := net.FileListener(os.NewFile(3, "functions"))
	if err != nil {
		return err
	}
	profile, err := net.FileListener(os.NewFile(4, "profile"))
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(profile, nil) }() // it ends with the process
	keepConnections()
	a, stop, err := testkit.Serve(context.Background(), functions, o.setting, logs, nil, app.WithLoop(o.hurry))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	if q, ok := a.Queue.(*queueembedded.Queue); ok && o.Relay != "" {
		push := queueembedded.HTTPPush(o.Relay, func(context.Context) (string, error) { return "none", nil },
			http.DefaultClient)
		go func() { _ = q.Run(ctx, push) }() // it ends only with the context
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until the parent closes it, or has ended
	cancel()
	return errors.Join(err, stop())
}

// keepConnections lets this process keep one connection to a host for each concurrent request: by default two are kept,
// and a load would spend its time opening others. Those unused for a few seconds are closed, so that the remaining
// goroutines can be counted.
var keepConnections = sync.OnceFunc(func() {
	t := http.DefaultTransport.(*http.Transport)
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = 0, 1000, 2*time.Second
})

// process is a worker, for its parent.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	profile string // URL of its profile
}

// startWorker starts this program again. The listener stays open in the parent, so that a client that connects while no
// worker runs waits instead of being refused.
func startWorker(functions *os.File, o order, logs io.Writer) (*process, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	profile, err := ln.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	defer profile.Close()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, workerCommand)
	cmd.Env = append(os.Environ(), workerOrder+"="+string(data))
	cmd.ExtraFiles = []*os.File{functions, profile}
	cmd.Stdout, cmd.Stderr = logs, logs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, stdin, "http://" + ln.Addr().String() + "/debug/pprof/"}, nil
}

// kill is kill -9.
func (g *env) kill(p *process) error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // it was killed
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers = slices.DeleteFunc(g.workers, func(other *process) bool { return other == p })
	g.spent += (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
	return nil
}

// stop ends the worker in good order.
func (p *process) stop() error { return errors.Join(p.stdin.Close(), p.cmd.Wait()) }

// goroutines returns the worker's number of goroutines.
func (p *process) goroutines(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.profile+"goroutine?debug=1", nil)
	if err != nil {
		return 0, err
	}
	req.Close = true // a kept connection has goroutines of its own
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
