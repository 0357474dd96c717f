package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// MaxOutput is the number of bytes that are kept of each stream.
const MaxOutput = 1 << 20

// drain is how long this process waits for more output after all programs have ended. A process with its own session
// may keep the streams open forever. What the programs wrote is read in any case: it is in the pipes by then.
var drain = 500 * time.Millisecond

// maxPipe is the maximum number of bytes that a pipe holds (pipe(7)).
const maxPipe = 1 << 20

// streams are the pipes that all programs of a command share. This process reads and writes the other ends.
type streams struct {
	in, out, err *os.File // the programs' ends

	ours           []*os.File
	reads          []*os.File // those of ours that are read
	stdout, stderr capture
	busy           sync.WaitGroup
}

func open(stdin string) (s *streams, err error) {
	s = &streams{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	var inW, outR, errR *os.File
	if stdin == "" {
		s.in, err = os.Open(os.DevNull)
	} else {
		s.in, inW, err = s.pipe(false)
	}
	if err != nil {
		return s, err
	}
	if outR, s.out, err = s.pipe(true); err != nil {
		return s, err
	}
	if errR, s.err, err = s.pipe(true); err != nil {
		return s, err
	}
	s.busy.Go(func() { s.stdout.read(outR) })
	s.busy.Go(func() { s.stderr.read(errR) })
	if inW != nil {
		s.busy.Go(func() {
			_, _ = io.WriteString(inW, stdin) // a program that does not read its input does not need it
			inW.Close()
		})
	}
	return s, nil
}

// pipe returns a pipe; one of its ends belongs to this process.
func (s *streams) pipe(readOurs bool) (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err != nil {
		return nil, nil, err
	}
	if readOurs {
		s.ours, s.reads = append(s.ours, r), append(s.reads, r)
	} else {
		s.ours = append(s.ours, w)
	}
	return r, w, nil
}

// close waits until all output has been read, closes all ends, and returns the output.
func (s *streams) close() Result {
	for _, f := range []*os.File{s.in, s.out, s.err} {
		if f != nil {
			f.Close()
		}
	}
	late := time.AfterFunc(drain, s.expire)
	s.busy.Wait()
	late.Stop()
	s.hangUp()
	return Result{Stdout: s.stdout.text(), Stderr: s.stderr.text(),
		Truncated: s.stdout.lost > 0 || s.stderr.lost > 0}
}

// expire ends all waiting: for more output, and for a program that reads its input.
func (s *streams) expire() {
	for _, f := range s.ours {
		if !slices.Contains(s.reads, f) || f.SetReadDeadline(time.Now()) != nil { // not all systems have deadlines
			_ = f.Close()
		}
	}
}

// hangUp closes this process's ends. A second call does nothing.
func (s *streams) hangUp() {
	for _, f := range s.ours {
		_ = f.Close()
	}
}

// capture keeps the beginning of a stream.
type capture struct {
	kept []byte
	lost int
}

// read reads the stream to its end, or until it expires. It then reads what the pipe already holds.
func (c *capture) read(r *os.File) {
	if _, err := io.Copy(c, r); !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	if r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	buf := make([]byte, 32<<10)
	for left := maxPipe; left > 0; {
		n := readNow(r, buf)
		if n <= 0 {
			return
		}
		_, _ = c.Write(buf[:n])
		left -= n
	}
}

func (c *capture) Write(p []byte) (int, error) {
	n := min(len(p), MaxOutput-len(c.kept))
	c.kept = append(c.kept, p[:n]...)
	c.lost += len(p) - n
	return len(p), nil
}

func (c *capture) text() string {
	if c.lost == 0 {
		return string(c.kept)
	}
	kept := c.kept
	for i := len(kept) - 1; i >= max(0, len(kept)-utf8.UTFMax); i-- {
		if utf8.RuneStart(kept[i]) {
			if !utf8.FullRune(kept[i:]) { // remove an incomplete character
				kept = kept[:i]
			}
			break
		}
	}
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n", kept, c.lost+len(c.kept)-len(kept))
}
