// Package attach connects a person's terminal to a host over a WebSocket. The person's keys go to their own shell on
// the host, or to the command that an agent runs there, and the output of both is sent back. The shell runs on the
// host: if a socket is lost, another socket can continue, even at another process.
package attach

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// Limits of a socket.
const (
	maxFrame  = 64 << 10  // bytes of one message, in either direction
	maxUnsent = 256 << 10 // bytes that wait for a slow reader; beyond that, output of the host is not read
	maxTyped  = 64 << 10  // bytes that wait for the host; beyond that, the socket is not read
	maxSide   = 1000      // columns or rows
)

// Times are the timeouts of a socket. A zero field stands for the default.
type Times struct {
	Auth   time.Duration // 5 s: time to receive the first message
	Socket time.Duration // 55 min: lifetime of a socket, within the hour that a function may run
	Answer time.Duration // 10 s: time after which an unreachable host is reported
	Write  time.Duration // 30 s: a reader that reads nothing for this long is dropped
	Ping   time.Duration // 20 s: interval between pings
	Pause  time.Duration // 1.5 s: maximum time between two keys of one answer
}

func (t Times) orDefaults() Times {
	for d, def := range map[*time.Duration]time.Duration{&t.Auth: 5 * time.Second, &t.Socket: 55 * time.Minute,
		&t.Answer: 10 * time.Second, &t.Write: 30 * time.Second, &t.Ping: 20 * time.Second,
		&t.Pause: 1500 * time.Millisecond} {
		if *d == 0 {
			*d = def
		}
	}
	return t
}

// Hosts opens connections to hosts (shared/terminal/remote).
type Hosts interface {
	Get(ctx context.Context, h *terminal.Host) (conn supervisor.Conn, release func(), err error)
}

// Runs reports the runs on terminals (shared/engine/loop).
type Runs interface {
	// OnTerminal returns the ID of the run that last reserved the user's terminal, or "" if there was none, and then
	// the ID of each later run.
	OnTerminal(ctx context.Context, uid, terminalID string) iter.Seq2[string, error]
	// UnderWay returns the IDs of the calls that the run has started since the previous result, in their order. The
	// last element is the call in progress, or "" if there is none. The first result comes at once, and further ones
	// after each change until the run has ended. The first result includes calls that have already ended. If the run
	// itself has ended, it includes them only if ended is true.
	UnderWay(ctx context.Context, uid, runID string, ended bool) iter.Seq2[[]string, error]
}

// Sockets serves sockets. All fields except Times are required.
type Sockets struct {
	Store store.Store
	Hosts Hosts
	Runs  Runs
	Log   *slog.Logger
	Times Times
}

// Enter checks a token and returns its user, if they may attach. leave is called when the socket has ended.
type Enter = func(ctx context.Context, token string) (uid string, leave func(), err error)

// Serve upgrades the request and carries the terminal until the socket ends. The first message must contain the user's
// token, because a token in a URL would be logged. The caller must have checked the request's origin.
func (s *Sockets) Serve(w http.ResponseWriter, r *http.Request, terminalID string, enter Enter) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // the origin was checked
	if err != nil {
		return // Accept has answered the request
	}
	defer c.CloseNow()
	c.SetReadLimit(maxFrame)
	times := s.Times.orDefaults()
	life, over := context.WithTimeout(r.Context(), times.Socket)
	defer over()
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	t := &socket{Sockets: s, times: times, id: terminalID, conn: c, screen: newScreen(), cancel: cancel,
		received: make(chan message), ended: make(chan Reason, 1), resize: make(chan supervisor.Size, 1),
		typed: newKeys(), agent: agent{pause: times.Pause, known: make(chan struct{})}}
	t.serve(ctx, life, enter)
}
