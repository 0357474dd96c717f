package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/figures"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// BenchmarkCommand measures a command from its preparation to its result. It alternates with the same command by
// OpenSSH's own client, on the same server. Cases: over an open connection, over a new one, and with 50 MB of output,
// for which it reports the peak memory. The client is measured with a terminal too, because our commands have one.
//
//	go test ./shared/tools/command -run '^$' -bench Command -benchtime 30x -benchmem
func BenchmarkCommand(b *testing.B) {
	s := sshd.Start(b, sshd.Options{Home: b.TempDir()}) // a directory without a space in its name, as usual
	ssh := sshOf(b, s)
	shared := ssh.share(b)
	c := newCommands(b, s)
	for _, x := range []struct{ name, line string }{{"warm", "true"}, {"50MB", "head -c 50000000 /dev/zero"}} {
		b.Run(x.name, func(b *testing.B) {
			c.run(b, x.line) // from now on, the connection is open and the keeper is installed
			var plain, withTerminal, ours figures.Times
			peak := 0.0
			for b.Loop() {
				began := time.Now()
				ssh.run(b, x.line, shared, "-T")
				plain.Since(began)
				began = time.Now()
				ssh.run(b, x.line, shared, "-tt")
				withTerminal.Since(began)
				peak = max(peak, figures.PeakHeap(func() {
					began = time.Now()
					c.run(b, x.line)
					ours.Since(began)
				}))
			}
			plain.Report(b, "ssh")
			withTerminal.Report(b, "ssh-terminal")
			ours.Report(b, "countersign")
			b.ReportMetric(peak, "peak-MiB")
		})
	}
	b.Run("new", func(b *testing.B) {
		var plain, ours figures.Times
		for b.Loop() {
			began := time.Now()
			ssh.run(b, "true", "-T")
			plain.Since(began)
			c.hangUp(b)
			began = time.Now()
			c.run(b, "true")
			ours.Since(began)
		}
		plain.Report(b, "ssh")
		ours.Report(b, "countersign")
	})
}

// commands runs commands with the tool, on a terminal of Ana's.
type commands struct {
	*tool.Tool
	pool *remote.Pool
	key  []byte
	done int
}

func newCommands(b *testing.B, s *sshd.Server) *commands {
	w := newWorld(b, func(h *terminal.Host, t *terminal.Terminal) {
		*h = *s.Host()
		h.ID = hostID
		t.Cwd = ""
	})
	c := &commands{key: s.Key, pool: remote.NewPool(&net.Dialer{}, remote.Times{})}
	c.Tool = command.New(command.Options{Store: w.st, Hosts: c})[command.Run]
	b.Cleanup(func() { _ = c.pool.Close() }) // it never fails
	return c
}

// Get implements [command.Hosts].
func (c *commands) Get(ctx context.Context, h *terminal.Host) (supervisor.Conn, func(), error) {
	return c.pool.Get(ctx, h, func(context.Context) ([]byte, error) { return c.key, nil })
}

// hangUp makes the next command open a new connection.
func (c *commands) hangUp(b *testing.B) {
	b.Helper()
	if err := c.pool.Close(); err != nil {
		b.Fatal(err)
	}
	c.pool = remote.NewPool(&net.Dialer{}, remote.Times{})
}

func (c *commands) run(b *testing.B, line string) {
	b.Helper()
	raw, err := json.Marshal(command.Args{Command: line, Reasoning: "To measure it."})
	if err != nil {
		b.Fatal(err)
	}
	args, err := c.Normalize(raw)
	if err != nil {
		b.Fatal(err)
	}
	c.done++
	call := tool.Call{UID: "ana", Terminal: terminalID, ActionID: fmt.Sprintf("bench-%d", c.done), Args: args,
		Approved: true, Output: io.Discard}
	if call.Handle, err = c.Prepare(b.Context(), call); err == nil {
		_, err = c.Execute(b.Context(), call)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// sshClient is OpenSSH's client, with the files that it needs to log in.
type sshClient struct {
	program string
	options []string
	to      string
}

func sshOf(b *testing.B, s *sshd.Server) *sshClient {
	program, err := exec.LookPath("ssh")
	if err != nil {
		realpart.SSHD.Absent(b, "ssh (package openssh-client) is not there")
	}
	return &sshClient{program, []string{"-F", "none", "-q", "-i", s.KeyFile(), "-p", strconv.Itoa(s.Port),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"}, s.User + "@127.0.0.1"}
}

func (c *sshClient) command(more ...string) *exec.Cmd {
	return exec.Command(c.program, append(append([]string(nil), c.options...), more...)...)
}

func (c *sshClient) run(b *testing.B, line string, options ...string) {
	b.Helper()
	if err := c.command(append(options, c.to, line)...).Run(); err != nil {
		b.Fatalf("ssh %s: %v", line, err)
	}
}

// share opens a connection, and returns the option with which other clients use it.
func (c *sshClient) share(b *testing.B) (option string) {
	b.Helper()
	option = "-oControlPath=" + filepath.Join(b.TempDir(), "c")
	master := c.command(option, "-M", "-N", c.to)
	if err := master.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = master.Process.Kill()
		_ = master.Wait() // it was killed
	})
	for end := time.Now().Add(20 * time.Second); c.command(option, "-O", "check", c.to).Run() != nil; {
		if time.Now().After(end) {
			b.Fatal("ssh has no connection to share")
		}
		time.Sleep(50 * time.Millisecond)
	}
	return option
}
