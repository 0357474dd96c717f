// Package quota divides the project's quota of a model, or of a service such as Gmail, among all instances and users.
// The service counts requests and tokens a minute for the whole project. Without a shared count, every instance would
// learn only from refused requests that the quota is used up.
//
// One document has the calls of the present minute and the turns of the runs that wait ([calendar]). An instance takes
// a slice of the minute for its next calls, so most calls need no round trip. It writes at most once a second, and the
// calls that ask meanwhile share the next write. A slice ends with its minute, so a crash loses nothing after it.
// Minutes are those of the store's clock; a local clock only measures how much of a minute is left.
//
// A budget spares the service refused requests. It is not a security check: if the store fails, calls are made without
// it. Every caller must expect the service to refuse a request nevertheless.
package quota

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Limits are the quota of each model, or of the service, in a minute. Zero is no limit.
type Limits struct {
	Requests int
	Tokens   int // of prompts, as Gemini counts them; the units of a service
}

// Config configures a [Budget].
type Config struct {
	Store  store.Store
	Limits Limits
	Path   func(name string) string // of the shared document; nil: document.QuotaPath
	Log    *slog.Logger             // nil: nothing is logged

	Now    func() time.Time                           // nil: time.Now
	Sleep  func(context.Context, time.Duration) error // nil: a timer
	Random func() float64                             // in [0, 1); nil: random
}

// A Budget is one instance's view of the quota. It is safe for concurrent use. A nil Budget has no limit.
type Budget struct {
	cfg    Config
	mu     sync.Mutex
	models map[string]*share
}

// New returns a Budget, or nil if there are no limits.
func New(cfg Config) *Budget {
	if cfg.Limits == (Limits{}) {
		return nil
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Path == nil {
		cfg.Path = document.QuotaPath
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Sleep == nil {
		cfg.Sleep = wait.For
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	return &Budget{cfg: cfg, models: map[string]*share{}}
}

// A Call is a call of a model or service that needs its part of the quota.
type Call struct {
	Model, UID string // the model, or the service
	Tokens     int    // an estimate for the prompt; the units of a service
	Waited     bool   // the run has waited for this call
	Holds      bool   // the caller can wait a few seconds in Take
	Books      bool   // the run can wait until its turn comes
}

// shortWait is the longest wait within [Budget.Take]. A run that waits without a process is woken once a minute.
const shortWait = 10 * time.Second

// early is how long before its turn a run wakes. Sweeps begin with minutes, as turns do, and a run that is due just
// after a sweep waits for the next one.
const early = 2 * time.Second

// ErrUsedUp means that the quota of the minute is used up. The error of [Budget.Take] has the time to wait. If the call
// books, the run's turn comes then, and a later call can lose it.
var ErrUsedUp = errors.New("quota: the quota of this minute is used up")

var usedUp = fault.New(fault.Model, model.CodeQuota, "The project's model quota is used up for now.")

// Take returns nil if the call may be made now. Otherwise it returns a ModelError with the code quota and ErrUsedUp as
// its cause, or the error of a context that has ended.
func (b *Budget) Take(ctx context.Context, c Call) error {
	if b == nil {
		return nil
	}
	a := ask{user: userOf(c.UID), cost: b.cfg.Limits.cost(c.Tokens), waited: c.Waited, books: c.Books}
	for {
		rest, err := b.of(c.Model).take(ctx, a)
		switch {
		case err != nil:
			return model.FromContext(ctx)
		case rest == 0:
			return nil
		case !c.Holds || rest > shortWait || !b.hasTime(ctx, rest):
			return usedUp.After(max(rest-early, rest/2)).Because(ErrUsedUp)
		}
		if b.cfg.Sleep(ctx, rest) != nil {
			return model.FromContext(ctx)
		}
		a.waited = a.books
	}
}

// hasTime reports whether ctx does not end within d.
func (b *Budget) hasTime(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || b.cfg.Now().Add(d).Before(deadline)
}

// of returns this instance's share of the named model's quota.
func (b *Budget) of(name string) *share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.models[name]
	if s == nil {
		s = newShare(b.cfg, name)
		b.models[name] = s
	}
	return s
}

// cost returns the part of a minute's quota that a request takes, in units. A request that is larger than the quota
// takes a whole minute.
func (l Limits) cost(tokens int) int64 {
	cost := int64(1)
	if l.Requests > 0 {
		cost = max(cost, whole/int64(l.Requests))
	}
	if l.Tokens > 0 {
		cost = max(cost, int64(float64(tokens)/float64(l.Tokens)*whole))
	}
	return min(cost, whole)
}

// userOf returns the number of a user.
func userOf(uid string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid))
	return h.Sum32()
}
