package attach

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// message is a received or queued message.
type message struct {
	kind websocket.MessageType
	data []byte
}

// socket is an open socket.
type socket struct {
	*Sockets
	times Times
	id    string // the terminal's
	uid   string
	conn  *websocket.Conn

	cancel   context.CancelFunc // ends everything that the socket does
	screen   *screen
	received chan message
	ended    chan Reason
	resize   chan supervisor.Size
	typed    *keys // for the shell
	agent    agent
	all      sync.WaitGroup
}

// end ends the socket for this reason, unless there already is one.
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
	if errors.Is(life.Err(), context.DeadlineExceeded) { // the cause of any other failure
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
	_ = t.conn.CloseNow() // this ends receive
	t.all.Wait()
}

// carry connects the terminal to its host, and returns the reason when the connection ends.
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
	k, err := supervisor.Open(ctx, conn)
	if err != nil {
		return reasonOf(err)
	}
	t.agent.keeper = k
	var working sync.WaitGroup
	defer working.Wait() // before the connection is released
	select {
	case size = <-t.resize: // the terminal's size, sent right after the token
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

// token returns the token in the first message.
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
func (t *socket) read(ctx context.Context) (*terminal.Host, supervisor.Size, error) {
	its, err := terminal.ReadTerminal(ctx, t.Store, t.uid, t.id)
	if err != nil {
		return nil, supervisor.Size{}, err
	}
	host, err := terminal.ReadHost(ctx, t.Store, t.uid, its.HostID)
	return &host, supervisor.Size{Cols: its.Cols, Rows: its.Rows}, err
}

// connect connects to the host. An unreachable host is always reported after the same time, whatever the cause.
func (t *socket) connect(ctx context.Context, host *terminal.Host) (supervisor.Conn, func(), error) {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, t.times.Answer)
	defer cancel()
	conn, release, err := t.Hosts.Get(within, host)
	if fault.Is(err, fault.Tool, fault.CodeHostUnreachable) {
		_ = wait.For(ctx, t.times.Answer-time.Since(began)) // the reader sees the end of the socket
	}
	return conn, release, err
}

// receive reads messages until the connection ends, so that a reason can still be sent after ctx has ended. After the
// first message, only typed keys are queued.
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

// handle passes on typed keys until the socket ends.
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

// typing sends keys to the agent's command if one runs, and otherwise to the shell. Until it is known whether a command
// runs, the keys wait, because they may be a password.
func (t *socket) typing(ctx context.Context, b []byte) {
	select {
	case <-t.agent.known:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return // whether a command runs may be unknown again
	}
	to, b := t.agent.takes(b)
	if to == nil {
		to = t.typed
	}
	to.put(ctx, b)
}

// told handles a text message from the client, and reports whether it follows the protocol.
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
	case <-t.resize: // an earlier size that was not read
	default:
	}
	t.resize <- supervisor.Size{Cols: m.Cols, Rows: m.Rows} // only this goroutine sends
	return true
}
