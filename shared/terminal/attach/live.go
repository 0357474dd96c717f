package attach

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// ping checks regularly that the other side is alive.
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

// watchUser ends the socket when its user is disabled.
func (t *socket) watchUser(ctx context.Context) {
	for d, err := range t.Store.Watch(ctx, document.UserPath(t.uid)) {
		u := run.User{UID: t.uid}
		if err == nil && d.Exists() {
			err = document.Decode(d, &u)
		}
		switch {
		case err != nil: // it is unknown whether the user may continue
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

// shell connects the person's shell. If the keeper was deleted from the host in the meantime, shell installs it again.
func (t *socket) shell(ctx context.Context, conn supervisor.Conn, k *supervisor.Client, size supervisor.Size) {
	err := t.oneShell(ctx, k, size)
	if errors.Is(err, supervisor.ErrOther) {
		if k, err = supervisor.Ask(ctx, conn); err == nil {
			err = t.oneShell(ctx, k, size)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		t.end(ReasonExited)
	case errors.Is(err, supervisor.ErrHome):
		t.end(ReasonNoHome)
	default:
		t.end(reasonOf(err))
	}
}

// oneShell attaches to the shell. Keys that are typed after it returns are left for the next attachment.
func (t *socket) oneShell(ctx context.Context, k *supervisor.Client, size supervisor.Size) error {
	typing, over := context.WithCancel(ctx)
	defer over()
	return k.Shell(ctx, t.id, size, reader{t.typed, typing}, printer{t.screen, true}, t.resize)
}
