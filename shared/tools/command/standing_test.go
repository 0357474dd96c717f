package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// changing wraps a process's connections to a host. It calls a function right before a command starts.
type changing struct {
	*remote.Pool
	host   *sshd.Server
	change func() error
}

func (h changing) Get(ctx context.Context, host *terminal.Host) (supervisor.Conn, func(), error) {
	conn, release, err := h.Pool.Get(ctx, host, func(context.Context) ([]byte, error) { return h.host.Key, nil })
	return changingConn{conn, h}, release, err
}

type changingConn struct {
	supervisor.Conn
	of changing
}

func (c changingConn) Exec(ctx context.Context, x supervisor.Exec) (int, error) {
	if strings.Contains(x.Line, `" start `) {
		if err := c.of.change(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Exec(ctx, x)
}

// TestStandingChangedAtStart changes the directory or the program of an always-allowed command after its preparation
// was checked. The command does not run, and approval is requested.
func TestStandingChangedAtStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(home string) error
		want   string // the output file of the command
	}{
		"nothing": {func(string) error { return nil }, "a"},
		"a link to another directory": {func(home string) error {
			return errors.Join(os.Remove(home+"/current"), os.Symlink("b", home+"/current"))
		}, ""},
		"another file of the program": {func(home string) error {
			return os.WriteFile(home+"/a/run", []byte("#!/bin/sh\necho c >>~/witness"), 0o755)
		}, ""},
		"no directory": {func(home string) error { return os.Remove(home + "/current") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := sshd.Start(t, sshd.Options{})
			w := newWorld(t, func(h *terminal.Host, term *terminal.Terminal) {
				*h = *s.Host()
				h.ID, term.Cwd = hostID, s.Home+"/current"
			})
			for _, dir := range []string{"a", "b"} {
				script := "#!/bin/sh\necho " + dir + " >>'" + s.Home + "/witness'\n"
				if err := errors.Join(os.Mkdir(filepath.Join(s.Home, dir), 0o755),
					os.WriteFile(filepath.Join(s.Home, dir, "run"), []byte(script), 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("a", s.Home+"/current"); err != nil {
				t.Fatal(err)
			}
			pool := remote.NewPool(&net.Dialer{}, remote.Times{})
			t.Cleanup(func() { _ = pool.Close() }) // it never fails
			its := command.New(command.Options{Store: w.st, Hosts: changing{pool, s, func() error {
				return c.change(s.Home)
			}}})[command.Run]
			args, err := its.Normalize(json.RawMessage(`{"command":"./run","reasoning":"r"}`))
			if err != nil {
				t.Fatal(err)
			}
			call := tool.Call{UID: "ana", Terminal: terminalID, ActionID: "a", Args: args, Always: true,
				Approved: true, Output: io.Discard}
			if _, err := its.Prepare(t.Context(), call); err != nil { // the user chooses to always allow it
				t.Fatal(err)
			}
			call.Always, call.Approved, call.Standing = false, false, true
			if call.Handle, err = its.Prepare(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			_, err = its.Execute(t.Context(), call)
			left, readErr := os.ReadFile(s.Home + "/witness")
			if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
				t.Fatal(readErr)
			}
			asked := tool.AskedAnew(err) != nil
			if strings.TrimSpace(string(left)) != c.want || asked != (c.want == "" && name != "no directory") {
				t.Errorf("it left %q and asked %v, with %v; want %q", left, asked, err, c.want)
			}
		})
	}
}
