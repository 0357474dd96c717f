package demohost

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxArgs is the maximum number of words with which xargs starts a program.
const maxArgs = 1000

// xargsOptions are the options of xargs.
type xargsOptions struct {
	most        int    // number of words for one start
	replace     string // the text that each line replaces; empty: words are added at the end
	null, quiet bool
}

func xargs(c *call) int {
	o, args, err := parseXargs(c.args)
	if err != nil {
		return c.fail(1, "%s", err)
	}
	if len(args) == 0 {
		args = []string{"echo"}
	}
	text, err := io.ReadAll(io.LimitReader(stoppable{c, c.stdin()}, maxHeld))
	if err != nil {
		return c.fail(1, "%s", reason(err))
	}
	words := o.split(string(text))
	if len(words) == 0 && !o.quiet && o.replace == "" {
		return c.start(args)
	}
	code := 0
	for chunk := range slices.Chunk(words, o.most) {
		argv := append(slices.Clone(args), chunk...)
		if o.replace != "" {
			argv = slices.Clone(args)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], o.replace, chunk[0])
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

// parseXargs returns the options, and the program with its first arguments.
func parseXargs(args []string) (o xargsOptions, rest []string, err error) {
	o.most = maxArgs
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if len(args[0]) > 2 && strings.Contains("nI", args[0][1:2]) { // -n1 is -n 1
			args = slices.Concat([]string{args[0][:2], args[0][2:]}, args[1:])
		}
		switch {
		case args[0] == "-0":
			o.null = true
		case args[0] == "-r":
			o.quiet = true
		case args[0] == "-n" && len(args) > 1:
			o.most, args = max(1, flags{'n': args[1]}.number('n', maxArgs)), args[1:]
		case args[0] == "-I" && len(args) > 1:
			o.replace, o.most, args = args[1], 1, args[1:]
		default:
			return o, nil, fmt.Errorf("invalid option -- '%s'", args[0])
		}
		args = args[1:]
	}
	return o, args, nil
}

// split splits the input into words, or into lines for -I.
func (o xargsOptions) split(text string) []string {
	switch {
	case o.null:
		return strings.FieldsFunc(text, func(r rune) bool { return r == 0 })
	case o.replace != "":
		return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	}
	return strings.Fields(text)
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
