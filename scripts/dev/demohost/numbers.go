package demohost

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

func sequence(c *call) int {
	n := make([]int, len(c.args))
	for i, a := range c.args {
		var err error
		if n[i], err = strconv.Atoi(a); err != nil {
			return c.fail(1, "invalid floating point argument: '%s'", a)
		}
	}
	first, step, last := 1, 1, 0
	switch len(n) {
	case 1:
		last = n[0]
	case 2:
		first, last = n[0], n[1]
	case 3:
		first, step, last = n[0], n[1], n[2]
	default:
		return c.fail(1, "missing operand")
	}
	if step == 0 {
		return c.fail(1, "invalid Zero increment value: '0'")
	}
	out := bufio.NewWriter(c.out)
	defer out.Flush()
	for i := first; (step > 0 && i <= last || step < 0 && i >= last) && c.Err() == nil; i += step {
		if _, err := fmt.Fprintln(out, i); err != nil {
			return 1
		}
	}
	return 0
}

// expr does the arithmetic of two numbers, or compares them.
func expr(c *call) int {
	if len(c.args) != 3 {
		return c.fail(2, "syntax error")
	}
	a, err1 := strconv.Atoi(c.args[0])
	b, err2 := strconv.Atoi(c.args[2])
	operation := arithmetic[c.args[1]]
	switch {
	case operation == nil:
		return c.fail(2, "syntax error: unexpected argument '%s'", c.args[1])
	case err1 != nil || err2 != nil:
		return c.fail(2, "non-integer argument")
	case b == 0 && strings.Contains("/%", c.args[1]):
		return c.fail(2, "division by zero")
	}
	n := operation(a, b)
	fmt.Fprintln(c.out, n)
	if n == 0 {
		return 1
	}
	return 0
}

var arithmetic = map[string]func(a, b int) int{
	"+": func(a, b int) int { return a + b }, "-": func(a, b int) int { return a - b },
	"*": func(a, b int) int { return a * b }, "/": func(a, b int) int { return a / b },
	"%": func(a, b int) int { return a % b },
	"<": func(a, b int) int { return truth(a < b) }, ">": func(a, b int) int { return truth(a > b) },
	"=": func(a, b int) int { return truth(a == b) }, "!=": func(a, b int) int { return truth(a != b) },
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
