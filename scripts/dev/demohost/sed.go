package demohost

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// sed supports s/a/b/, also in place, and -n with printed lines.
func sed(c *call) int {
	f, names, ok := c.parse("nie:Er", "in-place=i quiet=n expression=e regexp-extended=E")
	if !ok {
		return 1
	}
	script, given := f['e']
	if !given && len(names) > 0 {
		script, names = names[0], names[1:]
	}
	edit, err := editOf(script, f)
	if err != nil {
		return c.fail(1, "%v", err)
	}
	if !f.has("i") {
		n := 0
		return c.lines(names, func(_, line string) bool {
			n++
			if line, ok := edit(n, line); ok {
				c.printf("%s\n", line)
			}
			return true
		})
	}
	code := 0
	for _, name := range names {
		var out strings.Builder
		n := 0
		if code = c.lines([]string{name}, func(_, line string) bool {
			n++
			if line, ok := edit(n, line); ok {
				out.WriteString(line + "\n")
			}
			return out.Len() < maxHeld
		}); code != 0 {
			return code
		}
		if w, err := c.disk.open(c.abs(name), os.O_WRONLY|os.O_TRUNC, 0); err != nil {
			code = c.fail(4, "couldn't open file %s: %s", name, reason(err))
		} else if _, err := io.WriteString(w, out.String()); errors.Join(err, w.Close()) != nil {
			code = c.fail(4, "couldn't write %s", name)
		}
	}
	return code
}

// An edit returns the new text of a numbered line, and whether it is printed.
type edit func(n int, line string) (string, bool)

// editOf parses a script of commands, one a line.
func editOf(script string, f flags) (edit, error) {
	var edits []edit
	for command := range strings.SplitSeq(strings.TrimSpace(script), "\n") {
		e, err := commandOf(command, f)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return func(n int, line string) (string, bool) {
		printed := false
		for _, e := range edits {
			var here bool
			line, here = e(n, line)
			printed = printed || here
		}
		return line, printed
	}, nil
}

var printing = lazyregexp.New(`^([0-9]+)(?:,([0-9]+|\$))?p$`)

func commandOf(command string, f flags) (edit, error) {
	if m := printing.FindStringSubmatch(command); m != nil && f.has("n") {
		from := flags{'n': m[1]}.number('n', 0)
		to := flags{'n': m[2]}.number('n', from)
		if m[2] == "$" {
			to = 1 << 30
		}
		return func(n int, line string) (string, bool) { return line, n >= from && n <= to }, nil
	}
	pattern, with, how, ok := substitution(command)
	if !ok {
		return nil, errors.New("-e expression #1: this machine supports only s/a/b/ and 3,9p")
	}
	options := flags{}
	if f.has("Er") {
		options['E'] = ""
	}
	if strings.Contains(how, "i") {
		options['i'] = ""
	}
	re, err := expressionOf(pattern, options, "")
	if err != nil {
		return nil, err
	}
	most, template := 1, template(with)
	if strings.Contains(how, "g") {
		most = -1
	}
	return func(_ int, line string) (string, bool) {
		var out []byte
		end := 0
		for _, at := range re.FindAllStringSubmatchIndex(line, most) {
			out = re.ExpandString(append(out, line[end:at[0]]...), template, line, at)
			end = at[1]
		}
		return string(out) + line[end:], !f.has("n")
	}, nil
}

// substitution reads s/a/b/gi. Any character can separate the parts; inside a part it is escaped with \.
func substitution(command string) (pattern, with, how string, ok bool) {
	if len(command) < 2 || command[0] != 's' {
		return "", "", "", false
	}
	mark, parts := command[1], []string{""}
	for i := 2; i < len(command); i++ {
		last := &parts[len(parts)-1]
		switch {
		case command[i] == mark:
			parts = append(parts, "")
			continue
		case command[i] == '\\' && i+1 < len(command):
			if i++; command[i] != mark {
				*last += `\`
			}
		}
		*last += command[i : i+1]
	}
	if len(parts) != 3 || strings.Trim(parts[2], "gi") != "" {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

var special = lazyregexp.New(`\\.|[$&]`)

// template converts the replacement of sed to Go's form: \1 and & become ${1} and ${0}, and $ becomes $$.
func template(with string) string {
	return special.ReplaceAllStringFunc(with, func(s string) string {
		switch {
		case s == "&":
			return "${0}"
		case s == "$", s == `\$`:
			return "$$"
		case s == `\n`:
			return "\n"
		case s == `\t`:
			return "\t"
		case s[1] >= '0' && s[1] <= '9':
			return "${" + s[1:] + "}"
		}
		return s[1:]
	})
}
