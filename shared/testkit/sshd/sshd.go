// Package sshd runs OpenSSH's server for tests on a free port of 127.0.0.1, as the user who runs the tests. Each server
// has its own host keys and home directory, and the login shell that the test requests. Its sessions neither read nor
// write the developer's home directory.
//
// Users log in by key. Passwords cannot be tested: without PAM, the server reads /etc/shadow, which a test must not
// change, and with PAM, it uses the machine's own configuration.
package sshd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// T is the owner of a server: a test, or a program that acts as one. The server ends with it.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// Options of a server. The zero value is a host with bash and an empty home directory.
type Options struct {
	Shell    string   // the login shell: bash (default), dash, zsh, fish or busybox
	Home     string   // default: an empty directory of the test, with a space in its name
	NoHome   bool     // HOME is not set
	Path     string   // PATH of the sessions; default: that of the test. See [Without] and [Busybox]
	Env      []string // KEY=value, additional variables of the sessions
	HostKeys []string // types: ed25519, ecdsa, rsa; default: ed25519 and ecdsa
	Config   []string // further lines of sshd_config, which are read before those of this package
}

// A Server is an OpenSSH server that ends with its test.
type Server struct {
	Addr string // host:port
	Port int
	User string // who can log in
	Home string // HOME of the sessions
	Key  []byte // the private key that may log in, as a file of OpenSSH

	t        T
	dir      string
	program  string
	types    []string
	mu       sync.Mutex
	hostKeys []ssh.PublicKey
	oldKeys  []ssh.PublicKey // before the last NewHostKeys
	running  *exec.Cmd
	log      child.Tail
}

// packages maps shells to Debian's packages.
var packages = map[string]string{"bash": "bash", "dash": "dash", "zsh": "zsh", "fish": "fish",
	"busybox": "busybox-static"}

// need returns the path of a program, and skips the test if the program is missing.
func need(t T, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} { // where users seldom look
			if path, err = exec.LookPath(filepath.Join(dir, program)); err == nil {
				break
			}
		}
	}
	if err != nil {
		realpart.SSHD.Absent(t, program+" (package "+pkg+") is not there")
	}
	return path
}

// works logs in to a server, and runs a command. If that fails, the test is skipped.
var works = realpart.SSHD.Tried(func(t *realpart.Trial) {
	s := start(t, Options{})
	c, err := s.TryDial()
	if err != nil {
		t.Fatalf("a login: %v\n%s", err, s.Log())
	}
	exit, err := c.Exec(context.Background(), supervisor.Exec{Line: "true"})
	if err := errors.Join(err, c.Close()); err != nil || exit != 0 {
		t.Fatalf("a command exits with %d: %v\n%s", exit, err, s.Log())
	}
})

// Start starts a server. If sshd or the shell is missing, or the login fails, the test is skipped, or fails if
// REQUIRE_ALL is 1.
func Start(t T, o Options) *Server {
	t.Helper()
	realpart.SSHD.Take(t)
	need(t, "sshd", "openssh-server")
	works(t)
	return start(t, o)
}

func start(t T, o Options) *Server {
	t.Helper()
	program := need(t, "sshd", "openssh-server")
	shell := o.Shell
	if shell == "" {
		shell = "bash"
	}
	if packages[shell] == "" {
		t.Fatalf("sshd: the shell %q is not known", shell)
	}
	shellPath := need(t, shell, packages[shell])
	me, err := user.Current()
	check(t, err)
	if me.Uid == "0" { // sshd then needs a user and a directory for its unprivileged process
		if _, err := user.Lookup("sshd"); err != nil {
			realpart.SSHD.Absent(t, "the user sshd (package openssh-server) is not there")
		}
		check(t, os.MkdirAll("/run/sshd", 0o755))
	}
	s := &Server{t: t, User: me.Username, Home: o.Home, dir: t.TempDir(), program: program, types: o.HostKeys}
	if s.Home == "" {
		s.Home = filepath.Join(s.dir, "home of one test")
		check(t, os.Mkdir(s.Home, 0o700))
	}
	if len(s.types) == 0 {
		s.types = []string{"ed25519", "ecdsa"}
	}
	port := freeport.For(t)
	s.Addr = net.JoinHostPort("127.0.0.1", port)
	s.Port, err = strconv.Atoi(port)
	check(t, err)
	check(t, os.Mkdir(s.path("nobody"), 0o700))
	s.login(o, shellPath)
	s.clientKey()
	s.NewHostKeys()
	s.configure(o.Config)
	s.Restart()
	t.Cleanup(func() {
		s.Kill()
		// A process that has just been forked is not recognised as one of the host yet, and may still write there.
		await.That(t, "the host's folder can be removed", func() bool {
			s.KillAll()
			return os.RemoveAll(s.dir) == nil
		})
	})
	return s
}

// login writes the program that receives each session: it does the work of login(1).
func (s *Server) login(o Options, shell string) {
	path := o.Path
	if path == "" {
		path = os.Getenv("PATH")
	}
	if filepath.Base(shell) == "busybox" { // busybox is the shell that its name says
		check(s.t, os.Symlink(shell, s.path("ash")))
		shell = s.path("ash")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\nexport PATH=%s SHELL=%s HOME=%s %s=%s\n", Quote(path), Quote(shell), Quote(s.Home),
		variable, Quote(s.dir))
	b.WriteString("cd \"$HOME\" 2>/dev/null || cd /\nunset OLDPWD\n")
	if o.NoHome {
		b.WriteString("unset HOME\n")
	}
	for _, kv := range o.Env {
		key, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s=%s\n", key, Quote(value))
	}
	run, ask := Quote(shell), Quote(shell)+" -l"
	fmt.Fprintf(&b, "if [ -z \"${SSH_ORIGINAL_COMMAND+set}\" ]; then exec %s; fi\n", ask)
	fmt.Fprintf(&b, "printf '%%s\\n' \"$SSH_ORIGINAL_COMMAND\" >>%s\n", Quote(s.path("lines")))
	fmt.Fprintf(&b, "exec %s -c \"$SSH_ORIGINAL_COMMAND\"\n", run)
	check(s.t, os.WriteFile(s.path("login"), []byte(b.String()), 0o700)) // #nosec G306 -- it is a program
}

// Lines returns the commands that the login shell received, oldest first.
func (s *Server) Lines() (all []string) {
	s.t.Helper()
	text, err := os.ReadFile(s.path("lines"))
	if !os.IsNotExist(err) {
		check(s.t, err)
	}
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.TrimSuffix(line, "\n"))
	}
	return all
}

func (s *Server) configure(more []string) {
	lines := append(more,
		"ListenAddress 127.0.0.1:"+strconv.Itoa(s.Port),
		"PidFile none",
		"AuthorizedKeysFile "+strconv.Quote(s.path("authorized_keys")),
		"StrictModes no", "UsePAM no", "PrintMotd no", "PrintLastLog no", "UseDNS no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"MaxStartups 1000", "MaxSessions 250",
		// sshd runs the line with the shell of the user who runs the tests. Without this HOME, that shell would read
		// the user's startup files each time.
		"SetEnv "+strconv.Quote("HOME="+s.path("nobody")),
		"ForceCommand exec "+Quote(s.path("login")),
	)
	for _, kind := range s.types {
		lines = append(lines, "HostKey "+strconv.Quote(s.path("host_"+kind)))
	}
	check(s.t, os.WriteFile(s.path("sshd_config"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// Restart starts the server on its port, after Kill.
func (s *Server) Restart() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	await.That(s.t, "sshd listens", func() bool {
		err := s.start()
		if err != nil && !strings.Contains(s.log.String(), "Address already in use") {
			s.t.Fatalf("sshd: %v\n%s", err, s.log.String())
		}
		return err == nil
	})
}

func (s *Server) start() error {
	cmd := exec.Command(s.program, "-D", "-e", "-f", s.path("sshd_config"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	child.OwnGroup(cmd)
	child.DieWithParent(cmd)
	printed, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	listening := make(chan bool, 1)
	go func() {
		defer close(listening)
		for lines := bufio.NewScanner(printed); lines.Scan(); {
			_, _ = s.log.Write(append(lines.Bytes(), '\n'))
			if strings.HasPrefix(lines.Text(), "Server listening on ") {
				listening <- true // once: there is one address
			}
		}
	}()
	select {
	case ok := <-listening:
		if !ok {
			return fmt.Errorf("it ended: %w", cmd.Wait())
		}
		s.running = cmd
		return nil
	case <-time.After(await.Most):
		_ = cmd.Process.Kill() // Wait has the error that matters
		return fmt.Errorf("not listening: %w", cmd.Wait())
	}
}

// Kill ends the server and cuts all its connections, as a crash does. Programs in its sessions get no signal.
func (s *Server) Kill() {
	s.mu.Lock()
	running := s.running
	s.running = nil
	s.mu.Unlock()
	if running == nil {
		return
	}
	sessions := descendants(running.Process.Pid)
	_ = running.Process.Kill()
	killServers(sessions)
	_ = running.Wait()
}

// Cut cuts all connections; the server continues.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		killServers(descendants(s.running.Process.Pid))
	}
}

// Log returns the end of the server's output.
func (s *Server) Log() string { return s.log.String() }

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// Without returns a PATH with all programs of this machine except the named ones.
func Without(t T, programs ...string) string {
	t.Helper()
	leave := map[string]bool{}
	for _, p := range programs {
		leave[p] = true
	}
	bin := t.TempDir()
	for dir := range strings.SplitSeq(os.Getenv("PATH"), string(os.PathListSeparator)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // PATH may name missing directories
		}
		for _, e := range entries {
			if leave[e.Name()] {
				continue
			}
			err := os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(bin, e.Name()))
			if !errors.Is(err, os.ErrExist) { // only the first one in PATH counts
				check(t, err)
			}
		}
	}
	return bin
}

// Busybox returns a PATH with only busybox's programs: no bash, no script, no GNU programs.
func Busybox(t T) string {
	t.Helper()
	program := need(t, "busybox", packages["busybox"])
	out, err := exec.Command(program, "--list").Output()
	check(t, err)
	bin := t.TempDir()
	for name := range strings.FieldsSeq(string(out)) {
		check(t, os.Symlink(program, filepath.Join(bin, name)))
	}
	return bin
}

// Quote returns s as one word of a POSIX shell.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func check(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("sshd: %v", err)
	}
}
