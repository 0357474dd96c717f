package demohost

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func processes(c *call) int {
	all := slices.ContainsFunc(c.args, func(a string) bool { return strings.ContainsAny(a, "aAexf") })
	bySize := strings.Contains(strings.Join(c.args, " "), "rss") || strings.Contains(strings.Join(c.args, " "), "mem")
	list := c.shell.machine.processes()
	if bySize {
		slices.SortStableFunc(list, func(a, b process) int { return cmp.Compare(b.rss, a.rss) })
	}
	if !all {
		c.printf("    PID TTY          TIME CMD\n")
	} else {
		c.printf("USER         PID %%CPU %%MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n")
	}
	for _, p := range list {
		switch {
		case all:
			c.printf("%-9s %6d  0.%d %4.1f %6d %5d ?        Ss   %s   0:0%d %s\n", p.user, p.pid, p.rss%4,
				float64(p.rss)*100/1967, p.rss*2600, p.rss*1024, p.started.Format("Jan02"), p.rss%10, p.command)
		case p.end != nil:
			c.printf("%7d pts/0    00:00:00 %s\n", p.pid, strings.Fields(p.command + " -")[0])
		}
	}
	return 0
}

func top(c *call) int {
	uptime(c)
	n := c.shell.machine.processes()
	c.printf("Tasks: %3d total,   1 running, %3d sleeping\n%%Cpu(s):  1.3 us,  0.7 sy, 97.8 id\n"+
		"MiB Mem :   1967.1 total,    597.0 free,    611.4 used\n\n    PID USER      %%CPU  %%MEM COMMAND\n", len(n),
		len(n)-1)
	slices.SortStableFunc(n, func(a, b process) int { return cmp.Compare(b.rss, a.rss) })
	for _, p := range n {
		c.printf("%7d %-9s  0.%d  %4.1f %s\n", p.pid, p.user, p.rss%4, float64(p.rss)*100/1967, p.command)
	}
	return 0
}

func uptime(c *call) int {
	up := c.now().Sub(c.shell.machine.booted())
	days, rest := int(up.Hours())/24, up%(24*time.Hour)
	if slices.Contains(c.args, "-p") {
		c.printf("up %d days, %d hours, %d minutes\n", days, int(rest.Hours()), int(rest.Minutes())%60)
		return 0
	}
	c.printf(" %s up %d days, %2d:%02d,  1 user,  load average: 0.21, 0.17, 0.11\n", c.now().Format("15:04:05"), days,
		int(rest.Hours()), int(rest.Minutes())%60)
	return 0
}

func free(c *call) int {
	used := int64(0)
	for _, p := range c.shell.machine.processes() {
		used += int64(p.rss) * mib
	}
	total, cached := int64(1967*mib), int64(690*mib)
	used += 240 * mib
	show := func(n int64) string { return strconv.FormatInt(n/1024, 10) }
	args := strings.Join(c.args, "")
	switch {
	case strings.Contains(args, "h"):
		show = func(n int64) string { return human(n) + "i" }
	case strings.Contains(args, "m"):
		show = func(n int64) string { return strconv.FormatInt(n/mib, 10) }
	}
	c.printf("               total        used        free      shared  buff/cache   available\n")
	c.printf("Mem:    %12s%12s%12s%12s%12s%12s\n", show(total), show(used), show(total-used-cached), show(6*mib),
		show(cached),
		show(total-used-40*mib))
	c.printf("Swap:   %12s%12s%12s\n", show(0), show(0), show(0))
	return 0
}

func kill(c *call) int {
	code := 0
	for _, a := range c.args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		pid, err := strconv.Atoi(a)
		if err != nil {
			code = c.fail(1, "%s: arguments must be process or job IDs", a)
			continue
		}
		if pid == os.Getpid() && c.shell.end != nil { // the interpreter's value of $$
			c.shell.end()
			return 137
		}
		found, err := c.shell.machine.kill(pid)
		switch {
		case err != nil:
			code = c.fail(1, "%v", err)
		case !found:
			code = c.fail(1, "(%d) - No such process", pid)
		}
	}
	return code
}

func (c *call) matching() (out []process) {
	_, words, ok := c.parse("falxu:", "")
	if !ok || len(words) == 0 {
		return nil
	}
	for _, p := range c.shell.machine.processes() {
		if strings.Contains(p.command, words[0]) && p.pid != c.shell.pid {
			out = append(out, p)
		}
	}
	return out
}

func pgrep(c *call) int {
	found := c.matching()
	for _, p := range found {
		if slices.ContainsFunc(c.args,
			func(a string) bool { return a == "-a" || a == "-af" || a == "-fa" || a == "-l" }) {
			c.printf("%d %s\n", p.pid, p.command)
		} else {
			c.printf("%d\n", p.pid)
		}
	}
	return map[bool]int{true: 0, false: 1}[len(found) > 0]
}

func pkill(c *call) int {
	code := 1
	for _, p := range c.matching() {
		if found, err := c.shell.machine.kill(p.pid); err == nil && found {
			code = 0
		}
	}
	return code
}
