package demohost

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

func systemctl(c *call) int {
	var words []string
	for _, a := range c.args {
		if !strings.HasPrefix(a, "-") {
			words = append(words, strings.TrimSuffix(a, ".service"))
		}
	}
	if len(words) == 0 {
		words = []string{"list-units"}
	}
	if slices.Contains(c.args, "--failed") {
		words = []string{"list-failed"}
	}
	if len(words) == 1 {
		return c.units(words[0])
	}
	code := 0
	for _, name := range words[1:] {
		code = max(code, c.unit(words[0], name))
	}
	return code
}

func (c *call) units(verb string) int {
	services := c.shell.machine.services()
	switch verb {
	case "is-system-running":
		c.printf("%s\n", map[bool]string{true: "degraded", false: "running"}[slices.ContainsFunc(
			slices.Collect(maps.Values(services)), func(s service) bool { return s.Failed })])
		return 0
	case "daemon-reload", "reset-failed":
		return 0
	case "list-units", "list-unit-files", "list-failed", "status", "list-timers":
	default:
		return c.fail(1, "Unknown command verb '%s', or its unit is not named.", verb)
	}
	c.printf("  UNIT                     LOAD   ACTIVE   SUB     DESCRIPTION\n")
	shown := 0
	for _, name := range slices.Sorted(maps.Keys(services)) {
		s := services[name]
		if verb == "list-failed" && !s.Failed {
			continue
		}
		active, sub := s.words()
		mark := " "
		if s.Failed {
			mark = "●"
		}
		c.printf("%s %-24s loaded %-8s %-7s %s\n", mark, name+".service", active, sub, s.Description)
		shown++
	}
	c.printf("\n%d loaded units listed.\n", shown)
	return 0
}

func (s service) words() (active, sub string) {
	switch {
	case s.Failed:
		return "failed", "failed"
	case s.PID == 0:
		return "inactive", "dead"
	}
	return "active", "running"
}

func (c *call) unit(verb, name string) int {
	m := c.shell.machine
	s, ok := m.service(name)
	if !ok {
		if verb == "is-active" {
			c.printf("inactive\n")
			return 4
		}
		return c.fail(map[bool]int{true: 4, false: 5}[verb == "status"], "Unit %s.service could not be found.", name)
	}
	active, sub := s.words()
	switch verb {
	case "is-active":
		c.printf("%s\n", active)
		return map[bool]int{true: 0, false: 3}[s.PID != 0]
	case "is-enabled":
		c.printf("enabled\n")
	case "is-failed":
		c.printf("%s\n", active)
		return map[bool]int{true: 0, false: 1}[s.Failed]
	case "enable", "disable", "unmask", "mask":
	case "status", "show":
		return c.unitStatus(name, s, active, sub)
	case "start", "stop", "restart", "reload", "try-restart", "reload-or-restart":
		return c.turn(verb, name, s)
	default:
		return c.fail(1, "Unknown command verb '%s'.", verb)
	}
	return 0
}

func (c *call) unitStatus(name string, s service, active, sub string) int {
	mark := map[bool]string{true: "×", false: "●"}[s.Failed]
	if s.PID == 0 && !s.Failed {
		mark = "○"
	}
	c.printf("%s %s.service - %s\n     Loaded: loaded (/usr/lib/systemd/system/%s.service; enabled)\n"+
		"     Active: %s (%s) since %s\n", mark, name, s.Description, name, active, sub,
		s.Since.Format("Mon 2006-01-02 15:04:05 MST"))
	if s.PID == 0 {
		c.logged(name)
		return 3
	}
	c.printf("   Main PID: %d (%s)\n     Memory: %d.0M\n\n", s.PID,
		strings.Fields(strings.ReplaceAll(s.Command, ":", ""))[0], s.RSS)
	c.logged(name)
	return 0
}

// logged shows the last lines of the log that name the unit.
func (c *call) logged(name string) {
	lines, err := c.logLines(name)
	if err != nil {
		return // the log was deleted: there is nothing to show
	}
	c.printf("%s", strings.Join(lines[max(0, len(lines)-5):], ""))
}

// logLines returns the lines of the log that contain a text.
func (c *call) logLines(with string) (lines []string, err error) {
	text, err := c.disk.readFile(syslog)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines, err
}

func (c *call) turn(verb, name string, s service) int {
	m := c.shell.machine
	if name == "nginx" && verb != "stop" {
		if wrong := c.wrongConfiguration(); wrong != "" {
			err := errors.Join(m.change(func(st *state) {
				if verb == "reload" {
					return
				}
				u := st.Services[name]
				u.PID, u.Failed, u.Since = 0, true, c.now()
				st.Services[name] = u
			}), m.log("nginx[%d]: %s", s.PID, wrong),
				m.log("systemd[1]: nginx.service: Failed with result 'exit-code'."))
			if err != nil {
				return c.fail(1, "%v", err)
			}
			fmt.Fprintf(c.err, "Job for nginx.service failed because the control process exited with error code.\n"+
				"See \"systemctl status nginx.service\" and \"journalctl -xeu nginx.service\" for details.\n")
			return 1
		}
	}
	if name == "backup-upload" && verb != "stop" {
		if !c.pause(200 * time.Millisecond) {
			return 1
		}
		if err := m.log("systemd[1]: backup-upload.service: Failed with result 'exit-code'."); err != nil {
			return c.fail(1, "%v", err)
		}
		fmt.Fprintf(c.err, "Job for backup-upload.service failed because the control process exited with error code.\n")
		return 1
	}
	if !c.pause(300 * time.Millisecond) {
		return 1
	}
	if verb == "reload" || verb == "start" && s.PID != 0 {
		return 0
	}
	what := map[bool]string{true: "Stopped", false: "Started"}[verb == "stop"]
	if err := errors.Join(m.turn(name, verb != "stop"), m.log("systemd[1]: %s %s.service - %s.", what, name,
		s.Description)); err != nil {
		return c.fail(1, "%v", err)
	}
	return 0
}

func serviceProgram(c *call) int {
	if len(c.args) < 2 {
		return c.fail(1, "usage: service NAME COMMAND")
	}
	return c.unit(c.args[1], c.args[0])
}

func journal(c *call) int {
	f, _, ok := c.parse("u:n:fxerb", "unit=u lines=n no-pager=N follow=f reverse=r")
	if !ok {
		return 1
	}
	lines, err := c.logLines(strings.TrimSuffix(f['u'], ".service"))
	if err != nil {
		return c.fail(1, "No journal files were found.")
	}
	lines = lines[max(0, len(lines)-max(0, f.number('n', 1000))):]
	if f.has("r") {
		slices.Reverse(lines)
	}
	c.printf("%s", strings.Join(lines, ""))
	if len(lines) == 0 {
		c.printf("-- No entries --\n")
	}
	if f.has("f") {
		return c.follow(syslog)
	}
	return 0
}
