package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Shell attaches to the person's own shell of a terminal, and starts one if there is none. It returns when the shell
// ends, when in ends, or when ctx ends. The host keeps the shell and at least its last 256 KiB of output, which Shell
// writes first when it attaches again. Shell waits only briefly for a slow out, then leaves out some output and says so
// in a line. If Facts.PTY is false, the shell ends with the connection. resize may be nil. The error is ErrHome if no
// shell can start because the home directory is not writable, or that of the connection.
func (c *Client) Shell(ctx context.Context, terminalID string, size Size, in io.Reader, out io.Writer,
	resize <-chan Size) error {
	if !name.MatchString(terminalID) {
		return fmt.Errorf("supervisor: %q cannot be the name of a terminal", terminalID)
	}
	open, end := context.WithCancel(ctx)
	defer end()
	err := c.shell(open, terminalID, size, &lastly{in, end}, out, resize)
	if open.Err() != nil && ctx.Err() == nil { // in has ended
		return nil
	}
	return err
}

// lastly is a reader that calls a function when it ends.
type lastly struct {
	io.Reader
	end func()
}

func (l *lastly) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if err != nil {
		l.end()
	}
	return n, err
}

func (c *Client) shell(ctx context.Context, terminalID string, size Size, in io.Reader, out io.Writer,
	resize <-chan Size) error {
	mark := newMark()
	args := []string{"term=" + terminalID, "mark=" + mark, "idle=" + hundredths(c.Times.Idle),
		fmt.Sprintf("rows=%d", size.Rows), fmt.Sprintf("cols=%d", size.Cols)}
	if c.tail {
		args = append(args, "tail=1")
	}
	switch {
	case c.Facts.Home == "":
		_, err := c.conn.Exec(ctx, Exec{Line: `exec "$SHELL" -l`, Stdin: in, Stdout: out, PTY: &size, Resize: resize})
		return err
	case !c.Facts.PTY:
		end, err := c.exec(ctx, Exec{Line: c.line("shell", append(args, "pty=channel")...), Stdin: in, PTY: &size,
			Resize: resize}, mark, out, nil)
		if isCut(err) { // the shell ran, and no last line follows it
			return nil
		}
		return errors.Join(err, refusal(end))
	}
	over, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	found := NewStream(mark, out)
	found.begin = func() { // an earlier size would be overwritten by the shell's first size
		wait.Go(func() { c.resize(over, terminalID, resize) })
	}
	end, err := c.read(ctx, Exec{Line: c.line("shell", args...), Stdin: in}, found, nil)
	stop()
	wait.Wait()
	return errors.Join(err, refusal(end))
}

// resize sends each size to the host.
func (c *Client) resize(ctx context.Context, terminalID string, sizes <-chan Size) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			// A lost size is corrected by the next one.
			_ = c.simple(ctx, "resize", "term="+terminalID, fmt.Sprintf("rows=%d", size.Rows),
				fmt.Sprintf("cols=%d", size.Cols))
		}
	}
}

// Close ends the person's shell of a terminal, and deletes everything that the host stores about the terminal.
func (c *Client) Close(ctx context.Context, terminalID string) error {
	if !name.MatchString(terminalID) {
		return fmt.Errorf("supervisor: %q cannot be the name of a terminal", terminalID)
	}
	if c.Facts.Home == "" {
		return nil // there is nothing to delete
	}
	return c.simple(ctx, "close", "term="+terminalID)
}

// simple runs a verb that has no result.
func (c *Client) simple(ctx context.Context, verb string, args ...string) error {
	mark := newMark()
	_, err := c.exec(ctx, Exec{Line: c.line(verb, append(args, "mark="+mark)...)}, mark, io.Discard, nil)
	return err
}
