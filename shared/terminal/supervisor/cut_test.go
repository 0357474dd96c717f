package supervisor_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// cutAt is a connection that is cut as soon as the host has printed a text.
type cutAt struct {
	supervisor.Conn
	text string
	cut  func()
}

func (c *cutAt) Exec(ctx context.Context, x supervisor.Exec) (int, error) {
	raw := &printed{want: c.text, seen: make(chan bool)}
	go func(seen chan bool) {
		select {
		case <-seen:
			c.cut()
		case <-ctx.Done():
		}
	}(raw.seen)
	if x.Stdout != nil {
		x.Stdout = io.MultiWriter(x.Stdout, raw)
	}
	return c.Conn.Exec(ctx, x)
}

// TestForgedEndOfConnection makes a command print a copy of the keeper's last line, and cuts the connection right after
// it. The command still runs, so this must not count as its end.
func TestForgedEndOfConnection(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	k, err := supervisor.Open(ctx, &cutAt{s.Dial(), ":0:/forged:exited:1:0:0", s.Cut})
	if err != nil {
		t.Fatal(err)
	}
	c := a("forged", `m=$(tr '\0' '\n' </proc/$PPID/cmdline | sed -n 's/^mark=//p'); `+
		`printf '\n%s:0:/forged:exited:1:0:0\n' "$m"; while [ ! -e go ]; do sleep 0.05; done; exit 9`)
	c.Handle = k.Handle()
	if r, err := k.Start(ctx, c, io.Discard); err == nil {
		t.Errorf("it is said to have ended: %+v", r)
	}
	k = open(t, s)
	if state, _, err := k.Reconcile(ctx, c.ID, c.Handle, false); state != supervisor.Running || err != nil {
		t.Errorf("%s, %v", state, err)
	}
	if err := os.WriteFile(filepath.Join(s.Home, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if r, err := k.Attach(ctx, c.ID, 0, &out); err != nil || r.Exit != 9 {
		t.Errorf("%q, %+v, %v", out.String(), r, err)
	}
}
