package demohost

import (
	"cmp"
	"io"
	"slices"
	"strings"
)

// maxArgs is the maximum number of words with which xargs starts a program.
const maxArgs = 1000

func xargs(c *call) int {
	n, replace, null, quiet := maxArgs, "", false, false
	args := c.args
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if len(args[0]) > 2 && strings.Contains("nI", args[0][1:2]) { // -n1 is -n 1
			args = slices.Concat([]string{args[0][:2], args[0][2:]}, args[1:])
		}
		switch {
		case args[0] == "-0":
			null = true
		case args[0] == "-r":
			quiet = true
		case args[0] == "-n" && len(args) > 1:
			n, args = max(1, flags{'n': args[1]}.number('n', maxArgs)), args[1:]
		case args[0] == "-I" && len(args) > 1:
			replace, n, args = args[1], 1, args[1:]
		default:
			return c.fail(1, "invalid option -- '%s'", args[0])
		}
		args = args[1:]
	}
	if len(args) == 0 {
		args = []string{"echo"}
	}
	text, err := io.ReadAll(io.LimitReader(stoppable{c, c.stdin()}, maxHeld))
	if err != nil {
		return c.fail(1, "%s", reason(err))
	}
	words := strings.Fields(string(text))
	switch {
	case null:
		words = strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })
	case replace != "":
		words = strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	}
	if len(words) == 0 && !quiet && replace == "" {
		return c.start(args)
	}
	code := 0
	for chunk := range slices.Chunk(words, n) {
		argv := append(slices.Clone(args), chunk...)
		if replace != "" {
			argv = slices.Clone(args)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], replace, chunk[0])
			}
		}
		if c.Err() != nil {
			return 1
		}
		if c.start(argv) != 0 {
			code = 123
		}
	}
	return code
}

func pathParts(c *call) int {
	if len(c.args) == 0 {
		return c.fail(1, "missing operand")
	}
	name := strings.TrimRight(c.args[0], "/")
	at := strings.LastIndexByte(name, '/')
	switch {
	case c.name == "dirname" && at < 0:
		name = "."
	case c.name == "dirname":
		name = cmp.Or(name[:at], "/")
	default:
		name = name[at+1:]
		if len(c.args) > 1 && name != c.args[1] {
			name = strings.TrimSuffix(name, c.args[1])
		}
	}
	c.printf("%s\n", name)
	return 0
}
