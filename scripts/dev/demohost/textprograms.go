package demohost

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func count(c *call) int {
	f, names, ok := c.parse("clmw", "lines=l words=w bytes=c chars=m")
	if !ok {
		return 1
	}
	all := !f.has("clmw")
	var total [3]int
	show := func(n [3]int, name string) {
		var parts []string
		for i, letters := range []string{"l", "w", "cm"} {
			if all || f.has(letters) {
				parts = append(parts, strconv.Itoa(n[i]))
			}
		}
		if name != "-" {
			parts = append(parts, name)
		}
		c.printf("%s\n", strings.Join(parts, " "))
	}
	code := c.each(names, func(name string, r io.Reader) error {
		var n [3]int
		buf, inWord := make([]byte, 32<<10), false
		for {
			k, err := stoppable{c, r}.Read(buf)
			n[0] += bytes.Count(buf[:k], []byte("\n"))
			n[2] += k
			for _, b := range buf[:k] {
				space := b == ' ' || b >= '\t' && b <= '\r'
				if inWord && space || !inWord && !space {
					inWord = !inWord
					if inWord {
						n[1]++
					}
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		for i := range total {
			total[i] += n[i]
		}
		show(n, name)
		return nil
	})
	if len(names) > 1 {
		show(total, "total")
	}
	return code
}

func cut(c *call) int {
	f, names, ok := c.parse("d:f:c:s", "delimiter=d fields=f characters=c only-delimited=s")
	if !ok {
		return 1
	}
	which := f['f'] + f['c']
	if which == "" {
		return c.fail(1, "you must specify a list of bytes, characters, or fields")
	}
	delimiter := cmp.Or(f['d'], "\t")
	return c.lines(names, func(_, line string) bool {
		parts, with := strings.Split(line, delimiter), delimiter
		if f.has("c") {
			parts, with = strings.Split(line, ""), ""
		} else if len(parts) == 1 {
			if !f.has("s") {
				c.printf("%s\n", line)
			}
			return true
		}
		var kept []string
		for _, span := range strings.Split(which, ",") {
			low, high, ranged := strings.Cut(span, "-")
			from, to := flags{'n': low}.number('n', 1), len(parts)
			if high != "" || !ranged {
				to = flags{'n': cmp.Or(high, low)}.number('n', len(parts))
			}
			for i := max(1, from); i <= min(to, len(parts)); i++ {
				kept = append(kept, parts[i-1])
			}
		}
		c.printf("%s\n", strings.Join(kept, with))
		return true
	})
}

func translate(c *call) int {
	f, sets, ok := c.parse("dscC", "delete=d squeeze-repeats=s complement=c")
	if !ok || len(sets) == 0 {
		return c.fail(1, "missing operand")
	}
	from, to := runes(sets[0]), []rune{}
	if len(sets) > 1 {
		to = runes(sets[1])
	}
	in := bufio.NewReader(c.stdin())
	out := bufio.NewWriter(c.out)
	defer out.Flush()
	var last rune
	for c.Err() == nil {
		r, _, err := in.ReadRune()
		if err != nil {
			return 0
		}
		at := slices.Index(from, r)
		if f.has("cC") { // all others, which become the last of the second set
			at = map[bool]int{true: len(to), false: -1}[at < 0]
		}
		switch {
		case at >= 0 && f.has("d"):
			continue
		case at >= 0 && len(to) > 0:
			r = to[min(at, len(to)-1)]
		}
		if f.has("s") && r == last && at >= 0 {
			continue
		}
		last = r
		_, _ = out.WriteRune(r) // the reader is gone: told by the next read's end
	}
	return 1
}

func runes(set string) (out []rune) {
	set = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9", "[:space:]", " \t\n", `\n`,
		"\n",
		`\t`, "\t").Replace(set)
	rs := []rune(set)
	for i := 0; i < len(rs); i++ {
		if i+2 < len(rs) && rs[i+1] == '-' && rs[i+2] >= rs[i] && rs[i+2]-rs[i] < 256 {
			for r := rs[i]; r <= rs[i+2]; r++ {
				out = append(out, r)
			}
			i += 2
			continue
		}
		out = append(out, rs[i])
	}
	return out
}

func tee(c *call) int {
	f, names, ok := c.parse("ai", "append=a")
	if !ok {
		return 1
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if f.has("a") {
		how = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	outs, code := []io.Writer{c.out}, 0
	for _, name := range names {
		w, err := c.disk.open(c.abs(name), how, 0o644)
		if err != nil {
			code = c.fail(1, "%s: %s", name, reason(err))
			continue
		}
		defer w.Close()
		outs = append(outs, w)
	}
	if _, err := io.Copy(io.MultiWriter(outs...), struct{ io.Reader }{stoppable{c, c.stdin()}}); err != nil {
		return c.fail(1, "%s", reason(err))
	}
	return code
}

func reversed(c *call) int {
	lines, code := c.all(c.args)
	for _, l := range slices.Backward(lines) {
		c.printf("%s\n", l)
	}
	return code
}

func numbered(c *call) int {
	n := 0
	return c.lines(c.args, func(_, line string) bool {
		n++
		c.printf("%6d\t%s\n", n, line)
		return true
	})
}

func yes(c *call) int {
	line := cmp.Or(strings.Join(c.args, " "), "y") + "\n"
	block := strings.Repeat(line, 1+4096/len(line))
	for c.Err() == nil {
		if _, err := io.WriteString(c.out, block); err != nil {
			return 141 // SIGPIPE
		}
	}
	return 1
}

func digest(c *call) int {
	f, names, ok := c.parse("btzc", "check=c")
	if !ok || f.has("c") {
		return c.fail(1, "checking is not simulated here")
	}
	return c.each(names, func(name string, r io.Reader) error {
		var h hash.Hash = sha256.New()
		if c.name == "md5sum" {
			h = md5.New()
		}
		if _, err := io.Copy(h, stoppable{c, r}); err != nil {
			return err
		}
		c.printf("%x  %s\n", h.Sum(nil), name)
		return nil
	})
}
