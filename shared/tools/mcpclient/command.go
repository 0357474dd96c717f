package mcpclient

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-run/countersign/shared/base/subprocess"
)

// inherited lists the environment variables that a program gets from this process.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR", "SystemRoot"}

// A process is a running server that uses its standard input and output.
type process struct {
	cmd     *exec.Cmd
	in, out *os.File
	exited  chan struct{}
	wrote   atomic.Int64 // bytes sent to it
	closing sync.Once
}

// start starts the program in a process group of its own.
func start(c Config) (*process, error) {
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	// a later entry overrides an earlier one
	cmd.Dir, cmd.Env = c.Dir, append(subprocess.Environ(inherited...), c.Env...)
	subprocess.Own(cmd)
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		closeAll(stdin, in)
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	err = cmd.Start()
	closeAll(stdin, stdout) // the program has its own copies
	if err != nil {
		closeAll(in, out)
		return nil, err
	}
	p := &process{cmd: cmd, in: in, out: out, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait()               // any exit status
		subprocess.Kill(cmd.Process) // processes that it has started would keep the pipes open
	}()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // a pipe has nothing to flush
	}
}

// Connect implements [mcp.Transport].
func (p *process) Connect(ctx context.Context) (mcp.Connection, error) {
	in := readCloser{newExactLines(p.out), p}
	conn, err := (&mcp.IOTransport{Reader: in, Writer: p, MaxLineLength: maxSDK}).Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &traced{Connection: conn, process: p}, nil
}

// Write sends b to the program. It fails if the program does not read it within 10 seconds.
func (p *process) Write(b []byte) (int, error) {
	if err := p.in.SetWriteDeadline(time.Now().Add(writeBound)); err != nil {
		return 0, err
	}
	n, err := p.in.Write(b)
	p.wrote.Add(int64(n))
	return n, err
}

// Close asks the program to end by closing its input. After a second it kills the program with all processes that it
// has started.
func (p *process) Close() error {
	p.closing.Do(func() {
		_ = p.in.Close() // it may be gone
		grace := time.NewTimer(closeGrace / 2)
		defer grace.Stop()
		select {
		case <-p.exited:
		case <-grace.C:
			p.kill()
			<-p.exited
		}
		_ = p.out.Close()
	})
	return nil
}

// kill ends the program and all processes that it has started, at once.
func (p *process) kill() {
	select {
	case <-p.exited:
	default:
		subprocess.Kill(p.cmd.Process)
	}
}

// traced records in a request's context whether a byte of it was sent. It ends a server that sends more requests than
// the limit.
type traced struct {
	mcp.Connection
	process *process
	mu      sync.Mutex
	asked   atomic.Int32 // requests of the server without an answer
}

func (t *traced) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := t.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && t.asked.Add(1) > maxRequests {
		t.process.kill()
		return nil, errFlood
	}
	return m, err
}

func (t *traced) Write(ctx context.Context, m jsonrpc.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.process.wrote.Load()
	err := t.Connection.Write(ctx, m)
	if t.process.wrote.Load() != before {
		tracksOf(ctx).sent.Store(true)
	}
	if _, ok := m.(*jsonrpc.Response); ok {
		t.asked.Add(-1)
	}
	return err
}

var errFlood = errors.New("the server sends more requests than responses can be written")
