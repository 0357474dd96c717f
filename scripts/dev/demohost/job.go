package demohost

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"
)

// job is a running command. It outlives the connection that started it.
type job struct {
	id     string
	out    *output
	shell  *shell
	cancel context.CancelCauseFunc
	feed   *os.File
	began  time.Time
	held   atomic.Int64 // followers that can answer its questions
	asking atomic.Bool
	mu     sync.Mutex
	why    error
}

// end ends the command, and records the reason.
func (j *job) end(why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.why == nil {
		j.why = why
	}
	j.cancel(why)
	_ = j.feed.Close() // a program that waits for input sees its end
}

var hows = map[error]string{errStopped: "stopped", errTimedOut: "limit", errNoInput: "input", errHangUp: "hangup"}

var errNoInput = errors.New("nobody answers")

func (j *job) how() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if how, ok := hows[j.why]; ok {
		return how
	}
	return "exited"
}

func (h *Host) job(id string) *job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.jobs[id]
}

// beginOnce claims a command and starts it, or returns the reason why it does not start.
func (h *Host) beginOnce(r request, cwd, command string) (j *job, why string) {
	h.claims.Lock()
	defer h.claims.Unlock()
	dir := journalDir(r.values["id"])
	if h.claimed(r.values["id"]) || h.machine.disk.root.Mkdir(inside(dir), 0o700) != nil { // this is the claim
		if h.exists(path.Join(dir, "never")) {
			return nil, "never"
		}
		return nil, "begun"
	}
	j, err := h.begin(r, cwd, command)
	if err != nil {
		_ = h.machine.disk.root.RemoveAll(inside(dir)) // nothing has begun
		return nil, "home"
	}
	return j, ""
}

// stop ends a command. A command that has not started never will.
func (h *Host) stop(id string) {
	h.claims.Lock()
	defer h.claims.Unlock()
	if j := h.job(id); j != nil {
		j.end(errStopped)
	} else {
		h.forbid(id)
	}
}

// begin starts the command independently of its connection.
func (h *Host) begin(r request, cwd, command string) (*job, error) {
	id := r.values["id"]
	err := errors.Join(h.keep(id, "cmd", []byte(command)), h.keep(id, "boot", []byte(h.boot()+"\n")), h.claim(id))
	if err != nil {
		return nil, err
	}
	file, err := h.machine.disk.root.OpenFile(inside(path.Join(journalDir(id), "out")), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ctx, cancel := context.WithCancelCause(h.ctx)
	size := &window{}
	size.set(r.size())
	j := &job{id: id, out: newOutput(file), cancel: cancel, feed: feed, began: h.now(),
		shell: &shell{machine: h.machine, size: size.get, tty: in}}
	h.mu.Lock()
	h.jobs[id] = j
	h.mu.Unlock()
	h.work(func() {
		defer cancel(nil)
		defer file.Close()
		defer in.Close()
		h.carryOut(ctx, j, r, cwd, command, in)
	})
	return j, nil
}

func (h *Host) carryOut(ctx context.Context, j *job, r request, cwd, command string, in *os.File) {
	plain, grammar, terminal := r.values["plain"] != "", r.values["grammar"], r.values["term"]
	if !safeName.MatchString(terminal) || plain {
		terminal = ""
	}
	if grammar != "sh" {
		grammar = "bash"
	}
	vars := h.carried(terminal, grammar)
	vars["COUNTERSIGN_ACTION"] = j.id
	if plain { // as the keeper's own script does
		vars["HOME"] = "/nonexistent"
	}
	over := make(chan struct{})
	h.work(func() { h.watch(j, r, over) })
	out := crlf{j.out}
	j.shell.screen = out
	o := j.shell.run(ctx, work{command: command, posix: grammar == "sh", vars: vars, dir: cwd, in: in, out: out,
		errs: out})
	close(over)
	_ = j.feed.Close() // it may have been closed
	e := ending{Code: o.code, Cwd: o.dir, How: j.how(), Took: h.now().Sub(j.began), Left: o.left}
	if h.ctx.Err() != nil {
		return // the machine stops: the command is lost, as after a power failure
	}
	if plain {
		e.Cwd = cwd
	}
	e.Real, _ = h.machine.disk.real(e.Cwd) // an error leaves it empty
	j.out.mu.Lock()
	e.Bytes = j.out.bytes
	rest := j.out.rest()
	j.out.mu.Unlock()
	if terminal != "" {
		_ = h.carry(terminal, grammar, o.vars) // the next command begins with the older ones
	}
	text, err := json.Marshal(e)
	if err == nil && len(rest) > 0 {
		err = h.keep(j.id, "rest", rest)
	}
	if err == nil {
		err = errors.Join(h.keep(j.id, "exit.new", text), h.machine.disk.root.Rename(
			inside(path.Join(journalDir(j.id), "exit.new")), inside(path.Join(journalDir(j.id), "exit"))))
	}
	j.mu.Lock()
	j.why = err // followers see that its journal was deleted
	j.mu.Unlock()
	h.mu.Lock()
	delete(h.jobs, j.id)
	h.mu.Unlock()
	j.out.end()
	h.prune()
}

// watch ends the command at its limit, and checks whether it waits for input.
func (h *Host) watch(j *job, r request, over <-chan struct{}) {
	limit, quiet := r.hundredths("limit", 30*time.Second), r.hundredths("quiet", time.Second)
	patience := r.hundredths("patience", 10*time.Second)
	started := time.Now()
	size, changed, alone := int64(-1), started, started
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		j.out.mu.Lock()
		now := j.out.bytes
		j.out.mu.Unlock()
		if now != size || !j.shell.asks.Load() {
			size, changed, alone = now, time.Now(), time.Now()
		}
		asks := j.shell.asks.Load() && time.Since(changed) >= quiet
		if j.asking.Swap(asks) != asks {
			j.out.wake()
		}
		if !asks || j.held.Load() > 0 {
			alone = time.Now()
		}
		switch {
		case time.Since(started) >= limit:
			j.end(errTimedOut)
		case asks && time.Since(alone) >= patience:
			j.end(errNoInput)
		}
	}
}

func (j *job) press(p []byte) {
	k := keyboard{shell: j.shell, feed: j.feed, screen: j.out, interrupt: func() { j.cancel(errInterrupted) }}
	for len(p) > 0 {
		p = p[k.press(p):]
	}
}
