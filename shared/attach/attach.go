// Package attach carries terminals over WebSockets: what a person types goes to their own shell on the host, or to the
// command that an agent runs there, and what either prints comes back. The shell lives on the host, and so a socket may
// be lost and another may take its place, served by another process.
package attach

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/terminal"
)

// The bounds of a socket.
const (
	maxFrame  = 64 << 10  // bytes of one message, either way
	maxUnsent = 256 << 10 // bytes that wait for a slow reader; beyond them the host's output is not read
	maxTyped  = 64 << 10  // bytes that wait for the host to take them; beyond them the socket is not read
	maxSide   = 1000      // columns or rows
)

// Times are how long what may take. A zero stands for the default.
type Times struct {
	Auth   time.Duration // 5 s: until the first message
	Socket time.Duration // 55 min: a socket's life, within the hour that a function may take
	Answer time.Duration // 10 s: after which a host that cannot be reached is told of
	Write  time.Duration // 30 s: a reader that takes nothing for so long is dropped
	Ping   time.Duration // 20 s: how often it is asked whether it is there
}

func (t Times) orDefaults() Times {
	for d, def := range map[*time.Duration]time.Duration{&t.Auth: 5 * time.Second, &t.Socket: 55 * time.Minute,
		&t.Answer: 10 * time.Second, &t.Write: 30 * time.Second, &t.Ping: 20 * time.Second} {
		if *d == 0 {
			*d = def
		}
	}
	return t
}

// Hosts opens connections to hosts (shared/remote).
type Hosts interface {
	Get(ctx context.Context, h *terminal.Host) (conn keeper.Conn, release func(), err error)
}

// Runs tells of the runs on terminals (shared/loop).
type Runs interface {
	// OnTerminal returns the id of the run that the user's terminal is kept for, and of each one after it. It is empty
	// where there is none.
	OnTerminal(ctx context.Context, uid, terminalID string) iter.Seq2[string, error]
	// UnderWay returns the ids of the calls of the run that were begun since it told last, in their order and however
	// short they were, and as the last one the id of that which is carried out now, or "" where none is: at first, and
	// whenever this changes, until the run has ended. What was done when it was asked is among the first, but of a run
	// that had ended by then only where ended says so.
	UnderWay(ctx context.Context, uid, runID string, ended bool) iter.Seq2[[]string, error]
}

// Sockets serves sockets. Its fields are required, except Times.
type Sockets struct {
	Store store.Store
	Hosts Hosts
	Runs  Runs
	Log   *slog.Logger
	Times Times
}

// Enter returns the user whose token it is, if they may attach; leave is called when the socket has ended.
type Enter = func(ctx context.Context, token string) (uid string, leave func(), err error)

// Serve upgrades the request and carries the terminal until the socket ends. The first message must have the user's
// token, because a token in a URL would be logged. The caller has checked the request's origin.
func (s *Sockets) Serve(w http.ResponseWriter, r *http.Request, terminalID string, enter Enter) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the origin was checked
	if err != nil {
		return // it was answered
	}
	defer c.CloseNow()
	c.SetReadLimit(maxFrame)
	times := s.Times.orDefaults()
	life, over := context.WithTimeout(r.Context(), times.Socket)
	defer over()
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	t := &socket{Sockets: s, times: times, id: terminalID, conn: c, screen: newScreen(), cancel: cancel,
		received: make(chan message), ended: make(chan Reason, 1), resize: make(chan keeper.Size, 1),
		typed: newKeys(), agent: agent{known: make(chan struct{})}}
	t.serve(ctx, life, enter)
}
