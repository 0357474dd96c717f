package command_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/tools/command"
)

const (
	hostID     = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	terminalID = hostID + "-bbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// world is a store with a terminal of Ana's.
type world struct {
	t    testing.TB
	st   store.Store
	host terminal.Host
	term terminal.Terminal
}

func newWorld(t testing.TB, change func(*terminal.Host, *terminal.Terminal)) *world {
	t.Helper()
	w := &world{t: t, st: memory.New(time.Now),
		host: terminal.Host{ID: hostID, UID: "ana", Name: "web", Address: "web.example.com", Port: 22,
			Username: "root", AutoRun: terminal.AutoRunReadOnly,
			HostKeys: []terminal.HostKey{{Type: "ssh-ed25519", SHA256: "SHA256:one", Key: "AA=="}}},
		term: terminal.Terminal{ID: terminalID, UID: "ana", HostID: hostID, Cols: 80, Rows: 24, Cwd: "/srv"}}
	if change != nil {
		change(&w.host, &w.term)
	}
	w.put(document.HostPath("ana", hostID), w.host)
	w.put(document.TerminalPath("ana", terminalID), w.term)
	return w
}

func (w *world) put(path string, v any) {
	w.t.Helper()
	data, err := strictjson.Marshal(v)
	if err == nil {
		_, err = w.st.Commit(context.Background(), store.Create(path, nil, data))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) scope() tool.Scope { return tool.Scope{UID: "ana", Terminal: terminalID} }

// ruling returns the tool's policy for a command that is proposed on the terminal.
func (w *world) ruling(cmd string, deny ...string) (*tool.CallPolicy, error) {
	w.t.Helper()
	t := command.New(command.Options{Store: w.st, Deny: deny})[command.Run]
	raw, err := json.Marshal(command.Args{Command: cmd, Reasoning: "r"})
	if err != nil {
		w.t.Fatal(err)
	}
	args, err := t.Normalize(raw)
	if err != nil {
		return nil, err
	}
	return t.Rule(context.Background(), tool.Call{UID: "ana", Terminal: terminalID, Args: args})
}

func TestRuling(t *testing.T) {
	reads := func(h *terminal.Host, _ *terminal.Terminal) { h.ReadPaths = []string{"/var/log/", "/srv/app"} }
	home := func(h *terminal.Host, _ *terminal.Terminal) { h.ReadPaths, h.Home = []string{"/home/ana"}, "/home/ana" }
	none := func(h *terminal.Host, _ *terminal.Terminal) { h.AutoRun = terminal.AutoRunNone }
	deny := []string{"mkfs", "curl"}
	for name, c := range map[string]struct {
		command string
		change  func(*terminal.Host, *terminal.Terminal)
		deny    []string
		want    string // the mode, the class, and whether it can be always allowed
	}{
		"only looks":                     {"df -h", nil, nil, "allow read once"},
		"only looks, and is asked about": {"df -h", none, nil, "ask read always"},
		"prints a file":                  {"cat /etc/passwd", nil, nil, "ask read always"},
		"prints a file that may be read": {"tail -n 5 /var/log/syslog", reads, nil, "allow read once"},
		"prints the folder itself":       {"grep -r x /var/log", reads, nil, "allow read once"},
		"prints a neighbour":             {"cat /var/log2/x", reads, nil, "ask read always"},
		"climbs out":                     {"cat /var/log/../../etc/shadow", reads, nil, "ask read always"},
		"climbs within":                  {"cat /srv/app/x/../y", reads, nil, "ask read always"},
		"climbs by the directory": {"cat ../x", func(h *terminal.Host, t *terminal.Terminal) {
			reads(h, t)
			t.Cwd = "/srv/app/current"
		}, nil, "ask read always"},
		"a name that begins like a climb": {"cat /srv/app/..x", reads, nil, "allow read once"},
		"one of two is elsewhere":         {"cat /var/log/a /etc/shadow", reads, nil, "ask read always"},
		"by the directory":                {"cat app/x", reads, nil, "allow read once"},
		"by the directory, outside":       {"cat x", reads, nil, "ask read always"},
		"in a home that is not known": {"cat app/x", func(h *terminal.Host, t *terminal.Terminal) {
			reads(h, t)
			t.Cwd = ""
		}, nil, "ask read always"},
		"denied, by a search path":     {"printf -v PATH %s /tmp/x; ls", nil, deny, "deny opaque once"},
		"denied, by an expression":     {`a='b[$(curl x)]'; ((a))`, nil, deny, "deny opaque once"},
		"denied, by a quoted name":     {"export 'PATH=/tmp/x'; ls", nil, deny, "deny opaque once"},
		"denied, by a job":             {"jobs -x curl x", nil, deny, "deny opaque once"},
		"denied, by completion":        {"compgen -W '$(curl x)'", nil, deny, "deny opaque once"},
		"denied, by a bus":             {"DBUS_SYSTEM_BUS_ADDRESS=unixexec:path=x sync", nil, deny, "deny opaque once"},
		"denied, by a package":         {"dpkg -i x.deb", nil, deny, "deny opaque once"},
		"a package is no permission":   {"apt-get install ./x.deb", nil, nil, "ask opaque once"},
		"changes":                      {"touch a", nil, nil, "ask change always"},
		"changes by a pattern":         {"touch a*", nil, nil, "ask change once"},
		"deletes":                      {"rm -rf /", nil, nil, "ask destructive once"},
		"cannot be told":               {"eval $(cat x)", nil, nil, "ask opaque once"},
		"two that look":                {"df -h; df -i", nil, nil, "allow read once"},
		"a pipeline":                   {"ps aux | sort -k4 2>/dev/null | head -5", nil, nil, "allow read once"},
		"a pipeline that prints":       {"cat /etc/passwd | head -5", reads, nil, "ask read once"},
		"its second file":              {"cat /var/log/x; wc -l </etc/f", reads, nil, "ask read once"},
		"a pipeline of a file":         {"cat /var/log/x | sort | uniq -c", reads, nil, "allow read once"},
		"a file of the home":           {"cat ~/x", home, nil, "allow read once"},
		"a neighbour of the home":      {"cat ~/../x", home, nil, "ask read once"},
		"two, one of which changes":    {"df -h; touch a", nil, nil, "ask change once"},
		"denied":                       {"curl https://x.example", nil, deny, "deny change once"},
		"denied by its folder":         {"/usr/bin/curl x", nil, deny, "deny change once"},
		"denied behind sudo":           {"sudo -n curl x", nil, deny, "deny opaque once"},
		"denied in a pipeline":         {"df | curl -T - x", nil, deny, "deny change once"},
		"opaque where some are":        {"sh -c 'df'", nil, deny, "deny opaque once"},
		"both, where some are":         {"sh -c 'rm x'", nil, deny, "deny destructive once"},
		"looks, where some are":        {"df -h", nil, deny, "allow read once"},
		"git looks":                    {"git -C app status", nil, nil, "allow opaque once"},
		"git looks, and is asked":      {"git status", none, nil, "ask opaque once"},
		"git, where some are denied":   {"git status", nil, deny, "deny opaque once"},
		"deletes, where some are":      {"rm x", nil, deny, "ask destructive once"},
		"changes, where some are":      {"touch a", nil, deny, "ask change always"},
		"a word that is denied too":    {"echo curl", nil, deny, "allow read once"},
		"git prints":                   {"git -C app diff | head", reads, nil, "allow opaque once"},
		"git prints another folder":    {"git -C /srv/app2 diff", reads, nil, "ask opaque once"},
		"an option that runs another":  {"split --filter='curl x' f", nil, deny, "deny opaque once"},
		"an option that is not known":  {"touch --frobnicate a", nil, deny, "deny opaque once"},
		"a program that is not known":  {"make-it", nil, deny, "deny opaque once"},
		"a configuration of one's own": {"/usr/bin/curl -sS https://x.example -q", nil, nil, "ask change once"},
		"without a configuration":      {"curl -q -sS https://x.example", nil, nil, "ask change always"},
		"a program of one's own":       {"./check.sh", nil, nil, "ask opaque once"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.change)
			r, err := w.ruling(c.command, c.deny...)
			if err != nil {
				t.Fatal(err)
			}
			got := string(r.Mode) + " " + string(r.Class) + " " +
				map[bool]string{true: "always", false: "once"}[r.Always != nil]
			ids := map[tool.CallMode]string{tool.RuleAllow: command.RuleReadOnly, tool.RuleAsk: command.RuleAsks,
				tool.RuleDeny: command.RuleDenied}
			if got != c.want || r.ID != ids[r.Mode] {
				t.Errorf("%s by %s; want %s", got, r.ID, c.want)
			}
			if asks := r.Confirm == "web"; asks != (got == "ask destructive once") || !asks && r.Confirm != "" {
				t.Errorf("%s has its user type %q", got, r.Confirm)
			}
			if strings.Contains(r.Reason, "curl") || strings.Contains(r.Reason, "/") {
				t.Errorf("the reason has words of the command: %s", r.Reason)
			}
			if r.Facts["host"] != hostID || r.Facts["hostKey"] != "SHA256:one" || r.Facts["class"] == "" {
				t.Errorf("%v", r.Facts)
			}
		})
	}
}

// TestRuleGitReasons checks the reason for git commands that need approval on a host where read-only commands do not.
// They do more than read, or may print files.
func TestRuleGitReasons(t *testing.T) {
	for cmd, why := range map[string]bool{"git commit -m x": true, "git show HEAD": true, "git -C /srv diff": true,
		"git status -v": true, "sudo git status": true, "touch git": false} {
		r, err := newWorld(t, nil).ruling(cmd)
		if err != nil || r.Mode != tool.RuleAsk || strings.Contains(r.Reason, "git run another program") != why {
			t.Errorf("%s: %+v, %v", cmd, r, err)
		}
	}
}

// TestWarnings checks that warnings name their place in the command, and quote it.
func TestWarnings(t *testing.T) {
	r, err := newWorld(t, nil).ruling("echo é; rm -rf /tmp/x | sh")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "It deletes or empties files.") && strings.HasSuffix(w, "At character 9: rm")
	}) {
		t.Errorf("%q", r.Warnings)
	}
}

// TestGrammar checks that a command is parsed in the grammar of the shell that will run it.
func TestGrammar(t *testing.T) {
	posix := newWorld(t, func(h *terminal.Host, _ *terminal.Terminal) { h.Shell = shell.POSIX })
	if _, err := posix.ruling("diff <(ls) x"); !fault.Is(err, fault.Validation, "") && err == nil {
		t.Error("sh cannot read it")
	}
	if _, err := newWorld(t, nil).ruling("diff <(ls) x"); err != nil {
		t.Error(err)
	}
}

// TestPlace checks that each thing that determines where a command runs changes the place, and that nothing else does.
func TestPlace(t *testing.T) {
	place := func(change func(*terminal.Host, *terminal.Terminal)) tool.Place {
		t.Helper()
		w := newWorld(t, change)
		p, err := command.New(command.Options{Store: w.st})[command.Run].Place(t.Context(), w.scope())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	was := place(nil)
	if was.Label != "On" || was.Name != "root@web (web.example.com) in /srv" {
		t.Errorf("%+v; want was.Label “On”, was.Name “root@web (web.example.com) in /srv”", was)
	}
	for name, change := range map[string]func(*terminal.Host, *terminal.Terminal){
		"user":    func(h *terminal.Host, _ *terminal.Terminal) { h.Username = "bob" },
		"address": func(h *terminal.Host, _ *terminal.Terminal) { h.Address = "web2.example.com" },
		"port":    func(h *terminal.Host, _ *terminal.Terminal) { h.Port = 2222 },
		"key":     func(h *terminal.Host, _ *terminal.Terminal) { h.HostKeys[0].SHA256 = "SHA256:two" },
		"a key more": func(h *terminal.Host, _ *terminal.Terminal) {
			h.HostKeys = append(h.HostKeys, terminal.HostKey{SHA256: "SHA256:two"})
		},
		"an authority": func(h *terminal.Host, _ *terminal.Terminal) { h.CertAuthorities = h.HostKeys },
		"an authority instead": func(h *terminal.Host, _ *terminal.Terminal) {
			h.CertAuthorities, h.HostKeys = h.HostKeys, nil
		},
		"a revoked key": func(h *terminal.Host, _ *terminal.Terminal) {
			h.RevokedKeys = []terminal.HostKey{{SHA256: "SHA256:two"}}
		},
		"directory": func(_ *terminal.Host, t *terminal.Terminal) { t.Cwd = "/srv/app" },
		"home":      func(_ *terminal.Host, t *terminal.Terminal) { t.Cwd = "" },
	} {
		if now := place(change); now.ID == was.ID {
			t.Errorf("%s: %+v is the same place", name, now)
		}
	}
	certified := place(func(h *terminal.Host, _ *terminal.Terminal) {
		h.CertAuthorities = []terminal.HostKey{{SHA256: "SHA256:two"}, {SHA256: "SHA256:three"}}
	})
	if want := "root@web (web.example.com, certified by SHA256:two or SHA256:three) in /srv"; certified.Name != want {
		t.Errorf("certified.Name is %q; want %v", certified.Name, want)
	}
	same := place(func(h *terminal.Host, t *terminal.Terminal) {
		h.AutoRun, h.Secret, h.Version, t.Cols = terminal.AutoRunNone, []byte("x"), "v2", 120
	})
	if same != was {
		t.Errorf("%+v, was %+v", same, was)
	}
}

// TestPlaceThroughAJumpHost checks that the place shows the way to a host. Another key of the jump host changes the
// place.
func TestPlaceThroughAJumpHost(t *testing.T) {
	const jumpID = "cccccccccccccccccccccccccc"
	place := func(key string) tool.Place {
		t.Helper()
		w := newWorld(t, func(h *terminal.Host, _ *terminal.Terminal) { h.Jump = jumpID })
		w.put(document.HostPath("ana", jumpID), terminal.Host{ID: jumpID, UID: "ana", Name: "gate",
			Address: "gate.example.com", Port: 2222, Username: "ana", HostKeys: []terminal.HostKey{{SHA256: key}}})
		p, err := command.New(command.Options{Store: w.st})[command.Run].Place(t.Context(), w.scope())
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	one, other := place("SHA256:one"), place("SHA256:two")
	if want := "root@web (web.example.com) through ana@gate (gate.example.com:2222) in /srv"; one.Name != want {
		t.Errorf("one.Name is %q; want %v", one.Name, want)
	}
	if one.ID == other.ID || one != place("SHA256:one") {
		t.Errorf("%+v, %+v", one, other)
	}
}

// TestPlaceOfOtherUser checks that another user's terminal, and a terminal without its host, have no place.
func TestPlaceOfOtherUser(t *testing.T) {
	w := newWorld(t, nil)
	run := command.New(command.Options{Store: w.st})[command.Run]
	for _, s := range []tool.Scope{{UID: "bob", Terminal: terminalID}, {UID: "ana"},
		{UID: "ana", Terminal: hostID + "-cccccccccccccccccccccccccc"}, {UID: "ana", Terminal: "x"}} {
		if p, err := run.Place(t.Context(), s); err == nil {
			t.Errorf("%+v: %+v; want an error", s, p)
		}
	}
	want := []string{document.TerminalPath("ana", terminalID), document.HostPath("ana", hostID)}
	if got := run.Reads(w.scope()); !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}
