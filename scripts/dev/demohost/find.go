package demohost

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// find walks folders. It supports only the most common tests and actions.
func find(c *call) int {
	var starts []string
	args := c.args
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" && args[0] != "(" {
		starts, args = append(starts, args[0]), args[1:]
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	e, err := c.expression(args)
	if err != nil {
		return c.fail(1, "%v", err)
	}
	code := 0
	for _, start := range starts {
		from := c.abs(start)
		var folders []string // folders to delete once everything below them is deleted
		err := c.walk(from, func(abs string, info fs.FileInfo) bool {
			name := start + strings.TrimPrefix(abs, strings.TrimSuffix(from, "/"))
			depth := strings.Count(strings.Trim(strings.TrimPrefix(abs, strings.TrimSuffix(from, "/")), "/"), "/") + 1
			if abs == from {
				name, depth = start, 0
			}
			if depth >= e.least && e.holds(info) {
				if e.remove && info.IsDir() {
					folders = append(folders, abs)
				} else if !e.act(c, name, abs, info) {
					code = 1
				}
			}
			return depth < e.most
		})
		if err != nil {
			code = c.fail(1, "'%s': %s", start, reason(err))
		}
		for i := len(folders) - 1; i >= 0; i-- {
			if err := c.disk.root.Remove(inside(folders[i])); err != nil {
				code = c.fail(1, "cannot delete '%s': %s", folders[i], reason(err))
			}
		}
	}
	if len(e.exec) > 0 && e.all && len(e.names) > 0 {
		return c.start(append(e.exec, e.names...))
	}
	return code
}

type expression struct {
	tests       []func(fs.FileInfo) bool
	least, most int
	remove      bool
	print0      bool
	format      string
	exec        []string
	all         bool // exec is called once, with all names
	names       []string
}

func (e *expression) holds(info fs.FileInfo) bool {
	for _, t := range e.tests {
		if !t(info) {
			return false
		}
	}
	return true
}

func (e *expression) act(c *call, name, abs string, info fs.FileInfo) bool {
	switch {
	case e.remove:
		if err := c.disk.root.Remove(inside(abs)); err != nil {
			return c.fail(1, "cannot delete '%s': %s", name, reason(err)) == 0
		}
	case len(e.exec) > 0 && e.all:
		e.names = append(e.names, name)
	case len(e.exec) > 0:
		argv := make([]string, len(e.exec))
		for i, a := range e.exec {
			argv[i] = strings.ReplaceAll(a, "{}", name)
		}
		return c.start(argv) == 0
	case e.format != "":
		c.printf("%s", strings.NewReplacer("%p", name, "%f", path.Base(name), "%s", strconv.FormatInt(info.Size(), 10),
			"%TY-%Tm-%Td", info.ModTime().Format(time.DateOnly), `\n`, "\n", `\t`, "\t").Replace(e.format))
	case e.print0:
		c.printf("%s\x00", name)
	default:
		c.printf("%s\n", name)
	}
	return true
}

func (c *call) expression(args []string) (*expression, error) {
	e := &expression{most: 1 << 20}
	not := false
	for len(args) > 0 {
		name := args[0]
		args = args[1:]
		switch name {
		case "!", "-not":
			not = true
			continue
		case "-print", "-a", "-and", "-xdev", "-mount", "-depth":
			continue
		case "-print0":
			e.print0 = true
			continue
		case "-delete":
			e.remove = true
			continue
		}
		test, rest, err := c.predicate(e, name, args)
		if err != nil {
			return nil, err
		}
		args = rest
		if test == nil {
			continue
		}
		if not {
			e.tests = append(e.tests, func(i fs.FileInfo) bool { return !test(i) })
		} else {
			e.tests = append(e.tests, test)
		}
		not = false
	}
	return e, nil
}

// predicate parses a predicate that may have an argument. It returns a test, or sets an option of the expression.
func (c *call) predicate(e *expression, name string, args []string) (test func(fs.FileInfo) bool, rest []string,
	err error) {
	if name == "-empty" {
		return func(i fs.FileInfo) bool { return i.Size() == 0 }, args, nil
	}
	if len(args) == 0 {
		return nil, nil, fmt.Errorf("missing argument to `%s'", name)
	}
	value, rest := args[0], args[1:]
	switch name {
	case "-name":
		return named(value, func(name string) string { return name }), rest, nil
	case "-iname":
		return named(strings.ToLower(value), strings.ToLower), rest, nil
	case "-type":
		return ofType(value), rest, nil
	case "-mtime", "-mmin", "-size":
		test, err = c.measure(name, value)
		return test, rest, err
	case "-user", "-group":
		return func(fs.FileInfo) bool { return value == user }, rest, nil
	case "-maxdepth", "-mindepth":
		return nil, rest, e.depth(name, value)
	case "-printf":
		e.format = value
		return nil, rest, nil
	case "-exec":
		rest, err = e.command(args)
		return nil, rest, err
	}
	return nil, nil, fmt.Errorf("unknown predicate `%s'", name)
}

// named tests names after spell has converted them.
func named(pattern string, spell func(string) string) func(fs.FileInfo) bool {
	return func(i fs.FileInfo) bool {
		ok, _ := path.Match(pattern, spell(i.Name())) // a pattern that is none matches nothing
		return ok
	}
}

func ofType(letter string) func(fs.FileInfo) bool {
	return func(i fs.FileInfo) bool {
		return letter == "d" && i.IsDir() || letter == "f" && i.Mode().IsRegular() ||
			letter == "l" && i.Mode()&fs.ModeSymlink != 0
	}
}

func (e *expression) depth(name, value string) error {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return fmt.Errorf("expected a number after %s, not '%s'", name, value)
	case name == "-maxdepth":
		e.most = n
	default:
		e.least = n
	}
	return nil
}

// command parses the command of -exec up to its ; or +.
func (e *expression) command(args []string) (rest []string, err error) {
	end := slices.IndexFunc(args[1:], func(a string) bool { return a == ";" || a == "+" }) + 1
	if end == 0 {
		return nil, errors.New("missing argument to `-exec'")
	}
	e.exec = slices.Clone(args[:end])
	if e.all = args[end] == "+"; e.all && e.exec[len(e.exec)-1] == "{}" {
		e.exec = e.exec[:len(e.exec)-1]
	}
	return args[end+1:], nil
}

// measure parses +7 (more than), -7 (less than) and 7.
func (c *call) measure(test, value string) (func(fs.FileInfo) bool, error) {
	number := strings.TrimLeft(value, "+-")
	unit := int64(512)
	if test == "-size" && number != "" {
		if n, ok := map[byte]int64{'c': 1, 'k': 1024, 'M': mib, 'G': 1 << 30, 'b': 512}[number[len(number)-1]]; ok {
			unit, number = n, number[:len(number)-1]
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid argument `%s' to `%s'", value, test)
	}
	return func(i fs.FileInfo) bool {
		var is int64
		switch test {
		case "-size":
			is = (i.Size() + unit - 1) / unit
		case "-mmin":
			is = int64(c.now().Sub(i.ModTime()) / time.Minute)
		default:
			is = int64(c.now().Sub(i.ModTime()) / (24 * time.Hour))
		}
		switch value[0] {
		case '+':
			return is > n
		case '-':
			return is < n
		}
		return is == n
	}, nil
}
