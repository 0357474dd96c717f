package crash

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// points are the places where a worker can die: before and after each call that leaves the process. They wrap the
// engine's store, queue, model and accounts, and the response to each request. They wrap them from outside, so no
// deployed program contains them.
type points struct {
	mu     sync.Mutex
	seen   []string
	strike int // interrupt at this point; 0: never
	how    func(name string)

	// Each commit holds committing for reading. A process that is paused in the middle of a commit would keep the
	// embedded store's file locked, and no other process could take over.
	committing sync.RWMutex
}

// arm restarts the count, and interrupts at the n-th point. With 0 it only counts.
func (p *points) arm(n int, how func(name string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.strike, p.how = nil, n, how
}

// names returns the points that were passed since arm.
func (p *points) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

// pass marks that the worker passes a point.
func (p *points) pass(name string) {
	p.mu.Lock()
	p.seen = append(p.seen, name)
	var how func(string)
	if len(p.seen) == p.strike {
		how = p.how
	}
	p.mu.Unlock()
	if how != nil {
		how(name)
	}
}

// around passes one point immediately, and another one when after is called.
func (p *points) around(name string) (after func()) {
	p.pass("before " + name)
	return func() { p.pass("after " + name) }
}

// stored puts points around a call of the store.
func (p *points) stored(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	defer p.around(called(c))()
	return next(ctx)
}

func called(c *faulty.Call) string {
	switch c.Method {
	case faulty.Get:
		return "read of " + collection(c.Paths[0])
	case faulty.Watch:
		return "news of " + collection(c.Paths[0])
	case faulty.Query:
		return "query of " + c.Query.Collection
	default:
		return "commit of " + saying(c.Writes)
	}
}

func collection(path string) string {
	name, _, _ := strings.Cut(path, "/")
	return name
}

// saying describes a commit by the newest event of its run that is not only a change of status.
func saying(writes []store.Write) string {
	for _, w := range writes {
		var r run.Run
		if collection(w.Doc.Path) != "runs" || document.Decode(w.Doc, &r) != nil {
			continue
		}
		for _, e := range slices.Backward(r.Log.Tail) {
			if e.Type != run.RunStatusChange {
				return string(e.Type)
			}
		}
	}
	return collection(writes[0].Doc.Path)
}

// elsewhere reports commits of other processes.
type elsewhere interface {
	Elsewhere(ctx context.Context) <-chan struct{}
}

// paused is an embedded store that finishes its commits before the process is paused.
type paused struct {
	*faulty.Store
	elsewhere
}

func (p *points) paused(st store.Store) store.Store {
	return paused{faulty.Wrap(st, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
		if c.Method == faulty.Commit {
			p.committing.RLock()
			defer p.committing.RUnlock()
		}
		return next(ctx)
	}), st.(elsewhere)}
}

type struckQueue struct {
	queue.Queue
	*points
}

func (q struckQueue) Resume(ctx context.Context, m queue.Message) error {
	defer q.around("publish")()
	return q.Queue.Resume(ctx, m)
}

type struckModel struct {
	model.Model
	*points
}

func (m struckModel) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	defer m.around("model")()
	return m.Model.Generate(ctx, req, delta)
}

// struckCalls puts points around the calls to providers: Gmail, Calendar, the token endpoint of linked accounts, the
// notes, and the MCP server.
type struckCalls struct {
	next http.RoundTripper
	*points
}

func (c struckCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	if !provided.MatchString(r.URL.Path) {
		// The model has separate points. The keys of the sign-in are fetched before anything else happens.
		return c.next.RoundTrip(r)
	}
	defer c.around("call " + r.Method + " " + shape(r.URL.Path))()
	return c.next.RoundTrip(r)
}

var provided = regexp.MustCompile(`^/(google|accounts|notes|desk|api|login)\b`)

// shape returns a path without the parts that differ between calls.
func shape(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, p := range parts {
		if len(p) > 14 {
			parts[i] = "ID"
		}
	}
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// answers passes a point after a request was handled and before the response is sent.
func (p *points) answers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		p.pass("before the answer")
	})
}

// struckHosts puts points around the connections to hosts, and around the exchanges on them.
type struckHosts struct {
	app.Hosts
	*points
}

// Get implements [command.Hosts].
func (h struckHosts) Get(ctx context.Context, to *terminal.Host) (supervisor.Conn, func(), error) {
	defer h.around("connection")()
	c, release, err := h.Hosts.Get(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	return struckConn{c.(remembering), h.points}, release, nil
}

type struckConn struct {
	remembering
	*points
}

type remembering interface {
	supervisor.Conn
	supervisor.Memory
}

// heard is the number of points in a host's answer to one command line: after the record was created, in the middle of
// the output, and after the end.
const heard = 5

// Exec implements [supervisor.Conn].
func (c struckConn) Exec(ctx context.Context, x supervisor.Exec) (int, error) {
	verb := "install"
	if found := verbs.FindStringSubmatch(x.Line); found != nil {
		verb = found[1]
	}
	defer c.around(verb)()
	if x.Stdout != nil {
		x.Stdout = &struckOutput{Writer: x.Stdout, points: c.points, name: "output of " + verb}
	}
	return c.remembering.Exec(ctx, x)
}

var verbs = regexp.MustCompile(`/keeper-[0-9a-f]+" ([a-z]+)`)

type struckOutput struct {
	io.Writer
	*points
	name string
	n    int
}

func (o *struckOutput) Write(b []byte) (int, error) {
	if o.n++; o.n <= heard {
		o.pass("before " + o.name)
	}
	return o.Writer.Write(b)
}
