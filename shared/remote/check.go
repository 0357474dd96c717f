package remote

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/terminal"
)

// probeTime is how long a host may take to say what it is, once its user is logged in.
const probeTime = 20 * time.Second

// Check logs in to the host, puts the keeper there, and returns what the host says of itself. That it cannot be reached
// is answered as by Scan. See the package's codes for the other errors.
func (p *Pool) Check(ctx context.Context, h terminal.Host, open func(context.Context) ([]byte, error)) (keeper.Facts,
	error) {
	var conn keeper.Conn
	release := func() {}
	err := p.evenly(ctx, func(ctx context.Context) (err error) {
		c, done, err := p.Get(ctx, &h, open)
		if err == nil {
			conn, release = c, done
		}
		return err
	})
	defer release()
	if err != nil {
		return keeper.Facts{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	k, err := keeper.Ask(ctx, conn)
	if err != nil {
		return keeper.Facts{}, unusable(err)
	}
	return k.Facts, nil
}

// unusable returns the error of a host that lets its user in and does not run what it is given: its login shell is no
// shell, or lets nobody run commands. What it printed is not repeated.
func unusable(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.New(fault.Tool, CodeRefused,
		"The host let its user in, and did not run the command that asks what it is. Is its login shell one that runs "+
			"commands, such as sh, bash, zsh or fish?").Because(errors.New(kind(err)))
}
