package demohost

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// packages lists the installed and the available packages.
var packages = map[string]struct {
	version, about string
	there          bool
}{
	"htop":           {"3.4.1-5", "interactive processes viewer", false},
	"tree":           {"2.2.1-1", "displays an indented directory tree", false},
	"ncdu":           {"1.22-1", "ncurses disk usage viewer", false},
	"nginx":          {"1.26.3-3", "small, powerful, scalable web server", true},
	"openssh-server": {"1:10.0p1-7", "secure shell (SSH) server", true},
	"postgresql-17":  {"17.6-0", "object-relational SQL database", true},
	"bash":           {"5.2.37-2", "GNU Bourne Again SHell", true}, "coreutils": {"9.7-3", "GNU core utilities", true},
}

func (c *call) hasPackage(name string) bool {
	return packages[name].there || c.shell.machine.installed(name)
}

func apt(c *call) int {
	f, words, ok := c.parse("yqsf",
		"yes=y assume-yes=y quiet=q no-install-recommends=N installed=I purge=P dry-run=s upgradable=U")
	if !ok || len(words) == 0 {
		return c.fail(100, "a command is required: update, install, remove, list, show, upgrade")
	}
	switch verb, names := words[0], words[1:]; verb {
	case "update":
		for _, line := range []string{"Hit:1 stable InRelease", "Get:2 stable/main amd64 Packages [1,204 kB]",
			"Fetched 1,204 kB in 0s (2,410 kB/s)", "Reading package lists... Done"} {
			if !c.say("%s", line) {
				return 1
			}
		}
		return 0
	case "install":
		return c.install(f, names)
	case "remove", "purge", "autoremove":
		return c.uninstall(f, names)
	case "upgrade", "full-upgrade", "dist-upgrade":
		c.say("Reading package lists... Done")
		c.say("0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.")
		return 0
	case "list":
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			switch {
			case len(names) > 0 && !slices.Contains(names, name), f.has("I") && !c.hasPackage(name), f.has("U"):
			case c.hasPackage(name):
				c.printf("%s/stable,now %s amd64 [installed]\n", name, packages[name].version)
			default:
				c.printf("%s/stable %s amd64\n", name, packages[name].version)
			}
		}
		return 0
	case "show", "search", "policy", "clean":
		for _, name := range names {
			if p, ok := packages[name]; ok {
				c.printf("Package: %s\nVersion: %s\nDescription: %s\n", name, p.version, p.about)
			}
		}
		return 0
	default:
		return c.fail(100, "Invalid operation %s", verb)
	}
}

// say prints a line after a short delay, as a working program would.
func (c *call) say(format string, args ...any) bool {
	if !c.pause(120 * time.Millisecond) {
		return false
	}
	c.printf(format+"\n", args...)
	return true
}

func (c *call) install(f flags, names []string) int {
	c.say("Reading package lists... Done")
	c.say("Building dependency tree... Done")
	var wanted []string
	for _, name := range names {
		switch _, known := packages[name]; {
		case !known:
			fmt.Fprintf(c.err, "E: Unable to locate package %s\n", name)
			return 100
		case c.hasPackage(name):
			c.say("%s is already the newest version (%s).", name, packages[name].version)
		default:
			wanted = append(wanted, name)
		}
	}
	if len(wanted) > 0 {
		c.say("The following NEW packages will be installed:\n  %s", strings.Join(wanted, " "))
	}
	c.say("0 upgraded, %d newly installed, 0 to remove and 0 not upgraded.", len(wanted))
	if len(wanted) == 0 || f.has("s") {
		return 0
	}
	if !c.agreed(f) {
		return 1
	}
	for _, name := range wanted {
		for _, line := range []string{"Get:1 stable/main amd64 " + name + " amd64 " + packages[name].version,
			"Selecting previously unselected package " + name + ".",
			"Unpacking " + name + " (" + packages[name].version + ") ...",
			"Setting up " + name + " (" + packages[name].version + ") ..."} {
			if !c.say("%s", line) {
				return 1
			}
		}
		if err := c.shell.machine.change(func(s *state) { s.Packages = append(s.Packages, name) }); err != nil {
			return c.fail(100, "%v", err)
		}
	}
	return 0
}

func (c *call) agreed(f flags) bool {
	if f.has("y") {
		return true
	}
	c.printf("Do you want to continue? [Y/n] ")
	if a := strings.ToLower(strings.TrimSpace(c.answer())); c.Err() != nil || a != "" && a[0] != 'y' || c.in == nil {
		c.printf("Abort.\n")
		return false
	}
	return true
}

func (c *call) uninstall(f flags, names []string) int {
	c.say("Reading package lists... Done")
	for _, name := range names {
		if !c.shell.machine.installed(name) {
			c.say("Package '%s' is not installed, so not removed", name)
			continue
		}
		c.say("The following packages will be REMOVED:\n  %s", name)
		if !c.agreed(f) {
			return 1
		}
		if !c.say("Removing %s (%s) ...", name, packages[name].version) {
			return 1
		}
		if err := c.shell.machine.change(func(s *state) {
			s.Packages = slices.DeleteFunc(s.Packages, func(p string) bool { return p == name })
		}); err != nil {
			return c.fail(100, "%v", err)
		}
	}
	return 0
}

func dpkg(c *call) int {
	if len(c.args) == 0 || !slices.Contains([]string{"-l", "-s", "--list", "--status"}, c.args[0]) {
		return c.fail(2, "of dpkg there are -l and -s on this machine")
	}
	code := 0
	for _, name := range c.args[1:] {
		if !c.hasPackage(name) {
			code = c.fail(1, "no packages found matching %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		if c.hasPackage(name) && (len(c.args) == 1 || slices.Contains(c.args[1:], name)) {
			c.printf("ii  %-16s %-12s amd64        %s\n", name, packages[name].version, packages[name].about)
		}
	}
	return code
}
