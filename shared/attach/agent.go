package attach

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/wait"
)

// The states of an agent's command, as the terminal is told them.
const (
	commandRuns  = "running" // what it prints follows, and keys go to it
	commandAsks  = "input"   // it waits for input
	commandEnded = "ended"   // keys go to the shell again
)

// agent is the command that an agent runs on the terminal.
type agent struct {
	keeper *keeper.Keeper
	known  chan struct{} // is closed once it is known whether a command runs
	once   sync.Once

	mu    sync.Mutex
	typed *keys     // nil where none runs
	asks  bool      // it waits for input
	half  bool      // what was typed since it asked has no end of a line yet
	stray time.Time // until then what is typed may be the rest of what a command had asked for that has ended
}

// pause is for how long keys that follow each other count as one answer.
const pause = 1500 * time.Millisecond

// tells notes that it is known whether a command runs.
func (a *agent) tells() { a.once.Do(func() { close(a.known) }) }

// takes returns where keys go, nil for the shell, and which of them do: the rest of an answer to a command that has
// ended goes nowhere, up to its Enter, since it may be half a password.
func (a *agent) takes(b []byte) (*keys, []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.stray) {
		enter := bytes.IndexAny(b, lineEnds)
		if enter < 0 {
			a.stray = time.Now().Add(pause)
			return nil, nil
		}
		a.stray = time.Time{}
		b = b[enter+1:]
	}
	if bytes.ContainsAny(b, lineEnds) {
		a.asks, a.half = false, false
	} else {
		a.half = a.half || a.asks
	}
	return a.typed, b
}

const lineEnds = "\r\n"

// set has keys go to a command.
func (a *agent) set(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.typed, a.asks, a.half = k, false, false
}

// ask notes whether the command whose keys they are waits for input.
func (a *agent) ask(k *keys, asks bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.typed == k {
		a.asks = asks
	}
}

// clear has keys go to the shell again, if they go to the command whose they are.
func (a *agent) clear(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k == nil || a.typed != k {
		return
	}
	if a.asks || a.half {
		a.stray = time.Now().Add(pause)
	}
	a.typed, a.asks, a.half = nil, false, false
}

// task is something that goes on beside its caller.
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

// end lets a task go on for a while, and then ends it. A task that is nil has ended.
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

// lastOutput is how long the last output of a command may take to come, after its outcome was recorded.
const lastOutput = 2 * time.Second

// follow shows the commands of the runs that the terminal is kept for, until ctx ends.
func (t *socket) follow(ctx context.Context) {
	var current *task
	defer func() { current.end(0) }()
	ended := false // what a run that was over had done before the socket was there belongs to the past
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

// unknown ends the socket where it is not known whether a command runs: what is typed for it must not go to the shell.
func (t *socket) unknown(ctx context.Context, runID string, err error) {
	t.Log.WarnContext(ctx, "the run on a terminal cannot be watched", "runId", runID, "error", err)
	t.end(Reason(fault.CodeStoreUnavailable))
}

// followRun shows the commands of a run, one after the other; those of one that is over only where ended says so.
func (t *socket) followRun(ctx context.Context, runID string, ended bool) {
	var current *task
	var typed *keys // for the current command
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
		t.agent.clear(typed) // its outcome is known: what is typed from now on is not for it, though output may follow
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

// replay shows a command that has ended.
func (t *socket) replay(ctx context.Context, runID, actionID string) {
	t.tell(runID, actionID, commandRuns)
	_, _ = t.agent.keeper.Attach(ctx, actionID, 0, printer{screen: t.screen}) // the host may have forgotten it
	t.tell(runID, actionID, commandEnded)
}

// tell tells the pane of a command. What is printed after its end begins on a line of its own there.
func (t *socket) tell(runID, actionID, state string) {
	if state == commandEnded {
		t.screen.ended()
	}
	t.screen.tell(agentState{"agent", runID, actionID, state})
}

// again is how soon a command is looked for again that the run has started and the host does not have: another process
// is about to begin it.
const again = 100 * time.Millisecond

// show shows one command until it has ended, or ctx ends, and gives it what is typed for it.
func (t *socket) show(ctx context.Context, runID, actionID string, typed *keys) {
	typing := begin(ctx, func(ctx context.Context) { t.typeInto(ctx, actionID, typed) })
	t.tell(runID, actionID, commandRuns)
	defer func() {
		t.agent.clear(typed)
		typed.close() // what the command did not take is not for the shell: it may be a password
		typing.end(0)
		t.tell(runID, actionID, commandEnded)
	}()
	asks := keeper.Asks(func(asks bool) {
		t.agent.ask(typed, asks)
		if asks {
			t.tell(runID, actionID, commandAsks)
		} else {
			t.tell(runID, actionID, commandRuns)
		}
	})
	for {
		_, err := t.agent.keeper.Attach(ctx, actionID, 0, printer{screen: t.screen}, keeper.Hold(), asks)
		if !errors.Is(err, keeper.ErrOther) || wait.For(ctx, again) != nil {
			return
		}
	}
}

// typeInto gives a command what its user types, until it has ended.
func (t *socket) typeInto(ctx context.Context, actionID string, typed *keys) {
	b := make([]byte, maxTyped/2)
	for {
		n, err := typed.Read(b)
		if err != nil {
			return
		}
		for {
			err = t.agent.keeper.Input(ctx, actionID, b[:n])
			if !errors.Is(err, keeper.ErrOther) && !tool.IsTransient(err) || wait.For(ctx, again) != nil {
				break // it has them, or never will
			}
		}
		if err != nil {
			return // a command that has ended takes nothing
		}
	}
}
