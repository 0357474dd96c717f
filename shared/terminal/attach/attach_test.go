package attach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

const (
	hostID     = "hc2ltxhdr4vyzlvh5qhrrz5cfe"
	terminalID = hostID + "-ox4y2xhvxkqdgbmpsx7ujpeb7q"
)

// world is a host, a user with a terminal on it, and a server of sockets.
type world struct {
	t       testing.TB
	host    *sshd.Server
	store   store.Store
	pool    *remote.Pool
	runs    *runs
	sockets *Sockets
	url     string
	serving sync.WaitGroup
}

func newWorld(t testing.TB, host *sshd.Server, times Times) *world {
	t.Helper()
	w := &world{t: t, host: host, store: memory.New(time.Now), runs: &runs{}}
	w.pool = remote.NewPool(&net.Dialer{}, remote.Times{})
	w.sockets = &Sockets{Store: w.store, Hosts: w, Runs: w.runs, Log: slog.New(slog.DiscardHandler), Times: times}
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.serving.Add(1)
		defer w.serving.Done()
		w.sockets.Serve(rw, r, strings.TrimPrefix(r.URL.Path, "/"), w.enter)
	}))
	w.url = s.URL
	t.Cleanup(func() {
		s.Close()
		w.serving.Wait()
		if err := errors.Join(w.pool.Close(), w.store.Close()); err != nil {
			t.Error(err)
		}
	})
	w.add("ana", hostID, terminalID)
	return w
}

// add adds a user's host and a terminal on it.
func (w *world) add(uid, hostID, terminalID string) {
	w.t.Helper()
	h := w.host.Host()
	h.ID, h.UID = hostID, uid
	w.put(document.HostPath(uid, hostID), h)
	w.put(document.TerminalPath(uid, terminalID), terminal.Terminal{ID: terminalID, UID: uid, HostID: hostID, Cols: 80,
		Rows: 24})
}

func (w *world) put(path string, v any) {
	w.t.Helper()
	data, err := strictjson.Marshal(v)
	if err != nil {
		w.t.Fatal(err)
	}
	docs, err := w.store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	write := store.Create(path, nil, data)
	if docs[0].Exists() {
		write = store.Update(path, docs[0].Version, nil, data)
	}
	if _, err := w.store.Commit(w.t.Context(), write); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) Get(ctx context.Context, h *terminal.Host) (supervisor.Conn, func(), error) {
	return w.pool.Get(ctx, h, func(context.Context) ([]byte, error) { return w.host.Key, nil })
}

// enter accepts the token "token-" and a user's ID for that user.
func (w *world) enter(_ context.Context, token string) (string, func(), error) {
	uid, ok := strings.CutPrefix(token, "token-")
	if !ok {
		return "", nil, fault.New(fault.Auth, fault.CodeUnauthenticated, "no")
	}
	return uid, func() {}, nil
}

// runs simulates the runs on all terminals: one at most.
type runs struct {
	mu      sync.Mutex
	run     string
	command string
	done    []string      // the earlier commands
	late    time.Duration // the delay until the run is known
	failed  error
	changed chan struct{}
}

func (r *runs) set(run, command string) {
	r.change(func() { r.run, r.command = run, command })
}

func (r *runs) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *runs) OnTerminal(ctx context.Context, _, _ string) iter.Seq2[string, error] {
	r.mu.Lock()
	late := r.late
	r.mu.Unlock()
	_ = wait.For(ctx, late) // ctx also ends the watch
	return r.watch(ctx, func() string { return r.run })
}

func (r *runs) UnderWay(ctx context.Context, _, _ string, _ bool) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		r.mu.Lock()
		before := r.done
		r.mu.Unlock()
		for id, err := range r.watch(ctx, func() string { return r.command }) {
			if !yield(append(slices.Clip(before), id), err) {
				return
			}
			before = nil
		}
	}
}

func (r *runs) watch(ctx context.Context, of func() string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last, first := "", true
		for ctx.Err() == nil {
			r.mu.Lock()
			now := of()
			if r.changed == nil {
				r.changed = make(chan struct{})
			}
			changed, failed := r.changed, r.failed
			r.mu.Unlock()
			if failed != nil {
				yield("", failed)
				return
			}
			if first || now != last {
				if !yield(now, nil) {
					return
				}
			}
			last, first = now, false
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// client is a person's side of a socket.
type client struct {
	t      testing.TB
	conn   *websocket.Conn
	screen strings.Builder
	told   []string
}

func (w *world) dial(terminalID string) *client {
	w.t.Helper()
	conn, _, err := websocket.Dial(w.t.Context(), w.url+"/"+terminalID, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	return &client{t: w.t, conn: conn}
}

// attach attaches to the terminal as the user.
func (w *world) attach(uid, terminalID string) *client {
	w.t.Helper()
	c := w.dial(terminalID)
	c.say(`{"type":"auth","token":"token-` + uid + `"}`)
	return c
}

func (c *client) say(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) types(keys string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageBinary, []byte(keys)); err != nil {
		c.t.Fatal(err)
	}
}

// read reads one message, and reports whether it got one.
func (c *client) read() bool {
	ctx, cancel := context.WithTimeout(context.Background(), await.Most)
	defer cancel()
	kind, data, err := c.conn.Read(ctx)
	switch {
	case err != nil:
		return false
	case kind == websocket.MessageBinary:
		c.screen.Write(data)
	default:
		c.told = append(c.told, string(data))
	}
	return true
}

// sees reads until the screen contains the text.
func (c *client) sees(text string) {
	c.t.Helper()
	for !strings.Contains(c.screen.String(), text) {
		if !c.read() {
			c.t.Fatalf("%q does not come; told %v, screen %q", text, c.told, c.screen.String())
		}
	}
}

// hears reads until the message has arrived.
func (c *client) hears(text string) {
	c.t.Helper()
	for !strings.Contains(strings.Join(c.told, "\n"), text) {
		if !c.read() {
			c.t.Fatalf("%q does not come; told %v, screen %q", text, c.told, c.screen.String())
		}
	}
}

// ends reads until the socket ends, and returns the last message.
func (c *client) ends() string {
	for c.read() {
	}
	if len(c.told) == 0 {
		return ""
	}
	return c.told[len(c.told)-1]
}

func TestShell(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	c := w.attach("ana", terminalID)
	c.hears(`{"type":"ready"`)
	c.types("echo $((6*7))\r")
	c.sees("42")
	c.types("stty size\r")
	c.sees("24 80")
	c.say(`{"type":"resize","cols":121,"rows":41}`)
	c.types("until [ \"$(stty size)\" = '41 121' ]; do sleep 0.1; done; echo si''zed\r")
	c.sees("sized")
	c.types("exit\r")
	if last := c.ends(); last != `{"type":"closed","reason":"exited"}` {
		t.Errorf("ended with %s", last)
	}
}

// TestReattachShell attaches a second time. The shell is still there, with its output. On a host without script, a new
// shell starts and a message says so.
func TestReattachShell(t *testing.T) {
	for keeps, path := range map[bool]string{true: "", false: sshd.Without(t, "script")} {
		w := newWorld(t, sshd.Start(t, sshd.Options{Path: path}), Times{})
		for again := range 2 {
			c := w.attach("ana", terminalID)
			c.hears(fmt.Sprintf(`{"type":"ready","keeps":%t}`, keeps))
			if again == 0 {
				c.types("x=kept; echo fir''st\r")
				c.sees("first")
			} else {
				c.types("echo x is $x.\r")
				c.sees(map[bool]string{true: "x is kept.", false: "x is ."}[keeps])
				if strings.Contains(c.screen.String(), "first") != keeps {
					t.Errorf("keeps %t: %q", keeps, c.screen.String())
				}
			}
			_ = c.conn.CloseNow() // as a connection that is lost
			w.serving.Wait()
		}
	}
}

// TestAttachRefused checks that only the terminal's user may attach. For anyone else the answer is the same as for a
// terminal that does not exist.
func TestAttachRefused(t *testing.T) {
	host := sshd.Start(t, sshd.Options{})
	w, hasty := newWorld(t, host, Times{}), newWorld(t, host, Times{Auth: 300 * time.Millisecond})
	for name, c := range map[string]struct{ terminal, first, reason string }{
		"a stranger's token": {terminalID, `{"type":"auth","token":"x"}`, "unauthenticated"},
		"no token":           {terminalID, `{"type":"auth"}`, "unauthenticated"},
		"another message":    {terminalID, `{"type":"resize","cols":80,"rows":24}`, "unauthenticated"},
		"an unknown field":   {terminalID, `{"type":"auth","token":"token-ana","x":1}`, "unauthenticated"},
		"nothing":            {terminalID, "", "unauthenticated"},
		"another user's":     {terminalID, `{"type":"auth","token":"token-ben"}`, "not_found"},
		"none that is there": {hostID + "-xx4y2xhvxkqdgbmpsx7ujpeb7q", `{"type":"auth","token":"token-ana"}`,
			"not_found"},
		"an id of no form":    {"x", `{"type":"auth","token":"token-ana"}`, "not_found"},
		"another user's host": {hostID, `{"type":"auth","token":"token-ben"}`, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			at := w
			if c.first == "" {
				at = hasty
			}
			its := at.dial(c.terminal)
			its.t = t
			if c.first != "" {
				its.say(c.first)
			}
			if last := its.ends(); last != `{"type":"closed","reason":"`+c.reason+`"}` || len(its.told) != 1 {
				t.Errorf("told %v", its.told)
			}
		})
	}
	if n := w.pool.Open() + hasty.pool.Open(); n > 0 {
		t.Errorf("%d connections to the host", n)
	}
}

// TestEndsOfSocket ends open sockets for each reason.
func TestEndsOfSocket(t *testing.T) {
	host := sshd.Start(t, sshd.Options{})
	for reason, c := range map[string]struct {
		times Times
		do    func(*world, *client)
	}{
		"disabled": {do: func(w *world, _ *client) {
			w.put(document.UserPath("ana"), run.User{UID: "ana", Disabled: true})
		}},
		"deleted": {do: func(w *world, _ *client) {
			path := document.TerminalPath("ana", terminalID)
			docs, err := w.store.Get(t.Context(), path)
			if err == nil {
				_, err = w.store.Commit(t.Context(), store.Delete(path, docs[0].Version))
			}
			if err != nil {
				t.Error(err)
			}
		}},
		"time":             {times: Times{Socket: 300 * time.Millisecond}, do: func(*world, *client) {}},
		"invalid":          {do: func(_ *world, c *client) { c.say(`{"type":"resize","cols":0,"rows":1}`) }},
		"host_unreachable": {do: func(w *world, _ *client) { host.Cut() }},
		"store_unavailable": {do: func(w *world, _ *client) {
			w.runs.change(func() { w.runs.failed = errors.New("no") })
		}},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, host, c.times)
			its := w.attach("ana", terminalID)
			if c.times.Socket == 0 {
				its.hears("ready")
				its.types("echo be''gun\r")
				its.sees("begun")
			}
			c.do(w, its)
			if last := its.ends(); last != `{"type":"closed","reason":"`+reason+`"}` {
				t.Errorf("ended with %s", last)
			}
		})
	}
}

// TestUnreachable checks that an unreachable host is always reported after the same time, however early the error is
// known.
func TestUnreachable(t *testing.T) {
	host := sshd.Start(t, sshd.Options{})
	const answer = 300 * time.Millisecond
	w := newWorld(t, host, Times{Answer: answer})
	host.Kill()
	began := time.Now()
	if last := w.attach("ana", terminalID).ends(); last != `{"type":"closed","reason":"host_unreachable"}` {
		t.Errorf("ended with %s", last)
	}
	if took := time.Since(began); took < answer {
		t.Errorf("it took %v", took)
	}
}

// TestAgentsCommand shows a command that an agent runs, passes the user's keys to it, and returns to the shell.
func TestAgentsCommand(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	c := w.attach("ana", terminalID)
	c.hears("ready")
	c.types("echo sh''ell\r")
	c.sees("shell")

	w.runs.set("run-1", action) // the run reports the command before the host has it
	c.hears(`{"type":"agent","runId":"run-1","actionId":"` + action + `","state":"running"}`)
	c.types("early\r")
	w.awaitInput()
	ended := w.begins("echo be''gun; read x; echo got $x; read x; echo got $x", nil)
	c.sees("got early")
	c.types("some secret\r")
	c.sees("got some secret")
	if r := <-ended; r.Exit != 0 {
		t.Errorf("%+v", r)
	}
	w.runs.set("run-1", "")
	c.hears(`{"type":"agent","runId":"run-1","actionId":"` + action + `","state":"ended"}`)
	c.types("echo ag''ain\r")
	c.sees("again")
	if strings.Contains(c.screen.String(), "secret: command not found") {
		t.Error("the shell was given what was typed for the command")
	}
}

// action is the ID of the agent's command. A host finds a command's processes by this ID, and other tests may use the
// same machine.
var action = "action-" + rand.Text()

// begins starts the agent's command on the host. The channel receives its result. asks is called when the command asks
// for input.
func (w *world) begins(command string, asks func(bool)) <-chan supervisor.Result {
	w.t.Helper()
	return w.beginsAs(action, command, asks)
}

// keeper returns the keeper of the user's host, and a function that releases its connection.
func (w *world) keeper() (*supervisor.Client, func()) {
	w.t.Helper()
	host, err := terminal.ReadHost(w.t.Context(), w.store, "ana", hostID)
	if err != nil {
		w.t.Fatal(err)
	}
	conn, release, err := w.Get(w.t.Context(), &host)
	if err != nil {
		w.t.Fatal(err)
	}
	k, err := supervisor.Open(w.t.Context(), conn)
	if err != nil {
		w.t.Fatal(err)
	}
	return k, release
}

// awaitInput waits until the host has received keys for a command.
func (w *world) awaitInput() {
	w.t.Helper()
	await.That(w.t, "the host has received the keys", func() bool {
		return strings.Contains(strings.Join(w.host.Lines(), "\n"), " input ")
	})
}

// beginsAs is like begins for a command with this name.
func (w *world) beginsAs(id, command string, asks func(bool)) <-chan supervisor.Result {
	w.t.Helper()
	k, release := w.keeper()
	k.Times.Quiet, k.Times.Patience = 100*time.Millisecond, await.Most
	ended := make(chan supervisor.Result, 1)
	go func() {
		defer release()
		r, err := k.Start(context.Background(), supervisor.Start{ID: id, Terminal: terminalID, Grammar: "bash",
			Command: command, Limit: await.Most, Size: supervisor.Size{Cols: 80, Rows: 24}, Asks: asks}, io.Discard)
		if err != nil {
			w.t.Error(err)
		}
		ended <- r
	}()
	return ended
}

// TestAttachCommandList shows the commands of a list one after the other, as one action. Keys go to the running
// command, and the rest of an answer to one command reaches neither the next command nor the shell.
func TestAttachCommandList(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	c := w.attach("ana", terminalID)
	c.hears("ready")
	w.runs.set("run-1", action)
	c.hears(`"state":"running"`)
	first := w.beginsAs(supervisor.InList(action, 0), "read x; echo got $x", nil)
	c.hears(`"state":"input"`)
	c.types("one\r")
	c.sees("got one")
	<-first
	second := w.beginsAs(supervisor.InList(action, 1), "read x; echo then $x", nil)
	for strings.Count(strings.Join(c.told, ""), `"state":"input"`) < 2 && c.read() {
	}
	c.types("two\r")
	c.sees("then two")
	<-second
	w.runs.change(func() { w.runs.command, w.runs.done = "", []string{action} })
	c.hears(`"state":"ended"`)
	c.types("echo sh''ell\r")
	c.sees("shell")

	later := w.attach("ana", terminalID)
	later.sees("got one")
	later.sees("then two")
}

// TestKeysBeforeRunKnown attaches while the agent's command asks for a password, and types it before the run is known.
// The keys go to the command.
func TestKeysBeforeRunKnown(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	asks := make(chan bool, 10)
	ended := w.begins(`read -rs x; echo "${#x} letters"`, func(a bool) { asks <- a })
	<-asks
	w.runs.change(func() { w.runs.run, w.runs.command, w.runs.late = "run-1", action, 200*time.Millisecond })
	c := w.attach("ana", terminalID)
	c.types("secret\r")
	c.sees("6 letters")
	<-ended
	c.hears(`"state":"ended"`)
	c.types("echo sh''ell\r")
	c.sees("shell")
	if strings.Contains(c.screen.String(), "secret") {
		t.Errorf("the shell was given it: %q", c.screen.String())
	}
}

// TestHalfAnAnswer ends a command while its password is typed. The rest of the password does not go to the shell.
func TestHalfAnAnswer(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{Pause: await.Most})
	w.runs.set("run-1", action)
	c := w.attach("ana", terminalID)
	c.hears(`"state":"running"`)
	ended := w.begins("read -rs x", nil)
	c.hears(`"state":"input"`)
	c.types("hunt")
	w.awaitInput()
	k, release := w.keeper()
	err := k.Stop(t.Context(), action)
	if release(); err != nil {
		t.Fatal(err)
	}
	c.hears(`"state":"ended"`)
	c.types("erzwei\recho sh''ell\r")
	c.sees("shell")
	if strings.Contains(c.screen.String(), "erzwei") {
		t.Errorf("the shell was given it: %q", c.screen.String())
	}
	if r := <-ended; !r.Stopped {
		t.Errorf("%+v", r)
	}
}

// TestKeysAfterAnswer reports a question after its answer was typed, and then ends the command. The next keys go to the
// shell if the question was the answered one. After a new question they are dropped.
func TestKeysAfterAnswer(t *testing.T) {
	answer, line := []byte("some secret\r"), "ls\r"
	for name, c := range map[string]struct {
		arrived, dropped bool // the answer has arrived at the host, or an earlier command of a list left it unread
		shell            string
	}{
		"the question that was answered": {shell: line},
		"a new question":                 {arrived: true},
		"a new command's question":       {dropped: true},
	} {
		a, k := &agent{pause: await.Most}, newKeys()
		a.set(k)
		to, b := a.takes(answer)
		to.put(t.Context(), b)
		switch {
		case c.arrived:
			a.sent(k, answer)
		case c.dropped:
			a.next(k)
		}
		a.ask(k, true)
		a.clear(k)
		if to, b := a.takes([]byte(line)); to != nil || string(b) != c.shell {
			t.Errorf("%s: the shell receives %q", name, b)
		}
	}
}

// TestAttachEarlierOutput attaches after commands of an open run have ended. The screen shows their output.
func TestAttachEarlierOutput(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	<-w.begins("echo $((6*7)) lines", nil)
	w.runs.change(func() { w.runs.run, w.runs.done = "run-1", []string{action} })
	c := w.attach("ana", terminalID)
	c.sees("42 lines")
	c.hears(`"state":"ended"`)
	c.types("echo sh''ell\r")
	c.sees("shell")
}

// TestAttachSize sends the size right after the token, to a new shell and to an existing one. Both apply it.
func TestAttachSize(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	for _, size := range []supervisor.Size{{Cols: 121, Rows: 41}, {Cols: 100, Rows: 30}} {
		c := w.attach("ana", terminalID)
		c.say(fmt.Sprintf(`{"type":"resize","cols":%d,"rows":%d}`, size.Cols, size.Rows))
		c.types(fmt.Sprintf("until [ \"$(stty size)\" = '%d %d' ]; do sleep 0.1; done; echo si''zed %[1]d\r", size.Rows,
			size.Cols))
		c.sees(fmt.Sprintf("sized %d", size.Rows))
		_ = c.conn.CloseNow()
		w.serving.Wait()
	}
}

// TestAttachKeeperGone attaches after the keeper was deleted from the host. It is installed again.
func TestAttachKeeperGone(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	c := w.attach("ana", terminalID)
	c.hears("ready")
	c.types("echo be''gun\r")
	c.sees("begun")
	if err := os.RemoveAll(filepath.Join(w.host.Home, ".countersign")); err != nil {
		t.Fatal(err)
	}
	c = w.attach("ana", terminalID)
	for c.screen.Len() == 0 && c.read() { // until the prompt is there: keys for the first attempt are lost with it
	}
	c.types("echo ag''ain\r")
	c.sees("again")
}

// TestShellOutputBesideCommand makes the person's shell print while a line of the agent's command is incomplete. The
// shell may clear its current line, as it does when its size changes, so that line must not be the command's.
func TestShellOutputBesideCommand(t *testing.T) {
	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{})
	c := w.attach("ana", terminalID)
	c.hears("ready")
	c.types("until [ -e go ]; do sleep 0.05; done; echo sh''ell\r")
	c.sees("sh''ell\r\n")
	w.runs.set("run-1", action)
	ended := w.begins("printf ha''lf; read x; echo got $x", nil)
	c.sees("half")
	if err := os.WriteFile(filepath.Join(w.host.Home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.sees("shell\r\n")
	c.sees("half\r\n")
	c.types("yes\r")
	c.sees("\r\nyes\r\ngot yes")
	if r := <-ended; r.Exit != 0 {
		t.Errorf("%+v", r)
	}
	w.runs.set("run-1", "")
	c.hears(`"state":"ended"`)
}

// TestLinesOfShellAndCommand makes the shell and the command print in turns. "." is the end of the command.
func TestLinesOfShellAndCommand(t *testing.T) {
	for want, parts := range map[string][]string{
		"$ it has 6\r\n\r\x1b[K$ \r\n": {"$ ", "!it has 6", "\r\x1b[K$ ", "!\r\n"},
		"$ one\r\n$ \r\ntwo\n$ ls":     {"$ ", "!one", "$ ", "!two\n", "$ ", "ls"},
		"one two\r\n":                  {"!one", "! two", "!\r\n"},
		"halfls":                       {"!half", ".", "l", "s"},
		"half\r\na\nb$ \r\nend\r\n$ ":  {"!half", "a\n", "b", "$ ", "!end", "$ "},
	} {
		s := newScreen()
		for _, part := range parts {
			if part == "." {
				s.ended()
				continue
			}
			text, command := strings.CutPrefix(part, "!")
			if _, err := (printer{s, !command}).Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if m, _ := s.next(); string(m.data) != want {
			t.Errorf("%q is shown as %q, want %q", parts, m.data, want)
		}
	}
}

// TestKeysAfterACommand types as soon as the run has reported the end of its command, while its last output may still
// arrive. No time passes in this test.
func TestKeysAfterACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keeper, err := supervisor.Open(t.Context(), silent{})
		if err != nil {
			t.Fatal(err)
		}
		r := &runs{command: action}
		s := &socket{Sockets: &Sockets{Runs: r}, screen: newScreen(), agent: agent{keeper: keeper,
			known: make(chan struct{})}}
		shows := begin(t.Context(), func(ctx context.Context) { s.followRun(ctx, "run-1", false) })
		synctest.Wait()
		if to, _ := s.agent.takes([]byte("yes\r")); to == nil {
			t.Error("the command does not receive the keys")
		}
		r.set("run-1", "")
		synctest.Wait()
		line := "echo again\r"
		if to, b := s.agent.takes([]byte(line)); to != nil || string(b) != line {
			t.Errorf("the shell receives %q", b)
		}
		shows.end(0)
	})
}

// silent is a connection to a host with a keeper that never answers.
type silent struct{ supervisor.Conn }

func (silent) Recall() any  { return supervisor.Client{Facts: supervisor.Facts{Home: "/root"}} }
func (silent) Remember(any) {}

func (silent) Exec(ctx context.Context, _ supervisor.Exec) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestSlowReader checks the limit of unsent output, and that a reader that takes nothing is disconnected.
func TestSlowReader(t *testing.T) {
	s := newScreen()
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		for {
			if _, err := (printer{s, true}).Write(make([]byte, 10_000)); err != nil {
				return
			}
		}
	}()
	full := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.unsent > maxUnsent-10_000
	}
	await.That(t, "the screen is full", full)
	if s.unsent > maxUnsent {
		t.Errorf("%d bytes wait", s.unsent)
	}
	m, ok := s.next()
	if !ok || len(m.data) > maxFrame {
		t.Errorf("a message of %d bytes", len(m.data))
	}
	s.finish(reasonGone)
	<-stuck

	w := newWorld(t, sshd.Start(t, sshd.Options{}), Times{Write: 300 * time.Millisecond})
	c := w.attach("ana", terminalID)
	c.hears("ready")
	c.types("yes\r")
	w.serving.Wait() // even if nothing is read
}

// TestKeysAndOutputUnpolled checks that a key is taken as soon as it is typed, and that output is sent as soon as it is
// printed.
func TestKeysAndOutputUnpolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k, began := newScreen(), newKeys(), time.Now()
		go func() { _, _ = io.Copy(printer{s, true}, k) }() // the host, which prints each key
		for _, key := range []string{"a", "b", "c"} {
			synctest.Wait() // until the host waits
			k.put(t.Context(), []byte(key))
			if m, _ := s.next(); string(m.data) != key {
				t.Errorf("%q came for %q", m.data, key)
			}
		}
		k.close()
		if took := time.Since(began); took != 0 {
			t.Errorf("that took %v", took)
		}
	})
}
