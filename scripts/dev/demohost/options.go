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

// add notes an option's value. Patterns and scripts (-e) add up, a line each; of all else the last value counts.
func (f flags) add(letter byte, value string) {
	if before, again := f[letter]; again && letter == 'e' {
		value = before + "\n" + value
	}
	f[letter] = value
}

// parse reads the options. Letters are those that there are, each followed by : where it has a value; long has their
// long names, as "all=a human-readable=h". It says what is wrong by itself.
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
