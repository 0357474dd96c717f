package demohost

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// part is the part of a file that head and tail show.
type part struct {
	flags
	n     int
	bytes bool
	from  bool // +5: from the fifth on
	names []string
}

// part reads -n 5, -5 and +5.
func (c *call) part(letters string) (p part, ok bool) {
	for i, a := range c.args {
		if len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "0123456789") == "" {
			c.args[i] = "-n" + a[1:]
		}
	}
	if p.flags, p.names, ok = c.parse(letters, "lines=n bytes=c quiet=q silent=q verbose=v follow=f"); !ok {
		return p, false
	}
	amount, given := p.flags['n']
	if p.has("c") {
		amount, p.bytes, given = p.flags['c'], true, true
	}
	if !given {
		amount = "10"
	}
	p.from = c.name == "tail" && strings.HasPrefix(amount, "+")
	number := strings.TrimPrefix(amount, "+")
	if c.name == "tail" {
		number = strings.TrimPrefix(number, "-") // the dash makes no difference
	}
	n, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		c.fail(1, "invalid number: '%s'", amount)
		return p, false
	}
	p.n = int(n)
	return p, true
}

// each calls show for each file, and prints the files' names if there are several.
func (p part) each(c *call, show func(name string, r io.Reader) error) int {
	first := true
	return c.each(p.names, func(name string, r io.Reader) error {
		if (len(p.names) > 1 || p.has("v")) && !p.has("q") {
			c.printf("%s==> %s <==\n", map[bool]string{false: "\n"}[first], name)
		}
		first = false
		return show(name, stoppable{c, r})
	})
}

func head(c *call) int {
	p, ok := c.part("n:c:qv")
	if !ok {
		return 1
	}
	return p.each(c, func(_ string, r io.Reader) error {
		if p.bytes {
			_, err := io.CopyN(c.out, r, int64(p.n))
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		shown := 0
		return c.scan(r, func(line string) bool {
			if shown++; shown > p.n {
				return false
			}
			_, err := fmt.Fprintln(c.out, line)
			return err == nil && shown < p.n
		})
	})
}

func tail(c *call) int {
	p, ok := c.part("n:c:qvfF")
	if !ok {
		return 1
	}
	code := p.each(c, func(_ string, r io.Reader) error {
		all, err := io.ReadAll(io.LimitReader(r, maxHeld))
		c.printf("%s", p.last(all))
		return err
	})
	if p.has("fF") && code == 0 && len(p.names) == 1 {
		return c.follow(p.names[0])
	}
	return code
}

// last returns the end of a text.
func (p part) last(text []byte) []byte {
	if p.bytes {
		if p.from {
			return text[min(len(text), max(0, p.n-1)):]
		}
		return text[max(0, len(text)-p.n):]
	}
	lines := slices.Collect(bytes.Lines(text))
	if p.from {
		lines = lines[min(len(lines), max(0, p.n-1)):]
	} else {
		lines = lines[max(0, len(lines)-p.n):]
	}
	return bytes.Join(lines, nil)
}

// follow prints the text that is added to a file.
func (c *call) follow(name string) int {
	at := int64(0)
	if info, err := c.disk.stat(c.abs(name)); err == nil {
		at = info.Size()
	}
	for c.pause(300 * time.Millisecond) {
		err := c.with(name, func(_ string, r io.Reader) error {
			if s, ok := r.(io.Seeker); ok {
				if _, err := s.Seek(at, io.SeekStart); err != nil {
					return err
				}
			}
			n, err := io.Copy(c.out, stoppable{c, r})
			at += n
			return err
		})
		if err != nil {
			return c.fail(1, "%s: %s", name, reason(err))
		}
	}
	return 1
}
