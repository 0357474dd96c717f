package check_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// socket simulates a terminal's WebSocket. After the first frame, which has the token, it sends ready, the earlier
// output of the terminal, and the script's frames.
func (f *fakeAPI) socket(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil) // this checks the origin
	if err != nil {
		return
	}
	defer c.CloseNow()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var auth struct{ Type, Token string }
	if _, first, err := c.Read(ctx); err != nil || json.Unmarshal(first, &auth) != nil || auth.Type != "auth" ||
		auth.Token == "" {
		c.Close(websocket.StatusPolicyViolation, "the first frame has to be the token's")
		return
	}
	go f.hear(ctx, cancel, c, r.URL.Path)
	f.untilReady(ctx, r.URL.Path)
	if c.Write(ctx, websocket.MessageText, []byte(`{"type":"ready"}`)) != nil {
		return
	}
	f.say(ctx, c, r.URL.Path)
}

// hear records the frames of the console.
func (f *fakeAPI) hear(ctx context.Context, cancel func(), c *websocket.Conn, path string) {
	defer func() {
		cancel()
		f.wake()
	}()
	for {
		f.untilHeard(path)
		kind, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		s := sent{Method: "SOCKET", Path: path, Data: data}
		if kind == websocket.MessageText {
			s.Text, s.Data = string(data), nil
		}
		f.mu.Lock()
		f.asked = append(f.asked, s)
		f.mu.Unlock()
	}
}

// untilHeard waits while the script makes the path deaf, like the other end of a broken line.
func (f *fakeAPI) untilHeard(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.deaf[path] {
		f.changed.Wait()
	}
}

// untilReady waits while the script makes the path late, like a server that is still connecting to its host.
func (f *fakeAPI) untilReady(ctx context.Context, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.late[path] && ctx.Err() == nil {
		f.changed.Wait()
	}
}

// say sends all frames from the first one, as a host repeats the output of its terminal.
func (f *fakeAPI) say(ctx context.Context, c *websocket.Conn, path string) {
	for i := 0; ; i++ {
		f.mu.Lock()
		for len(f.sockets[path]) <= i && ctx.Err() == nil {
			f.changed.Wait()
		}
		if ctx.Err() != nil {
			f.mu.Unlock()
			return
		}
		x := f.sockets[path][i]
		if x.Close || x.Once || strings.Contains(x.Text, `"closed"`) {
			f.sockets[path] = append(f.sockets[path][:i:i], f.sockets[path][i+1:]...)
			i--
		}
		f.mu.Unlock()
		switch {
		case x.Close:
			return
		case x.Text != "":
			_ = c.Write(ctx, websocket.MessageText, []byte(x.Text)) // the next read notices
		default:
			_ = c.Write(ctx, websocket.MessageBinary, x.Data)
		}
	}
}
