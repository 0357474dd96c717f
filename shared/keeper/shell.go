package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Shell attaches to the person's own shell of a terminal, and begins it where there is none. It returns when the shell
// ends, when in ends, or with ctx. The host keeps the shell, and at least the last 256 KiB that it printed, which come
// first when it is attached to again. It waits for out, but not for long: then some of what it printed is left out, and
// a line says so. Where Facts.PTY is false the shell ends with the connection. resize may be nil.
func (k *Keeper) Shell(ctx context.Context, terminalID string, size Size, in io.Reader, out io.Writer,
	resize <-chan Size) error {
	if !name.MatchString(terminalID) {
		return fmt.Errorf("keeper: %q cannot be the name of a terminal", terminalID)
	}
	open, end := context.WithCancel(ctx)
	defer end()
	err := k.shell(open, terminalID, size, &lastly{in, end}, out, resize)
	if open.Err() != nil && ctx.Err() == nil { // in has ended
		return nil
	}
	return err
}

// lastly calls a function when a reader ends. The host goes on with what the reader was for, and says nothing more.
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

func (k *Keeper) shell(ctx context.Context, terminalID string, size Size, in io.Reader, out io.Writer,
	resize <-chan Size) error {
	mark := newMark()
	args := []string{"term=" + terminalID, "mark=" + mark, "idle=" + hundredths(k.Times.Idle),
		fmt.Sprintf("rows=%d", size.Rows), fmt.Sprintf("cols=%d", size.Cols)}
	if k.tail {
		args = append(args, "tail=1")
	}
	switch {
	case k.Facts.Home == "":
		_, err := k.conn.Exec(ctx, Exec{Line: `exec "$SHELL" -l`, Stdin: in, Stdout: out, PTY: &size, Resize: resize})
		return err
	case !k.Facts.PTY:
		end, err := k.exec(ctx, Exec{Line: k.line("shell", append(args, "pty=channel")...), Stdin: in, PTY: &size,
			Resize: resize}, mark, out, nil)
		if isCut(err) { // the shell itself is what ran, and it has no last line
			return nil
		}
		return errors.Join(err, refusal(end))
	}
	over, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	found := NewStream(mark, out)
	found.begin = func() { // an earlier one would be overtaken by the shell's first size
		wait.Go(func() { k.resize(over, terminalID, resize) })
	}
	end, err := k.read(ctx, Exec{Line: k.line("shell", args...), Stdin: in}, found, nil)
	stop()
	wait.Wait()
	return errors.Join(err, refusal(end))
}

// resize tells the host of each size.
func (k *Keeper) resize(ctx context.Context, terminalID string, sizes <-chan Size) {
	for {
		select {
		case <-ctx.Done():
			return
		case size, ok := <-sizes:
			if !ok {
				return
			}
			// One that is lost is made good by the next.
			_ = k.simple(ctx, "resize", "term="+terminalID, fmt.Sprintf("rows=%d", size.Rows),
				fmt.Sprintf("cols=%d", size.Cols))
		}
	}
}

// Close ends the person's shell of a terminal, and deletes what the host keeps of the terminal.
func (k *Keeper) Close(ctx context.Context, terminalID string) error {
	if !name.MatchString(terminalID) {
		return fmt.Errorf("keeper: %q cannot be the name of a terminal", terminalID)
	}
	if k.Facts.Home == "" {
		return nil // there is nothing
	}
	return k.simple(ctx, "close", "term="+terminalID)
}

// simple runs a verb that answers nothing.
func (k *Keeper) simple(ctx context.Context, verb string, args ...string) error {
	mark := newMark()
	_, err := k.exec(ctx, Exec{Line: k.line(verb, append(args, "mark="+mark)...)}, mark, io.Discard, nil)
	return err
}
