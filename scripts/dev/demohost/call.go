package demohost

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
)

// call is one execution of a program of the machine.
type call struct {
	context.Context
	shell *shell
	disk  *disk
	hc    interp.HandlerContext
	name  string
	args  []string
	dir   string
	in    io.Reader // nil: there is none
	out   io.Writer
	err   io.Writer
	ended error // a result of the shell's own commands that the shell itself must know
}

// fail prints the error, and returns the exit code.
func (c *call) fail(code int, format string, args ...any) int {
	fmt.Fprintf(c.err, "%s: %s\n", c.name, fmt.Sprintf(format, args...))
	return code
}

func (c *call) printf(format string, args ...any) { fmt.Fprintf(c.out, format, args...) }

func (c *call) abs(name string) string { return resolve(c.dir, name) }

func (c *call) now() time.Time { return c.shell.machine.now() }

// pause waits, or reports that the program was ended.
func (c *call) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.Done():
		return false
	case <-t.C:
		return true
	}
}

// stdin returns the program's input, or an empty one.
func (c *call) stdin() io.Reader {
	if c.in == nil {
		return strings.NewReader("")
	}
	if c.shell.isTTY(c.in) {
		return asking{c}
	}
	return c.in
}

// asking reads input from the person at the terminal, and waits for it.
type asking struct{ c *call }

func (a asking) Read(p []byte) (int, error) {
	a.c.shell.asks.Store(true)
	defer a.c.shell.asks.Store(false)
	return a.c.in.Read(p)
}

func interruptible(ctx context.Context, in *os.File) (done func()) {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = in.SetReadDeadline(time.Unix(1, 0)) // a file of the disk has none, and is read to its end
		close(over)
	})
	return func() {
		if !stop() {
			<-over
			_ = in.SetReadDeadline(time.Time{})
		}
	}
}

// answer reads one line from the person at the terminal.
func (c *call) answer() string {
	var line []byte
	one := make([]byte, 1)
	for {
		n, err := c.stdin().Read(one)
		if n == 1 && (one[0] == '\n' || one[0] == '\r') || err != nil {
			return string(line)
		}
		line = append(line, one[:n]...)
	}
}

// each opens the files one after the other. Without a name, or for -, it reads the program's input.
func (c *call) each(names []string, use func(name string, r io.Reader) error) (code int) {
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		if err := c.with(name, use); err != nil {
			if c.Err() != nil {
				return 1
			}
			code = c.fail(1, "%s: %s", name, reason(err))
		}
	}
	return code
}

func (c *call) with(name string, use func(name string, r io.Reader) error) error {
	if name == "-" {
		return use(name, c.stdin())
	}
	info, err := c.disk.stat(c.abs(name))
	if err == nil && info.IsDir() {
		return syscall.EISDIR
	}
	f, err := c.disk.open(c.abs(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(name, f)
}

// stoppable reads until the program is ended.
type stoppable struct {
	c *call
	r io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.c.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// lines calls use for each line of each file. If use returns false, lines continues with the next file.
func (c *call) lines(names []string, use func(name, line string) bool) int {
	return c.each(names, func(name string, r io.Reader) error {
		return c.scan(r, func(line string) bool { return use(name, line) })
	})
}

// scan calls use for each line until use returns false.
func (c *call) scan(r io.Reader, use func(line string) bool) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 4<<20)
	for s.Scan() && c.Err() == nil {
		if !use(s.Text()) {
			return nil
		}
	}
	return s.Err()
}

// maxHeld is the maximum input of a program that must read its whole input before it prints.
const maxHeld = 16 << 20

func (c *call) all(names []string) (lines []string, code int) {
	held := 0
	code = c.lines(names, func(_, line string) bool {
		held += len(line)
		lines = append(lines, line)
		return held < maxHeld
	})
	return lines, code
}

// walk visits a path and everything below it, folders first. It follows no links.
func (c *call) walk(abs string, visit func(abs string, info fs.FileInfo) bool) error {
	info, err := c.disk.lstat(abs)
	if err != nil || c.Err() != nil {
		return err
	}
	if !visit(abs, info) || !info.IsDir() {
		return nil
	}
	entries, err := c.disk.readDir(abs)
	for _, e := range entries {
		if c.walk(path.Join(abs, e.Name()), visit) != nil {
			continue // it is gone meanwhile
		}
	}
	return err
}

// human formats a size as -h does: 1.5K, 12M.
func human(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	v, unit := float64(n), 0
	for v >= 1024 {
		v, unit = v/1024, unit+1
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f%c", v, " KMGTPE"[unit])
	}
	return fmt.Sprintf("%.0f%c", v, " KMGTPE"[unit])
}
