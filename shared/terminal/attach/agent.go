package attach

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// The states of an agent's command, in messages to the terminal.
const (
	commandRuns  = "running" // its output follows, and it receives the keys
	commandAsks  = "input"   // it waits for input
	commandEnded = "ended"   // the shell receives the keys again
)

// agent is the command that an agent runs on the terminal.
type agent struct {
	keeper *supervisor.Client
	pause  time.Duration // Times.Pause
	known  chan struct{} // closed once it is known whether a command runs
	once   sync.Once

	mu    sync.Mutex
	typed *keys     // nil if no command runs
	asks  bool      // the command waits for input that is not yet typed
	half  bool      // the input since the question does not end with a line end
	stray time.Time // until then, typed keys may be the rest of an answer to a command that has ended
}

// tells records that it is now known whether a command runs.
func (a *agent) tells() { a.once.Do(func() { close(a.known) }) }

// takes returns the keys to pass on, and their receiver: a command, or nil for the shell. After a command has ended, it
// drops the rest of an answer to it, up to Enter, because the rest may be half a password.
func (a *agent) takes(b []byte) (*keys, []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.stray) {
		enter := bytes.IndexAny(b, lineEnds)
		if enter < 0 {
			a.stray = time.Now().Add(a.pause)
			return nil, nil
		}
		a.stray = time.Time{}
		b = b[enter+1:]
	}
	n := answers(b)
	if n > 0 {
		a.asks, a.half = false, false
	} else {
		a.half = a.half || a.asks
	}
	if a.typed != nil {
		a.typed.answers += n
	}
	return a.typed, b
}

const lineEnds = "\r\n"

// answers returns the number of line ends in typed keys.
func answers(b []byte) (n int) {
	for _, c := range b {
		if strings.IndexByte(lineEnds, c) >= 0 {
			n++
		}
	}
	return n
}

// sent records that the host has received the keys for a command, or never will.
func (a *agent) sent(k *keys, b []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k.answers -= answers(b)
}

// set directs keys to a command.
func (a *agent) set(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.typed, a.asks, a.half = k, false, false
}

// ask records whether the command that owns k waits for input. If an answer is still on its way to the host, the
// reported question is the one that it answers.
func (a *agent) ask(k *keys, asks bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.typed == k {
		a.asks = asks && k.answers == 0
	}
}

// clear directs keys to the shell again, if they go to the command that owns k.
func (a *agent) clear(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k == nil || a.typed != k {
		return
	}
	if a.asks || a.half {
		a.stray = time.Now().Add(a.pause)
	}
	a.typed, a.asks, a.half = nil, false, false
}

// next drops the keys that one command of a list has not read, before the next command gets keys: they may be a
// password.
func (a *agent) next(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k.answers -= answers(k.drop())
	if a.typed == k && (a.asks || a.half) {
		a.stray = time.Now().Add(a.pause)
	}
	a.asks, a.half = false, false
}

// task is a function that runs in a goroutine.
type task struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func begin(ctx context.Context, do func(context.Context)) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{cancel, make(chan struct{})}
	go func() {
		defer close(t.done)
		defer cancel()
		do(ctx)
	}()
	return t
}

// end waits up to grace for the task, and then cancels it. A nil task has ended.
func (t *task) end(grace time.Duration) {
	if t == nil {
		return
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-t.done:
	case <-late.C:
	}
	t.cancel()
	<-t.done
}

// lastOutput is how long to wait for the last output of a command after its outcome was recorded.
const lastOutput = 2 * time.Second

// follow shows the commands of the runs that reserve the terminal, until ctx ends.
func (t *socket) follow(ctx context.Context) {
	var current *task
	defer func() { current.end(0) }()
	ended := false // commands of a run that ended before the socket opened are not shown
	for runID, err := range t.Runs.OnTerminal(ctx, t.uid, t.id) {
		if err != nil {
			t.unknown(ctx, runID, err)
			return
		}
		current.end(lastOutput)
		current = nil
		if runID == "" {
			t.agent.tells()
		} else {
			all := ended
			current = begin(ctx, func(ctx context.Context) { t.followRun(ctx, runID, all) })
		}
		ended = true
	}
}

// unknown ends the socket if it cannot find out whether a command runs: keys for a command must not go to the shell.
func (t *socket) unknown(ctx context.Context, runID string, err error) {
	t.Log.WarnContext(ctx, "the run on a terminal cannot be watched", "runId", runID, "error", err)
	t.end(Reason(fault.CodeStoreUnavailable))
}

// followRun shows the commands of a run, one after the other. If the run has ended, it shows them only if ended is
// true.
func (t *socket) followRun(ctx context.Context, runID string, ended bool) {
	var current *task
	var typed *keys // keys for the current command
	defer func() {
		t.agent.clear(typed)
		if ctx.Err() != nil {
			current.end(0)
		} else {
			t.agent.tells() // the run is gone
		}
		current.end(lastOutput)
	}()
	for ids, err := range t.Runs.UnderWay(ctx, t.uid, runID, ended) {
		if err != nil {
			t.unknown(ctx, runID, err)
			return
		}
		t.agent.clear(typed) // its outcome is known: it gets no further keys, but more output may follow
		before, now := ids[:len(ids)-1], ids[len(ids)-1]
		if now != "" {
			typed = newKeys()
			t.agent.set(typed)
		}
		t.agent.tells()
		current.end(lastOutput)
		current = nil
		for _, id := range before {
			begin(ctx, func(ctx context.Context) { t.replay(ctx, runID, id) }).end(lastOutput)
		}
		if now != "" {
			current = begin(ctx, func(ctx context.Context) { t.show(ctx, runID, now, typed) })
		}
	}
}

// replay shows a command, or the commands of a list, after they have ended.
func (t *socket) replay(ctx context.Context, runID, actionID string) {
	t.tell(runID, actionID, commandRuns)
	at := &position{action: actionID}
	for {
		res, err := t.agent.keeper.Attach(ctx, at.id(), 0, printer{screen: t.screen})
		if errors.Is(err, supervisor.ErrOther) && !at.inList() {
			at.other()
			continue
		}
		if err != nil || !at.next(res) { // the host may have deleted the output
			break
		}
	}
	t.tell(runID, actionID, commandEnded)
}

// tell sends the state of a command to the terminal. Output after the end of a command begins on a new line.
func (t *socket) tell(runID, actionID, state string) {
	if state == commandEnded {
		t.screen.ended()
	}
	t.screen.tell(agentState{"agent", runID, actionID, state})
}

// again is the pause before the next attempt to attach to a command that the host does not know yet. Another process
// has recorded the command's start, and is about to start it.
const again = 100 * time.Millisecond

// show shows a command, or the commands of a list, until the last has ended or ctx ends. It sends them the keys that
// the user types.
func (t *socket) show(ctx context.Context, runID, actionID string, typed *keys) {
	at := &position{action: actionID}
	typing := begin(ctx, func(ctx context.Context) { t.typeInto(ctx, at, typed) })
	t.tell(runID, actionID, commandRuns)
	defer func() {
		t.agent.clear(typed)
		typed.close() // keys that the command did not read must not go to the shell: they may be a password
		typing.end(0)
		t.tell(runID, actionID, commandEnded)
	}()
	asks := supervisor.Asks(func(asks bool) {
		t.agent.ask(typed, asks)
		if asks {
			t.tell(runID, actionID, commandAsks)
		} else {
			t.tell(runID, actionID, commandRuns)
		}
	})
	for {
		res, err := t.agent.keeper.Attach(ctx, at.id(), 0, printer{screen: t.screen}, supervisor.Hold(), asks)
		switch {
		case errors.Is(err, supervisor.ErrOther):
			if wait.For(ctx, again) != nil {
				return
			}
			at.other()
		case err != nil || !at.next(res):
			return
		default:
			t.agent.next(typed)
		}
	}
}

// typeInto sends typed keys to the command until it has ended. In a list, the keys then go to the next command.
func (t *socket) typeInto(ctx context.Context, at *position, typed *keys) {
	b := make([]byte, maxTyped/2)
	for {
		n, err := typed.Read(b)
		if err != nil {
			return
		}
		for {
			err = t.agent.keeper.Input(ctx, at.id(), b[:n])
			if !errors.Is(err, supervisor.ErrOther) && !tool.IsTransient(err) || wait.For(ctx, again) != nil {
				break // the command has the keys, or will never get them
			}
		}
		t.agent.sent(typed, b[:n])
		if err != nil && !at.inList() {
			return // a command that has ended reads nothing
		}
	}
}
