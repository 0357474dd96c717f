// Package chaos is a page of the local server that breaks it while it runs, and shows the result: the process is killed
// around an effect, a message is lost or repeated, the store is slow, and someone who can write to the store forges a
// decision, changes the audit or puts back an older copy. Only the local server links it.
//
// The page starts runs and decides with the public API, as any client. This package makes only the faults, with the
// wrappers of the store and the queue that the tests use (shared/testkit/faulty).
package chaos

import (
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/static"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

//go:embed site
var site embed.FS

// Panel makes the faults.
type Panel struct {
	supervise func() error // restarts this server under a process that starts it again after each kill; nil: cannot
	kill      func()       // kills this process as kill -9 does, and has it started again

	store store.Store // without faults
	queue queue.Queue
	loop  func() *loop.Loop

	losing bool // the queue can lose messages

	kills atomic.Pointer[killing]
	loses atomic.Pointer[string] // ID of the run whose next message is lost
	slow  atomic.Pointer[slowness]

	mu     sync.Mutex
	copies map[string][]store.Doc // by run ID: older copies of its documents
	newer  map[string][]store.Doc // the documents that the copies replaced
	honest map[string]store.Doc   // by run ID: the audit entry that was changed
}

// killing says around which commit of a run the process is killed.
type killing struct {
	run   string
	after bool // after the intent; otherwise before the outcome
}

type slowness struct {
	each  time.Duration
	until time.Time
}

// New returns a panel. supervise restarts the server under a supervisor; kill kills this process. Both are nil if this
// system or this start of the server cannot do it. current returns the loop, once it exists.
func New(supervise func() error, kill func(), current func() *loop.Loop) *Panel {
	return &Panel{supervise: supervise, kill: kill, loop: current, copies: map[string][]store.Doc{},
		newer: map[string][]store.Doc{}, honest: map[string]store.Doc{}}
}

// Wrap puts the faults between the engine and its store and queue.
func (p *Panel) Wrap(env *unit.Env) {
	p.store, p.queue = env.Store, env.Queue
	wrapped := faulty.Wrap(env.Store, faulty.Commits(p.commit))
	env.Store = wrapped
	if pinner, ok := p.store.(store.Pinner); ok {
		env.Store = pinned{wrapped, pinner}
	}
	if w, ok := env.Queue.(*embedded.Worker); ok {
		env.Queue, p.losing = &losing{w, p}, true
	}
}

// pinned is a wrapped store that still notices older copies of itself.
type pinned struct {
	*faulty.Store
	store.Pinner
}

// losing is a queue that can lose a message.
type losing struct {
	*embedded.Worker
	p *Panel
}

// Resume implements [queue.Queue].
func (l *losing) Resume(ctx context.Context, m queue.Message) error {
	if lost := l.p.loses.Load(); lost != nil && *lost == m.RunID && l.p.loses.CompareAndSwap(lost, nil) {
		return nil
	}
	return l.Worker.Resume(ctx, m)
}

// commit delays a commit, or kills the process before or after it.
func (p *Panel) commit(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	if s := p.slow.Load(); s != nil && time.Now().Before(s.until) {
		time.Sleep(s.each) // the store ignores the end of the request, as a slow disk does
	}
	k := p.kills.Load()
	switch has := k != nil && k.around(c.Writes); {
	case has && k.after:
		if err := next(ctx); err != nil {
			return err
		}
		p.kill()
	case has:
		p.kill()
	}
	return next(ctx)
}

// Handler serves the page at /chaos, and its faults at /dev/chaos.
func (p *Panel) Handler() http.Handler {
	files, err := fs.Sub(site, "site")
	if err != nil {
		panic(err) // unreachable: the folder is embedded
	}
	mux := http.NewServeMux()
	mux.Handle("/chaos", static.Files{FS: files, Policy: static.Policy}.Handler("/chaos"))
	mux.Handle("/chaos/", static.Files{FS: files, Policy: static.Policy}.Handler("/chaos"))
	mux.HandleFunc("GET /dev/chaos", p.about)
	mux.HandleFunc("POST /dev/chaos", p.serve)
	return http.NewCrossOriginProtection().Handler(mux)
}

// about responds with the process, and with the problems in the audit of the run in the query.
func (p *Panel) about(w http.ResponseWriter, r *http.Request) {
	out := map[string]any{"pid": os.Getpid(), "kills": p.kill != nil, "supervises": p.supervise != nil}
	if id := r.URL.Query().Get("runId"); id != "" {
		said, err := p.verify(r.Context(), id)
		if err != nil {
			said = []string{err.Error()}
		}
		out["verify"] = said
	}
	write(w, http.StatusOK, out)
}

// A request names a fault and its subject.
type request struct {
	Fault      string `json:"fault"`
	RunID      string `json:"runId"`
	ApprovalID string `json:"approvalId"`
	UID        string `json:"uid"`
	Recipient  string `json:"recipient"`
	Millis     int    `json:"ms"`
}

func (p *Panel) serve(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&in); err != nil {
		write(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	did, then, err := p.do(r.Context(), in)
	if err != nil {
		write(w, http.StatusConflict, map[string]string{"error": err.Error()})
		return
	}
	write(w, http.StatusOK, map[string]string{"did": did})
	if then != nil { // the process ends, so the answer must be on its way
		_ = http.NewResponseController(w).Flush()
		go then()
	}
}

func write(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(b) // a disconnected client is not an error
}
