package hostile

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/scripts/dev/demohost"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// runCommand is the tool that runs commands.
const runCommand = "run_command"

// machine is the host on which the commands of a case run. It is the demo host, so no approved command can reach this
// machine.
type machine struct {
	*demohost.Host
	dir, addr string
	key       []byte // the user's key
	ln        net.Listener
	served    chan struct{} // closed when the machine no longer uses ln
}

func (s *env) openMachine(dir string) *machine {
	m := &machine{dir: dir}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	s.must(err)
	block, err := ssh.MarshalPrivateKey(private, "")
	s.must(err)
	m.key = pem.EncodeToMemory(block)
	s.boot(m, "127.0.0.1:0")
	return m
}

// boot starts the machine at the address.
func (s *env) boot(m *machine, addr string) {
	var err error
	m.Host, err = demohost.Open(demohost.Options{Dir: m.dir})
	s.must(err)
	user, err := ssh.ParsePrivateKey(m.key)
	s.must(err)
	s.must(m.Authorize(string(ssh.MarshalAuthorizedKey(user.PublicKey()))))
	ln, err := net.Listen("tcp", addr)
	s.must(err)
	m.addr = ln.Addr().String()
	host, served := m.Host, make(chan struct{})
	m.ln, m.served = ln, served
	go func() {
		defer close(served)
		_ = host.Serve(ln) // it returns on Close
	}()
}

// openHost starts a deployment with a host of the case's user, and returns a terminal on it.
func (s *env) openHost(more map[string]any) string {
	s.machine = s.openMachine(filepath.Join(s.dir, "machine"))
	s.open(nil, "TERMINAL=on", "TERMINAL_HOSTS="+s.machine.addr)
	return s.addHost(more)
}

func (s *env) addHost(more map[string]any) string {
	c := s.client(s.as)
	id, err := c.AddHost(s.ctx, testkit.Login{Addr: s.machine.addr, User: demohost.User, Key: s.machine.key,
		HostKeys: []ssh.PublicKey{s.machine.Key()}}, more)
	s.must(err)
	a := s.call(s.as, "POST", "/api/agent/terminals", jsonOf(map[string]any{"hostId": id, "cols": json.Number("80"),
		"rows": json.Number("24"), "cwd": "/tmp"})) // deletions there do not affect the supervisor's records
	var opened struct{ TerminalID string }
	s.must(json.Unmarshal(a.Body, &opened))
	return opened.TerminalID
}

// begun returns the commands that were started on the machine, which records the bytes of each.
func (s *env) begun() (commands []string) {
	if s.machine == nil {
		return nil
	}
	s.must(filepath.WalkDir(s.machine.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "cmd" || !strings.Contains(path, ".countersign") {
			return err
		}
		text, err := os.ReadFile(path)
		commands = append(commands, string(text))
		return err
	}))
	return commands
}

// command runs a case of tool:run_command. The model makes the case's call on a host that runs read-only commands
// without approval, and on a host that runs none without approval. On the first, nothing is approved. On the second,
// the card must show the whole command before it is approved. A case can give a command's output instead of the
// command.
func command(s *env) got {
	look := s.openHost(map[string]any{"autoRun": "read_only"})
	ask := s.addHost(map[string]any{"name": "quiet"})
	args, _ := s.take("args")
	said, prints := s.take("session_output")
	if prints {
		args = map[string]any{"command": printing(textOf(said))}
	}
	fields, ok := args.(map[string]any)
	if ok && fields["reasoning"] == nil && fields["command"] != nil && !aboutForm.MatchString(s.c.Expect.Note) {
		fields["reasoning"] = "It is required."
	}
	if ok && s.c.Category == "size" && fields["timeoutSeconds"] == nil { // the machine's programs are slow
		fields["timeoutSeconds"] = json.Number("300")
	}
	for _, text := range texts(args, "command", "reasoning") {
		if len(text) >= 12 {
			s.private[text] = true
		}
	}
	s.unasked(look, args, prints)
	before := len(s.begun())
	asked := s.askOn(ask, once(runCommand, args))
	g := gotOf(asked)
	switch {
	case g.status != 200 || len(asked.Actions) == 0:
	case len(asked.Approvals) == 1:
		g.decision = "require_approval"
		if n := len(s.begun()); n != before {
			s.wrong("%d commands were started before any user was asked", n-before)
		}
		s.check(commandShown(s.call(s.as, "GET", "/api/agent/approvals/pending", "").Body, args))
		if harmless(args) {
			if done := s.approved1(asked, args); s.c.Category != "shell" { // shell cases are about the request
				g = done
			}
		}
	case g.class != "none":
		g.decision = "deny"
	default:
		g.decision = "allow"
	}
	return g
}

// printing returns a command that prints the text, which may have bytes that no command can have.
func printing(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch {
		case c == '%':
			b.WriteString("%%")
		case c < ' ' || c > '~' || c == '\\' || c == '\'':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "printf '" + b.String() + "'"
}

// askOn starts a run of the case's user on the terminal.
func (s *env) askOn(terminalID string, model fakegemini.ModelFunc) testkit.Answer {
	s.w.SetModel(model)
	a, err := s.client(s.as).AskOn(s.ctx, terminalID, "", "Please do it.")
	s.must(err)
	return a
}

var allowNote = regexp.MustCompile(`^decision=allow_only_if_host_allowlist`)

// unasked makes the call on a host that runs read-only commands without approval. If the case permits this, its command
// begins exactly once, with exactly the words that the server has read. No other command begins. A command that only
// prints may begin or wait.
func (s *env) unasked(terminalID string, args any, prints bool) {
	asked := s.askOn(terminalID, once(runCommand, args))
	begun := s.begun()
	allowed := allowNote.MatchString(s.c.Expect.Note)
	if !allowed && (!prints || len(begun) == 0) {
		if len(begun) > 0 {
			s.wrong("it was started without approval: %q", begun)
		}
		if len(asked.Approvals) > 0 {
			s.resolve(s.as, asked.Approvals[0], "reject")
			s.must(s.deliver())
		}
		return
	}
	want := texts(args, "command")
	for i, command := range want {
		j, err := shell.Judge(command, shell.Bash)
		s.must(err)
		want[i] = j.Line("", nil)
	}
	if !slices.Equal(begun, want) || asked.Status != "completed" {
		s.wrong("it should have run unasked: %q begun, %s", begun, asked.Body)
	}
	s.mu.Lock()
	s.allowed += len(begun)
	s.mu.Unlock()
}

// harmless reports whether the machine survives the command: the command cannot fill, stop or block the machine.
func harmless(args any) bool {
	return !regexp.MustCompile(`\|:|shutdown|reboot`).MatchString(strings.Join(texts(args, "command"), ""))
}

// approved1 approves the only card, and compares the command that began with the one shown.
func (s *env) approved1(asked testkit.Answer, args any) got {
	before := s.begun()
	s.decided(s.as, asked, "approve_once")
	after := s.begun()
	want := texts(args, "command")[0]
	if j, err := shell.Judge(want, shell.Bash); err == nil {
		want = j.Command
	}
	if len(after) != len(before)+1 || !slices.Contains(after, want) {
		s.wrong("the yes to %q began %q", want, after)
	}
	done := s.run(s.as, asked)
	g := gotOf(done)
	g.decision = "require_approval"
	s.check(outputBounded(done))
	return g
}

// outputBounded checks that the output in the model's response is limited, with a mark where text is omitted.
func outputBounded(done testkit.Answer) error {
	var v struct {
		Actions []struct {
			Step struct {
				Output    string
				Truncated bool
			}
		}
	}
	if err := json.Unmarshal(done.Body, &v); err != nil || len(v.Actions) == 0 {
		return fmt.Errorf("the run has no action (%w)", err)
	}
	if step := v.Actions[0].Step; len(step.Output) > 2000*4 || len(step.Output) > 1900 && !step.Truncated {
		return fmt.Errorf("%d bytes of an output are shown, truncated: %t", len(step.Output), step.Truncated)
	}
	return nil
}

// commandShown compares the pending card with the call: the host, the account, and every byte of the command and the
// reasoning, with invisible characters written out.
func commandShown(body []byte, args any) error {
	if err := shownWhole(body, runCommand, nil); err != nil {
		return err
	}
	var list struct {
		Approvals []struct {
			Preview struct {
				Fields []struct{ Label, Value string }
			}
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return err
	}
	shown := map[string]string{}
	for _, f := range list.Approvals[0].Preview.Fields {
		shown[f.Label] = f.Value
	}
	for label, text := range map[string]string{"Command": texts(args, "command")[0],
		"The assistant says": texts(args, "reasoning")[0]} {
		want, _ := visible.Text(text)
		if j, err := shell.Judge(text, shell.Bash); label == "Command" && err == nil {
			want, _ = visible.Text(j.Command)
		}
		if shown[label] != want {
			return fmt.Errorf("the card shows %q as %q", want, shown[label])
		}
	}
	if !strings.HasPrefix(shown["On"], demohost.User+"@quiet (127.0.0.1:") {
		return fmt.Errorf("the card gives %q as the place", shown["On"])
	}
	return nil
}

// connect runs a case of ssh:connect: a host that differs from the one that its user confirmed, or that must not be
// reached. The result is that of a command there, or of the request to add the host.
func connect(s *env) got {
	on := s.openHost(nil)
	if changed, ok := s.take("hostkey"); ok {
		if !strings.Contains(textOf(changed), "changed") {
			s.unknown("hostkey %v", changed)
		}
		return s.otherKey(on)
	}
	host := s.takeText("host")
	if host == "" {
		s.unknown("ssh:connect without a host")
	}
	a := s.call(s.as, "POST", "/api/agent/hosts", jsonOf(map[string]any{"name": "x", "host": host, "username": "root",
		"auth": map[string]any{"kind": "password", "password": "a password"}, "hostKeys": []any{hostKeyOf(s.machine)}}))
	if a.HTTP/100 != 2 {
		g := gotOf(a)
		g.status, g.decision = 200, "deny" // the host is refused before a run can exist
		return g
	}
	var added struct{ HostID string }
	s.must(json.Unmarshal(a.Body, &added))
	terminalID, err := s.client(s.as).OpenTerminal(s.ctx, added.HostID)
	s.must(err)
	return s.refused(terminalID)
}

func hostKeyOf(m *machine) map[string]any {
	var key terminal.HostKey
	k := m.Key()
	key.Type, key.SHA256 = k.Type(), ssh.FingerprintSHA256(k)
	return map[string]any{"type": key.Type, "sha256": key.SHA256, "key": base64.StdEncoding.EncodeToString(k.Marshal())}
}

// otherKey makes another machine answer at the host's address, with a key of its own.
func (s *env) otherKey(on string) got {
	s.must(s.machine.Close())
	_ = s.machine.ln.Close() // Close may have closed it
	<-s.machine.served
	s.machine.dir = filepath.Join(s.dir, "other machine")
	s.boot(s.machine, s.machine.addr)
	return s.refused(on)
}

// refused approves a command on the terminal. It must not begin.
func (s *env) refused(terminalID string) got {
	asked := s.askOn(terminalID, once(runCommand, testkit.Command("touch x")))
	if len(asked.Approvals) == 1 {
		s.decided(s.as, asked, "approve_once")
		asked = s.run(s.as, asked)
	}
	if begun := s.begun(); len(begun) > 0 {
		s.wrong("a command was started: %q", begun)
	}
	return gotOf(asked)
}
