package remote

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// probeTime is the maximum time for a host to report its facts after the login.
const probeTime = 20 * time.Second

// Check logs in to the host, installs the keeper, and returns the host's facts. If the host cannot be reached, the
// error comes after the same time as that of Scan. For the other errors, see the package's codes.
func (p *Pool) Check(ctx context.Context, h terminal.Host, open func(context.Context) ([]byte, error), via ...Hop) (
	supervisor.Facts, error) {
	var conn supervisor.Conn
	release := func() {}
	err := p.evenly(ctx, func(ctx context.Context) (err error) {
		c, done, err := p.Get(ctx, &h, open, via...)
		if err == nil {
			conn, release = c, done
		}
		return err
	})
	defer release()
	if err != nil {
		return supervisor.Facts{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	k, err := supervisor.Ask(ctx, conn)
	if err != nil {
		return supervisor.Facts{}, unusable(err)
	}
	return k.Facts, nil
}

// unusable returns the error for a host that accepts the login but does not run commands, because its login shell is
// not a shell or forbids them. The error does not repeat the host's output.
func unusable(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.New(fault.Tool, CodeRefused,
		"The host let its user in, and did not run the command that asks what it is. Is its login shell one that runs "+
			"commands, such as sh, bash, zsh or fish?").Because(errors.New(kind(err)))
}
