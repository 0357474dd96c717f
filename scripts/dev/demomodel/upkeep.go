package demomodel

import (
	"fmt"
	"strconv"
	"strings"
)

// minutes is the time limit of commands that load or start something.
const minutes = 300 // seconds

func install(w *work) {
	name, ok := w.named("package", "htop")
	if !ok {
		return
	}
	there, ok := w.run("See whether "+name+" is there already.", "which "+name)
	switch {
	case !ok:
		return
	case there.ok():
		w.complete("%s is there already: %s. Nothing was installed.", name, there.lastWords())
		return
	case there.failed != "":
		w.complete("I could not find out whether %s is there, so nothing was installed. %s", name, there.why())
		return
	}
	command := "apt-get install -y " + name
	r, ok := w.run(name+" is not there. Install its package, without questions in between.", command, minutes)
	if ok && strings.Contains(r.Output, "Unable to locate package") {
		lists, ok := w.run("The package is not known. Its lists may be old: fetch them again.", "apt-get update",
			minutes)
		if !ok {
			return
		}
		if lists.ok() {
			if r, ok = w.run("Try again with the new lists.", command, minutes); !ok {
				return
			}
		}
	}
	if !ok {
		return
	}
	if !r.ok() {
		w.complete("%s was not installed. %s", capitalise(name), r.why())
		return
	}
	if there, ok = w.run("See that it is there.", "which "+name); !ok {
		return
	}
	if !there.ok() {
		w.complete("The package %s was installed, but there is no program of that name. %s", name, there.why())
		return
	}
	w.complete("%s is installed: %s.", name, there.lastWords())
}

func restart(w *work) {
	name, ok := w.named("service", "nginx")
	if !ok {
		return
	}
	before, ok := w.run("See whether the service is there, and runs.", "systemctl is-active "+name)
	state := before.lastWords()
	switch {
	case !ok:
		return
	case before.failed != "" || before.ExitCode == 4 || before.ExitCode == 127:
		w.complete("There is no service %s that could be restarted. %s", name, before.why())
		return
	}
	if name == "nginx" {
		checked, ok := w.run("Its configuration must be right, or it would not start again.", "nginx -t")
		if !ok {
			return
		}
		if !checked.ok() {
			w.complete("nginx was not restarted, and is still %s. %s", state, checked.why())
			return
		}
	}
	r, ok := w.run(fmt.Sprintf("The service is %s. Restart it.", state), "systemctl restart "+name, 60)
	if !ok {
		return
	}
	if r.no() {
		w.complete("%s was not restarted, and is still %s. %s", name, state, r.why())
		return
	}
	after, ok := w.run("See that it runs.", "systemctl is-active "+name)
	switch {
	case !ok:
	case r.ok() && after.ok():
		w.complete("%s was restarted, and is %s.", name, after.lastWords())
	case !r.ok():
		w.complete("%s could not be restarted, and is %s now. %s", name, after.lastWords(), r.why())
	default:
		w.complete("%s was restarted, but is %s now.", name, after.lastWords())
	}
}

func whatRuns(w *work) {
	listed, ok := w.run("See the processes; those that use most memory first.", "ps aux --sort=-rss")
	if !ok {
		return
	}
	var most []string
	n := 0
	for line := range strings.Lines(listed.Output) {
		f := strings.Fields(line)
		if len(f) < 11 || f[0] == "USER" {
			continue
		}
		if kib, err := strconv.ParseInt(f[5], 10, 64); err == nil {
			if n++; len(most) < 5 {
				most = append(most, fmt.Sprintf("%s (%s, %s)", excerpt(strings.Join(f[10:], " "), 60), f[0],
					sized(kib)))
			}
		}
	}
	if n == 0 {
		w.complete("I could not find out what is running. %s", listed.why())
		return
	}
	failed, ok := w.run("See whether a service has failed.", "systemctl --failed --no-pager")
	if !ok {
		return
	}
	var units []string
	for _, word := range strings.Fields(failed.Output) {
		if strings.HasSuffix(word, ".service") {
			units = append(units, word)
		}
	}
	said := "No service has failed."
	switch {
	case !failed.ok():
		said = "I could not find out whether a service has failed."
	case len(units) > 0:
		said = "Failed: " + strings.Join(units, ", ") + "."
	}
	w.complete("%d processes run. Those with the most memory: %s. %s", n, strings.Join(most, ", "), said)
}
