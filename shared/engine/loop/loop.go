package loop

import (
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// LeastCall is the minimum timeout of a function that makes a step of a run.
const LeastCall = 30 * time.Second

// Loop advances runs, each according to its agent.
type Loop struct {
	unit.Env
	sharded  *atomic.Bool  // set once GiveShards has finished
	measured *atomic.Int64 // time of the last measureWaiting, in Unix seconds
}

// New returns a loop. Optional fields of env that are not set get their defaults.
func New(env unit.Env) *Loop {
	l := &Loop{Env: *env.Init(), sharded: new(atomic.Bool), measured: new(atomic.Int64)}
	l.TakeBack = takingBack(l)
	return l
}

// ThreadClosed reports whether the error means that a thread takes no more messages, because it is full or deleted.
func ThreadClosed(err error) bool {
	return fault.Is(err, fault.Auth, fault.CodeNotFound) || fault.Is(err, fault.Policy, CodeThreadFull)
}

// CodeThreadFull is the error code for a thread that takes no more messages.
const CodeThreadFull fault.Code = "thread_full"
