package forge

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// earlier returns the name of the account that the user had linked earlier.
func earlier(uid string) string { return uid + "-earlier" }

// linkedBefore links another account of the user first. The attacker has a copy of its document.
func linkedBefore(s *scene) {
	proof.Must(s.Link(s.ctx, s.uid, earlier(s.uid)))
	docs, err := s.App.Store.Get(s.ctx, s.account())
	proof.Must(err)
	s.found = docs[0].Data
	proof.Must(s.Link(s.ctx, s.uid, s.uid))
}

// account returns the path of the user's linked account.
func (s *scene) account() string { return document.ConnectionPath("google", s.uid) }

// linked changes the document of the user's account. The fields in before get their values from the account that was
// linked before.
func (s *scene) linked(fields map[string]any, before ...string) {
	var old map[string]any
	if len(before) > 0 {
		proof.Must(json.Unmarshal(s.found, &old))
	}
	change(s, s.account(), func(l *map[string]any) {
		for name, v := range fields {
			(*l)[name] = v
		}
		for _, name := range before {
			(*l)[name] = old[name]
		}
	})
}

// remove deletes a document.
func (s *scene) remove(path string) {
	docs, err := s.st.Get(s.ctx, path)
	proof.Must(err)
	_, err = s.st.Commit(s.ctx, store.Delete(path, docs[0].Version))
	proof.Must(err)
}

// event approves an event as the card shows it. Unlike an e-mail, an event has no sender that the tool compares.
func event(s *scene) {
	s.SetModel(testkit.Wants(calendar.Name, testkit.Event("Demo", time.Now().Add(time.Hour))))
	s.asked = begun(s.Ask(s.ctx, s.uid, "Make an event for the demo in an hour."))
	s.decide(s.uid, s.asked, "approve_once", 0)
}

// added adds the machine to the user's hosts, and opens a terminal on it.
func added(s *scene) {
	c, err := s.As(s.ctx, s.uid)
	proof.Must(err)
	s.host, err = c.AddHost(s.ctx, s.machine.login(), nil)
	proof.Must(err)
	s.terminal, err = c.OpenTerminal(s.ctx, s.host)
	proof.Must(err)
	s.asked = s.command("true")
}

// command starts a run that runs a command on the user's terminal.
func (s *scene) command(line string) testkit.Answer {
	s.SetModel(testkit.Wants("run_command", testkit.Command(line)))
	c, err := s.As(s.ctx, s.uid)
	proof.Must(err)
	return begun(c.AskOn(s.ctx, s.terminal, "", "Run "+line))
}

// commandApproved approves a command that has not run yet.
func commandApproved(s *scene) {
	added(s)
	s.decide(s.uid, s.asked, "approve_once", 0)
}

// reads starts a run that reads without changing anything. The previous run ends.
func reads(line string) func(*scene) {
	return func(s *scene) {
		s.decide(s.uid, s.asked, "reject", 0)
		s.settle(s.asked)
		s.asked = s.command(line)
	}
}

// commandsNew is like reads, for a command that the user approves as the card shows it.
func commandsNew(s *scene) {
	reads("echo new")(s)
	s.decide(s.uid, s.asked, "approve_once", 0)
}

// hostDoc changes the user's host.
func (s *scene) hostDoc(how func(*terminal.Host)) { change(s, document.HostPath(s.uid, s.host), how) }

// relay sets the address of the user's host to the attacker's.
func relay(s *scene) {
	port, err := strconv.Atoi(s.machine.relayed())
	proof.Must(err)
	s.hostDoc(func(h *terminal.Host) { h.Port = port })
}

// places are the attacks on the documents that determine where a call acts.
var places = []attack{
	{name: "the tokens of an account linked before", begin: linkedBefore, write: func(s *scene) {
		s.linked(map[string]any{"id": "other"}, "refresh")
	}, then: event},
	{name: "the tokens of an account linked before, as an earlier release stored them", begin: linkedBefore,
		write: func(s *scene) {
			s.linked(map[string]any{"id": "other", "bound": false}, "refresh")
		}, then: event},
	{name: "another address on the account", begin: linkedBefore, write: func(s *scene) {
		s.linked(map[string]any{"email": "eve@example.com"})
	}, then: event},
	{name: "another address on the account after the yes", begin: event, write: func(s *scene) {
		s.linked(map[string]any{"email": "eve@example.com"})
	}},
	{name: "another account after the yes", begin: func(s *scene) {
		linkedBefore(s)
		event(s)
	}, write: func(s *scene) {
		change(s, s.account(), func(l *json.RawMessage) { *l = s.found })
	}},
	{name: "the account removed after the yes", begin: event, write: func(s *scene) { s.remove(s.account()) }},
	{name: "commands without a question on a host", host: true, begin: added, write: func(s *scene) {
		s.hostDoc(func(h *terminal.Host) { h.AutoRun = terminal.AutoRunReadOnly })
	}, then: reads("ls")},
	{name: "files without a question on a host", host: true, begin: added, write: func(s *scene) {
		s.hostDoc(func(h *terminal.Host) { h.AutoRun, h.ReadPaths = terminal.AutoRunReadOnly, []string{"/"} })
	}, then: reads("cat /etc/hostname")},
	{name: "another address of a host", host: true, begin: added, write: relay, then: commandsNew},
	{name: "another address of a host, as an earlier release stored it", host: true, begin: added,
		write: func(s *scene) {
			relay(s)
			s.hostDoc(func(h *terminal.Host) { h.Bound = false })
		}, then: commandsNew},
	{name: "another address of a host after the yes", host: true, begin: commandApproved, write: relay},
	{name: "no host keys that are checked", host: true, begin: added, write: func(s *scene) {
		s.hostDoc(func(h *terminal.Host) { h.HostKeys = h.HostKeys[:1] })
	}, then: commandsNew},
	{name: "other host keys after the yes", host: true, begin: commandApproved, write: func(s *scene) {
		s.hostDoc(func(h *terminal.Host) { h.HostKeys = h.HostKeys[:1] })
	}},
	{name: "another login on a host after the yes", host: true, begin: commandApproved, write: func(s *scene) {
		s.hostDoc(func(h *terminal.Host) { h.Username = "root2" })
	}},
	{name: "another directory after the yes", host: true, begin: commandApproved, write: func(s *scene) {
		change(s, document.TerminalPath(s.uid, s.terminal), func(t *terminal.Terminal) { t.Cwd = "/" })
	}},
	{name: "the host removed after the yes", host: true, begin: commandApproved, write: func(s *scene) {
		s.remove(document.HostPath(s.uid, s.host))
	}},
	{name: "the terminal removed after the yes", host: true, begin: commandApproved, write: func(s *scene) {
		s.remove(document.TerminalPath(s.uid, s.terminal))
	}},
}
