package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

type hostsReply struct {
	Hosts []struct {
		HostID, Name, Host, AutoRun string
		Port                        int
		HostKeys                    []struct{ SHA256 string }
	}
}

func (u *served) hosts() (h hostsReply) {
	u.t.Helper()
	u.call(http.MethodGet, "/api/agent/hosts", nil, &h)
	return h
}

// TestDemoHostAtSignIn expects that each user who signs in has the demo host once, and can reach it.
func TestDemoHostAtSignIn(t *testing.T) {
	u := serve(t)
	u.as("ana")
	h := u.hosts()
	if len(h.Hosts) != 1 || h.Hosts[0].Name != "demo" || h.Hosts[0].Port != u.s.demo.port ||
		h.Hosts[0].AutoRun != "read_only" {
		t.Fatalf("after two sign-ins there are %+v", h)
	}
	var facts struct {
		OS string
	}
	u.call(http.MethodPost, "/api/agent/hosts/"+h.Hosts[0].HostID+"/check", map[string]any{}, &facts)
	var gone struct{ OK bool }
	u.call(http.MethodDelete, "/api/agent/hosts/"+h.Hosts[0].HostID, nil, &gone)
	if h := u.hosts(); len(h.Hosts) != 0 {
		t.Errorf("after it was deleted there are %+v", h)
	}
	if h := u.as("ana").hosts(); len(h.Hosts) != 1 {
		t.Errorf("after another sign-in there are %+v", h)
	}
	if h := u.as("ben").hosts(); len(h.Hosts) != 1 {
		t.Errorf("another user has %+v", h)
	}
}

// TestTerminalsOff expects no demo host if terminals are off.
func TestTerminalsOff(t *testing.T) {
	t.Setenv("TERMINAL", "off")
	u := serve(t)
	if h := u.hosts(); len(h.Hosts) != 0 || u.s.demo != nil {
		t.Errorf("there are %+v", h)
	}
}

// terminal opens a terminal on the demo host.
func (u *served) terminal() string {
	u.t.Helper()
	var opened struct{ TerminalID string }
	u.call(http.MethodPost, "/api/agent/terminals", map[string]any{"hostId": u.hosts().Hosts[0].HostID, "cols": 100,
		"rows": 30}, &opened)
	return opened.TerminalID
}

// task runs a task on a terminal. Its user answers each card with decide, until the run ends.
func (u *served) task(terminal, prompt string, decide func(command string) string) (commands []string, summary string) {
	u.t.Helper()
	c := testkit.Connect(nil, u.base, u.token)
	a, err := c.AskOn(u.t.Context(), terminal, "", prompt)
	for i := 0; err == nil && len(a.Approvals) > 0 && i < 10; i++ {
		var args struct{ Command string }
		if err := json.Unmarshal(a.Approvals[0].Args, &args); err != nil {
			u.t.Fatal(err)
		}
		commands = append(commands, args.Command)
		if a, err = c.Resolve(u.t.Context(), a.Approvals[0], decide(args.Command)); err == nil {
			a, err = u.settled(c, a.RunID)
		}
	}
	if err != nil || a.Status != "completed" {
		u.t.Fatalf("%q: %v, %s after %q", prompt, err, a.Body, commands)
	}
	return commands, a.Summary
}

// settled waits until a run waits for its user or has ended.
func (u *served) settled(c testkit.Client, run string) (a testkit.Answer, err error) {
	await.That(u.t, "the run ends, or waits for its user", func() bool {
		a, err = c.Run(u.t.Context(), run)
		return err != nil || a.Status == "awaiting_confirmation" || a.Status == "completed" || a.Status == "failed"
	})
	return a, err
}

func yes(string) string { return "approve_once" }
func no(string) string  { return "reject" }

// TestTasksOnTheDemoHost runs each task that the demo model knows, as a new user.
func TestTasksOnTheDemoHost(t *testing.T) {
	u := serve(t)
	terminal := u.terminal()
	const removal = "rm -v -- /tmp/core.nginx.2231 /tmp/db-dump-old.sql /tmp/upload-7f3a.part " +
		"/tmp/build-cache/layer-03.tar /tmp/build-cache/layer-01.tar /tmp/build-cache/layer-02.tar " +
		"/tmp/build-cache/layer-04.tar"
	const disk = "Check disk usage and clean up /tmp if over 50%"
	for _, task := range []struct {
		prompt   string
		decide   func(string) string
		commands string
		says     string
	}{
		{disk, no, removal, "Nothing was deleted, and /tmp stays 74% full. You rejected it."},
		{disk, yes, removal, "7 old files (739 MiB) were deleted from /tmp. /tmp was 74% full and is 2% full now, " +
			"with 1013M free."},
		{disk, yes, "", "/tmp is on /tmp, which is 2% full. That is not over 50%, so nothing was deleted."},
		{"install htop", no, "apt-get install -y htop", "Htop was not installed. You rejected it."},
		{"install htop", yes, "apt-get install -y htop", "htop is installed: /usr/bin/htop."},
		{"please install htop", yes, "", "htop is there already: /usr/bin/htop. Nothing was installed."},
		{"install nosuchthing", yes, "apt-get install -y nosuchthing\napt-get update\napt-get install -y nosuchthing",
			"Nosuchthing was not installed. It ended with exit code 100: E: Unable to locate package nosuchthing"},
		{"what is running?", yes, "",
			"9 processes run. Those with the most memory: node /srv/shop/server.js (www-data, 203 MiB)"},
		{"restart nginx", yes, "nginx -t\nsystemctl restart nginx", "nginx was restarted, and is active."},
		{"run `echo 'events {' > /etc/nginx/nginx.conf`", yes, "echo 'events {' > /etc/nginx/nginx.conf", "It ran"},
		{"restart nginx", yes, "nginx -t", "nginx was not restarted, and is still active. It ended with exit code 1:"},
		{"restart nosuchthing", yes, "", "There is no service nosuchthing that could be restarted."},
		{"write a poem", yes, "",
			"I do not understand “write a poem”, so I did nothing about it. I'm Countersign's offline demo model"},
		{"don't clean up anything", yes, "", "I did nothing about it."},
	} {
		commands, summary := u.task(terminal, task.prompt, task.decide)
		if strings.Join(commands, "\n") != task.commands || !strings.Contains(summary, task.says) {
			t.Errorf("%q asked for %q and ended with %q", task.prompt, commands, summary)
		}
	}
	c := testkit.Connect(nil, u.base, u.token)
	a, err := c.AskOn(t.Context(), terminal, "terminal-chat", disk)
	if err != nil || a.Status != "completed" || !strings.Contains(a.Summary, "Here I only talk: nothing is run.") {
		t.Errorf("talking: %v %s", err, a.Body)
	}
}
