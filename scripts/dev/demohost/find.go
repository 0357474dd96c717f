package demohost

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// find walks folders. It supports the most common tests and actions.
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
		var folders []string // that are deleted when all below them is
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
	add := func(t func(fs.FileInfo) bool) {
		if not {
			e.tests = append(e.tests, func(i fs.FileInfo) bool { return !t(i) })
		} else {
			e.tests = append(e.tests, t)
		}
		not = false
	}
	for len(args) > 0 {
		test := args[0]
		args = args[1:]
		switch test {
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
		case "-empty":
			add(func(i fs.FileInfo) bool { return i.Size() == 0 })
			continue
		}
		if len(args) == 0 {
			return nil, fmt.Errorf("missing argument to `%s'", test)
		}
		value := args[0]
		args = args[1:]
		switch test {
		case "-name", "-iname":
			add(func(i fs.FileInfo) bool {
				name, pattern := i.Name(), value
				if test == "-iname" {
					name, pattern = strings.ToLower(name), strings.ToLower(pattern)
				}
				ok, _ := path.Match(pattern, name) // a pattern that is none matches nothing
				return ok
			})
		case "-type":
			add(func(i fs.FileInfo) bool {
				return value == "d" && i.IsDir() || value == "f" && i.Mode().IsRegular() ||
					value == "l" && i.Mode()&fs.ModeSymlink != 0
			})
		case "-mtime", "-mmin", "-size":
			t, err := c.measure(test, value)
			if err != nil {
				return nil, err
			}
			add(t)
		case "-maxdepth", "-mindepth":
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("expected a number after %s, not '%s'", test, value)
			}
			if test == "-maxdepth" {
				e.most = n
			} else {
				e.least = n
			}
		case "-printf":
			e.format = value
		case "-user", "-group":
			add(func(fs.FileInfo) bool { return value == user })
		case "-exec":
			e.exec = []string{value}
			for len(args) > 0 && args[0] != ";" && args[0] != "+" {
				e.exec, args = append(e.exec, args[0]), args[1:]
			}
			if len(args) == 0 {
				return nil, fmt.Errorf("missing argument to `%s'", test)
			}
			if e.all = args[0] == "+"; e.all && e.exec[len(e.exec)-1] == "{}" {
				e.exec = e.exec[:len(e.exec)-1]
			}
			args = args[1:]
		default:
			return nil, fmt.Errorf("unknown predicate `%s'", test)
		}
	}
	return e, nil
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
