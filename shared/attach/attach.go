// Package attach carries terminals over WebSockets: what a person types goes to their own shell on the host, or to the
// command that an agent runs there, and what either prints comes back. The shell lives on the host, and so a socket may
// be lost and another may take its place, served by another process.
package attach

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/wait"
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

// Reason says why a socket ended. Beside those that are named here there are the codes of errors.
type Reason string

// The reasons.
const (
	ReasonExited   Reason = "exited"   // the shell has ended
	ReasonNoHome   Reason = "no_home"  // a shell could not be begun, as nothing can be written to the home directory
	ReasonDeleted  Reason = "deleted"  // the terminal was closed, or its host deleted
	ReasonDisabled Reason = "disabled" // the user was shut out
	ReasonTime     Reason = "time"     // a socket's life is over; another one goes on
	ReasonSlow     Reason = "slow"     // nothing was read for too long
	ReasonInvalid  Reason = "invalid"  // a message that is none of the protocol
	reasonGone     Reason = ""         // there is nobody to tell it to
)

// message is one that was received.
type message struct {
	kind websocket.MessageType
	data []byte
}

// socket is one that is open.
type socket struct {
	*Sockets
	times Times
	id    string // of the terminal
	uid   string
	conn  *websocket.Conn

	cancel   context.CancelFunc // ends all that the socket does
	screen   *screen
	received chan message
	ended    chan Reason
	resize   chan keeper.Size
	typed    *keys // for the shell
	agent    agent
	all      sync.WaitGroup
}

// end ends the socket for the reason, unless another one came first.
func (t *socket) end(why Reason) {
	select {
	case t.ended <- why:
	default:
	}
	t.cancel()
}

func (t *socket) serve(ctx, life context.Context, enter Enter) {
	var sending sync.WaitGroup
	t.all.Go(func() { t.receive(ctx) })
	sending.Go(func() { t.screen.send(t.conn, t.times.Write, t.end) })
	why := t.carry(ctx, life, enter)
	if errors.Is(life.Err(), context.DeadlineExceeded) { // which is why the rest failed
		why = ReasonTime
	}
	select {
	case why = <-t.ended: // the same
	default:
	}
	t.cancel()
	t.screen.finish(why)
	sending.Wait()
	if why != reasonGone {
		_ = t.conn.Close(status(why), string(why)) // the other side may be gone
	}
	_ = t.conn.CloseNow() // which ends receive
	t.all.Wait()
}

// carry carries the terminal, and returns why it does so no longer.
func (t *socket) carry(ctx, life context.Context, enter Enter) Reason {
	token, why := t.token(ctx)
	if token == "" {
		return why
	}
	uid, leave, err := enter(ctx, token)
	if err != nil {
		return reasonOf(err)
	}
	defer leave()
	t.uid = uid
	host, size, err := t.read(ctx)
	if err != nil {
		return reasonOf(err)
	}
	t.all.Go(func() { t.watchUser(ctx) })
	t.all.Go(func() { t.watchTerminal(ctx) })
	conn, release, err := t.connect(ctx, host)
	if err != nil {
		return reasonOf(err)
	}
	defer release()
	k, err := keeper.Open(ctx, conn)
	if err != nil {
		return reasonOf(err)
	}
	t.agent.keeper = k
	var working sync.WaitGroup
	defer working.Wait() // before the connection is released
	select {
	case size = <-t.resize: // that of the pane, which is told right behind the token
	default:
	}
	t.screen.tell(ready{"ready", k.Facts.PTY && k.Facts.Home != ""})
	working.Go(func() { t.shell(ctx, conn, k, size) })
	working.Go(func() { t.follow(ctx) })
	working.Go(func() { t.ping(ctx) })
	why = t.handle(ctx, life)
	t.cancel()
	t.typed.close()
	t.screen.finish(why)
	return why
}

// token returns the token of the first message.
func (t *socket) token(ctx context.Context) (string, Reason) {
	late := time.NewTimer(t.times.Auth)
	defer late.Stop()
	select {
	case <-late.C:
		return "", Reason(fault.CodeUnauthenticated)
	case why := <-t.ended:
		return "", why
	case <-ctx.Done():
		return "", reasonGone
	case m := <-t.received:
		var first struct {
			Type  string `json:"type"`
			Token string `json:"token"`
		}
		if m.kind != websocket.MessageText || strictjson.Decode(m.data, &first) != nil || first.Type != "auth" ||
			first.Token == "" {
			return "", Reason(fault.CodeUnauthenticated)
		}
		return first.Token, ""
	}
}

// read returns the terminal's host and size.
func (t *socket) read(ctx context.Context) (*terminal.Host, keeper.Size, error) {
	its, err := terminal.ReadTerminal(ctx, t.Store, t.uid, t.id)
	if err != nil {
		return nil, keeper.Size{}, err
	}
	host, err := terminal.ReadHost(ctx, t.Store, t.uid, its.HostID)
	return &host, keeper.Size{Cols: its.Cols, Rows: its.Rows}, err
}

// connect connects to the host. That it cannot be reached is told after the same time, whatever stands in the way.
func (t *socket) connect(ctx context.Context, host *terminal.Host) (keeper.Conn, func(), error) {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, t.times.Answer)
	defer cancel()
	conn, release, err := t.Hosts.Get(within, host)
	if fault.Is(err, fault.Tool, fault.CodeHostUnreachable) {
		_ = wait.For(ctx, t.times.Answer-time.Since(began)) // the end of the socket is seen by its reader
	}
	return conn, release, err
}

// receive reads messages until the connection ends. It reads to the end, so that the reason can still be told when ctx
// has ended. Beyond the first only what was typed waits for its turn.
func (t *socket) receive(ctx context.Context) {
	for first := true; ; first = false {
		kind, data, err := t.conn.Read(context.Background())
		switch {
		case err != nil:
			t.end(reasonGone)
			return
		case kind == websocket.MessageText && !first:
			if !t.told(data) {
				t.end(ReasonInvalid)
			}
			continue
		}
		select {
		case t.received <- message{kind, data}:
		case <-ctx.Done():
		}
	}
}

// handle passes on what is typed, until the socket ends.
func (t *socket) handle(ctx, life context.Context) Reason {
	for {
		select {
		case why := <-t.ended:
			return why
		case <-life.Done():
			if errors.Is(life.Err(), context.DeadlineExceeded) {
				return ReasonTime
			}
			return reasonGone
		case m := <-t.received:
			t.typing(ctx, m.data)
		}
	}
}

// typing hands keys to the agent's command, if one runs, or else to the shell. Until it is known whether one does they
// wait: they may be a password.
func (t *socket) typing(ctx context.Context, b []byte) {
	select {
	case <-t.agent.known:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return // whether one does may be unknown again
	}
	to, b := t.agent.takes(b)
	if to == nil {
		to = t.typed
	}
	to.put(ctx, b)
}

// told handles a message in text, and reports whether it is one of the protocol.
func (t *socket) told(data []byte) bool {
	var m struct {
		Type string `json:"type"`
		Cols int    `json:"cols"`
		Rows int    `json:"rows"`
	}
	if strictjson.Decode(data, &m) != nil || m.Type != "resize" || m.Cols < 1 || m.Cols > maxSide || m.Rows < 1 ||
		m.Rows > maxSide {
		return false
	}
	select {
	case <-t.resize: // an earlier size that nobody took
	default:
	}
	t.resize <- keeper.Size{Cols: m.Cols, Rows: m.Rows} // this goroutine alone sends
	return true
}

// ping asks the other side whether it is there.
func (t *socket) ping(ctx context.Context) {
	for wait.For(ctx, t.times.Ping) == nil {
		asking, cancel := context.WithTimeout(ctx, t.times.Write)
		err := t.conn.Ping(asking)
		cancel()
		if err != nil && ctx.Err() == nil {
			t.end(ReasonSlow)
			return
		}
	}
}

// watchUser ends the socket when its user is shut out.
func (t *socket) watchUser(ctx context.Context) {
	for d, err := range t.Store.Watch(ctx, document.UserPath(t.uid)) {
		u := run.User{UID: t.uid}
		if err == nil && d.Exists() {
			err = document.Decode(d, &u)
		}
		switch {
		case err != nil: // whether they may go on is not known
			t.end(Reason(fault.CodeStoreUnavailable))
			return
		case u.CheckEnabled() != nil:
			t.end(ReasonDisabled)
			return
		}
	}
}

// watchTerminal ends the socket when its terminal is deleted.
func (t *socket) watchTerminal(ctx context.Context) {
	for d, err := range t.Store.Watch(ctx, document.TerminalPath(t.uid, t.id)) {
		if err != nil {
			t.end(Reason(fault.CodeStoreUnavailable))
			return
		}
		if !d.Exists() {
			t.end(ReasonDeleted)
			return
		}
	}
}

// shell carries the person's shell. Where the host has lost the keeper since it was asked, it gets it again.
func (t *socket) shell(ctx context.Context, conn keeper.Conn, k *keeper.Keeper, size keeper.Size) {
	err := t.oneShell(ctx, k, size)
	if errors.Is(err, keeper.ErrOther) {
		if k, err = keeper.Ask(ctx, conn); err == nil {
			err = t.oneShell(ctx, k, size)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		t.end(ReasonExited)
	case errors.Is(err, keeper.ErrHome):
		t.end(ReasonNoHome)
	default:
		t.end(reasonOf(err))
	}
}

// oneShell attaches to the shell. What is typed once that is over it takes from nobody.
func (t *socket) oneShell(ctx context.Context, k *keeper.Keeper, size keeper.Size) error {
	typing, over := context.WithCancel(ctx)
	defer over()
	return k.Shell(ctx, t.id, size, reader{t.typed, typing}, printer{t.screen, true}, t.resize)
}

// reasonOf returns the reason that an error is: its code.
func reasonOf(err error) Reason { return Reason(fault.As(err).Code) }

// status returns the WebSocket's own status for the reason.
func status(why Reason) websocket.StatusCode {
	switch why {
	case ReasonExited, ReasonDeleted, ReasonTime:
		return websocket.StatusNormalClosure
	case Reason(fault.CodeInternal), Reason(fault.CodeStoreUnavailable):
		return websocket.StatusInternalError
	}
	return websocket.StatusPolicyViolation
}
