package attach

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/keeper"
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
	mu     sync.Mutex
	typed  *keys // nil where none runs
}

// keys returns where keys for the command go, or nil where none runs.
func (a *agent) keys() *keys {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.typed
}

func (a *agent) set(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.typed = k
}

// clear has keys go to the shell again, if they go to the command whose they are.
func (a *agent) clear(k *keys) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.typed == k {
		a.typed = nil
	}
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
	fromItsStart := false // the terminal shows what was done before the socket was there already
	for runID, err := range t.Runs.OnTerminal(ctx, t.uid, t.id) {
		if err != nil {
			t.Log.WarnContext(ctx, "the run on a terminal cannot be watched", "error", err)
			return // the person's shell goes on
		}
		current.end(lastOutput)
		current = nil
		if runID != "" {
			ended := fromItsStart
			current = begin(ctx, func(ctx context.Context) { t.followRun(ctx, runID, ended) })
		}
		fromItsStart = true
	}
}

// followRun shows the commands of a run, one after the other; those that had ended too, where ended says so.
func (t *socket) followRun(ctx context.Context, runID string, ended bool) {
	var current *task
	var typed *keys // for the current command
	defer func() {
		t.agent.clear(typed)
		if ctx.Err() != nil {
			current.end(0)
		}
		current.end(lastOutput)
	}()
	for actionID, err := range t.Runs.UnderWay(ctx, t.uid, runID, ended) {
		if err != nil {
			t.Log.WarnContext(ctx, "a run on a terminal cannot be watched", "runId", runID, "error", err)
			return
		}
		t.agent.clear(typed) // its outcome is known: what is typed from now on is not for it, though output may follow
		current.end(lastOutput)
		current = nil
		if actionID != "" {
			typed = newKeys()
			t.agent.set(typed)
			current = begin(ctx, func(ctx context.Context) { t.show(ctx, runID, actionID, typed) })
		}
	}
}

// again is how soon a command is looked for again that the run has started and the host does not have: another process
// is about to begin it.
const again = 100 * time.Millisecond

// show shows one command until it has ended, or ctx ends, and gives it what is typed for it.
func (t *socket) show(ctx context.Context, runID, actionID string, typed *keys) {
	tell := func(state string) { t.screen.tell(agentState{"agent", runID, actionID, state}) }
	typing := begin(ctx, func(ctx context.Context) { t.typeInto(ctx, actionID, typed) })
	tell(commandRuns)
	defer func() {
		t.agent.clear(typed)
		typed.close() // what the command did not take is not for the shell: it may be a password
		typing.end(0)
		tell(commandEnded)
	}()
	asks := keeper.Asks(func(asks bool) {
		if asks {
			tell(commandAsks)
		} else {
			tell(commandRuns)
		}
	})
	for {
		_, err := t.agent.keeper.Attach(ctx, actionID, 0, t.screen, keeper.Hold(), asks)
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
		for err = t.agent.keeper.Input(ctx, actionID, b[:n]); errors.Is(err, keeper.ErrOther); {
			if wait.For(ctx, again) != nil {
				return
			}
			err = t.agent.keeper.Input(ctx, actionID, b[:n])
		}
		if err != nil {
			return // a command that has ended takes nothing
		}
	}
}
