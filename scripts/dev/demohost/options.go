package demohost

import (
	"strconv"
	"strings"
)

// flags are the options of a call: the last value of each, by its letter.
type flags map[byte]string

func (f flags) has(letters string) bool {
	for i := range len(letters) {
		if _, ok := f[letters[i]]; ok {
			return true
		}
	}
	return false
}

func (f flags) number(letter byte, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(f[letter], "+")); err == nil {
		return n
	}
	return otherwise
}

// add records an option's value. Patterns and scripts (-e) accumulate, one a line. For any other option, the last value
// counts.
func (f flags) add(letter byte, value string) {
	if before, again := f[letter]; again && letter == 'e' {
		value = before + "\n" + value
	}
	f[letter] = value
}

// parse parses the options. letters lists the options, each followed by : if it takes a value. long maps long names, as
// in "all=a human-readable=h". parse itself prints an error.
func (c *call) parse(letters, long string) (f flags, operands []string, ok bool) {
	f = flags{}
	names := map[string]byte{}
	for _, pair := range strings.Fields(long) {
		name, letter, _ := strings.Cut(pair, "=")
		names[name] = letter[0]
	}
	valued := func(letter byte) bool { return strings.Contains(letters, string(letter)+":") }
	args := c.args
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var letter byte
		value, given := "", false
		switch {
		case arg == "--":
			return f, append(operands, args...), true
		case strings.HasPrefix(arg, "--"):
			var name string
			name, value, given = strings.Cut(arg[2:], "=")
			if letter = names[name]; letter == 0 {
				c.fail(1, "unrecognized option '%s'", arg)
				return nil, nil, false
			}
		case len(arg) > 1 && arg[0] == '-':
			for letter, value = arg[1], arg[2:]; ; letter, value = value[0], value[1:] {
				if letter == ':' || strings.IndexByte(letters, letter) < 0 {
					c.fail(1, "invalid option -- '%c'", letter)
					return nil, nil, false
				}
				if valued(letter) || value == "" {
					break
				}
				f.add(letter, "")
			}
			given = value != ""
		default:
			operands = append(operands, arg)
			continue
		}
		if valued(letter) && !given {
			if len(args) == 0 {
				c.fail(1, "option requires an argument -- '%c'", letter)
				return nil, nil, false
			}
			value, args = args[0], args[1:]
		}
		f.add(letter, value)
	}
	return f, operands, true
}
