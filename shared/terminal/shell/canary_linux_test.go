package shell_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// A sandbox runs lines as an unprivileged user, in namespaces of their own without a network. It records every system
// call with which a process writes, connects, signals another process, or waits.
type sandbox struct{ dir string }

// sandboxed tries out the programs that the sandbox needs.
var sandboxed = realpart.Strace.Tried(func(t *realpart.Trial) {
	t.Run(exec.Command("unshare", append(isolated, "-e", "trace=kill", "true")...))
})

// isolated holds the arguments of unshare that precede those of strace. The package lists are hidden, because apt takes
// seconds to read them as an unprivileged user. Only a name server could know the machine's own name.
var isolated = []string{"--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
	"sh", "-c", `mount -t tmpfs none /var/lib/apt/lists 2>/dev/null; mount --bind /dev/null /etc/hosts
	exec strace -u nobody --seccomp-bpf -f -qq -y -s 512 -e signal=none "$@"`, "strace"}

// watched lists the system calls that are recorded.
const watched = "trace=open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link," +
	"linkat,symlink,symlinkat,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,truncate,ftruncate," +
	"fallocate,utime,utimes,utimensat,futimesat,setxattr,lsetxattr,fsetxattr,removexattr,lremovexattr,fremovexattr," +
	"mount,umount2,swapon,swapoff,reboot,sethostname,setdomainname,settimeofday,clock_settime,init_module," +
	"finit_module,delete_module,setpriority,ptrace,bpf,connect,bind,listen,accept,accept4,sendto,sendmsg,sendmmsg," +
	"kill,tkill,tgkill,rt_sigqueueinfo,rt_tgsigqueueinfo,pidfd_send_signal,nanosleep,clock_nanosleep,pause," +
	"inotify_add_watch"

// line is the text that the sandbox's shell runs for a line: two markers, and a third one if something has read its
// input.
const line = `true 2>/dev/null </line/%d
%s
IFS= read -r -u 9 at 9</proc/self/fdinfo/0
[ "$at" = "pos:	0" ] || true 2>/dev/null </read/%d
exec <../keys
`

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	realpart.Strace.Take(t)
	for _, name := range []string{"unshare", "strace", "bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			realpart.Strace.Absent(t, name+" is not there")
		}
	}
	if os.Geteuid() != 0 {
		realpart.Strace.Absent(t, "the sandbox is made by root, and this is another user")
	}
	sandboxed(t)
	s := &sandbox{t.TempDir()}
	for dir := s.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // #nosec G302 -- the sandbox's user reads it
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(s.path("made"), []byte(`set -e
mkdir work; cd work; git init -qb main; mkdir -p src docs d a b vendor; seq 99 >../keys
for f in README.md f a.go src/main.go docs/x.md data.txt access.log; do echo "x error 1 10.0.0.1 foo" >"$f"; done
for i in 1 2 3; do git add .; git -c user.name=a -c user.email=a@example.com commit -qm "fix $i"; echo $i >>f; done
git tag v1.0; git branch release; chown -R nobody ..; chmod 644 ../keys
`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := s.command(t.Context(), "bash", "made").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return s
}

func (s *sandbox) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sandbox) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = s.dir, []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/nonexistent", "LANG=C.UTF-8", "PAGER=cat", "GIT_PAGER=cat", "SYSTEMD_PAGER=cat", "TERM=xterm",
		"PIP_DISABLE_PIP_VERSION_CHECK=1", "PYTHONDONTWRITEBYTECODE=1", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_OPTIONAL_LOCKS=0"}
	return cmd
}

// run runs the lines one after the other, and returns the first recorded calls of each line that has any.
func (s *sandbox) run(t *testing.T, lines []string) map[string][]string {
	t.Helper()
	var script strings.Builder
	for i, command := range lines {
		fmt.Fprintf(&script, line, i, command, i)
	}
	script.WriteString("true 2>/dev/null </line/end\n")
	if err := errors.Join(os.WriteFile(s.path("script"), []byte(script.String()), 0o644), // #nosec G306 -- it is read
		os.RemoveAll(s.path("calls"))); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), await.Most)
	defer stop()
	cmd := s.command(ctx, "unshare", append(isolated, "-e", watched, "-o", s.path("calls"),
		"bash", "-c", "cd work; exec <../keys; . ../script")...)
	out, err := cmd.CombinedOutput()
	calls, readErr := os.ReadFile(s.path("calls"))
	if readErr != nil {
		t.Fatalf("%v, %v: %s", readErr, err, out)
	}
	found, end := callsOf(lines, string(calls))
	if end != "end" {
		t.Errorf("it did not come to its end, but to line %s (%v)", end, err)
	}
	return found
}

var (
	marker = regexp.MustCompile(`open(?:at)?\((?:AT_FDCWD<[^>]*>, )?"/line/([0-9a-z]+)"`)
	call   = regexp.MustCompile(`^([0-9]+) +([a-z0-9_]+)\((.*)`)
	signal = regexp.MustCompile(`^(-?[0-9]+), (?:([0-9]+), )?`)
)

// callsOf returns the recorded calls by line, and the last marker.
func callsOf(lines []string, calls string) (found map[string][]string, last string) {
	found = map[string][]string{}
	for text := range strings.Lines(calls) {
		if m := marker.FindStringSubmatch(text); m != nil {
			last = m[1]
			continue
		}
		m := call.FindStringSubmatch(text)
		i, err := strconv.Atoi(last)
		if m == nil || err != nil || strings.HasPrefix(m[2], "syscall_") || // a process that has just ended
			!acts(lines[i], m[1], m[2], m[3]) {
			continue
		}
		if some := found[lines[i]]; len(some) < 3 {
			found[lines[i]] = append(some, strings.TrimSpace(text))
		}
	}
	return found, last
}

// acts reports whether a call writes, connects, signals another process, or waits.
func acts(line, pid, name, args string) bool {
	if elsewhere.MatchString(args) {
		return false
	}
	switch name {
	case "open", "openat", "openat2":
		return opensToWrite.MatchString(args) && !opensNothing.MatchString(args) &&
			!(strings.Contains(args, `"/dev/tty", O_RDONLY`) && asksForWidth.MatchString(line)) &&
			!(strings.Contains(args, `"/read/`) && wantsTerminal.MatchString(line))
	case "connect":
		return !(strings.Contains(args, "AF_UNIX") && (asksForNames.MatchString(args) || asksDaemon(line, args)))
	case "bind":
		return !strings.Contains(args, "AF_NETLINK")
	case "sendto", "sendmsg", "sendmmsg":
		return sendsTo.MatchString(args) || changesByNetlink.MatchString(args)
	case "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo":
		m := signal.FindStringSubmatch(args)
		return m != nil && m[1] != pid && m[2] != pid && !strings.Contains(args, ", 0)") &&
			!strings.Contains(args, "SIGURG") // the Go runtime sends it
	case "nanosleep", "clock_nanosleep":
		return sleeps.MatchString(args) && !counted.MatchString(line)
	}
	return true
}

var (
	opensToWrite = regexp.MustCompile(`O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)|"/dev/tty"|"/read/`)
	opensNothing = regexp.MustCompile(
		`^(?:AT_FDCWD<[^>]*>, )?"(?:/dev/null"|/dev/tty", O_RD[A-Z]*\|[A-Z_|]*O_NONBLOCK)`)

	// elsewhere matches calls that would do nothing on a host. The home directory does not exist, git has a copy of the
	// repository's index, ip sends a link without index and name to test the kernel, and pip tests for IPv6.
	elsewhere = regexp.MustCompile(`"/nonexistent/|/work/\.git/index(?:\.lock)?"|` +
		`nlmsg_len=32, nlmsg_type=RTM_NEWLINK.*ifi_index=0, |AF_INET6, sin6_port=htons\(0\).*"::1"`)

	// asksForWidth matches programs that open the terminal to find its width.
	asksForWidth = regexp.MustCompile(`\b(?:apropos|whatis|man) `)

	// wantsTerminal matches programs that read their input only if it is not a terminal; on a host it is one.
	wantsTerminal = regexp.MustCompile(`^git shortlog\b`)

	// counted matches programs that wait between measurements, whose number is in the line.
	counted = regexp.MustCompile(`\bvmstat [0-9]+ [0-9]+`)

	// asksForNames matches the sockets at which the C library looks up users and groups before it reads the files.
	asksForNames = regexp.MustCompile(`"/(?:var/)?run/(?:nscd/socket|systemd/userdb/[^"]*)"`)

	sendsTo          = regexp.MustCompile(`\bsa_family=AF_(?:INET|PACKET)`)
	changesByNetlink = regexp.MustCompile(`nlmsg_type=(?:RTM_(?:NEW|DEL|SET)|[A-Z_]*(?:NEW|DEL|SET|DESTROY))`)
	sleeps           = regexp.MustCompile(`tv_sec=[1-9]`)
)

// daemons maps the programs that talk to a daemon of the machine to a part of the daemon's socket path.
var daemons = map[string]string{"docker": "docker", "systemctl": "systemd|dbus", "loginctl": "systemd|dbus",
	"hostnamectl": "systemd|dbus", "timedatectl": "systemd|dbus", "localectl": "systemd|dbus", "busctl": "dbus",
	"networkctl": "systemd|dbus", "resolvectl": "systemd|dbus", "systemd-analyze": "systemd|dbus", "nmcli": "dbus",
	"journalctl": "systemd", "systemd-cgls": "systemd|dbus", "snap": "snapd", "firewall-cmd": "dbus", "who": "systemd",
	"w": "systemd", "uptime": "systemd", "ps": "systemd"}

// asksDaemon reports whether the socket belongs to a daemon that a program of the line is expected to talk to.
func asksDaemon(line, args string) bool {
	for name := range strings.FieldsSeq(line) {
		if part := daemons[name]; part != "" && regexp.MustCompile(`"@?/[^"]*(?:`+part+`)`).MatchString(args) {
			return true
		}
	}
	return false
}

var canaryAll = flag.Bool("canary", false, "run all lines in the sandbox, which takes minutes")

// TestCanary runs lines of testdata that run without approval: a fifth of them, or all with -canary, except those that
// walk through the whole machine. No line writes, connects, signals another process, or waits.
func TestCanary(t *testing.T) {
	t.Parallel()
	realpart.Unraced(t)
	s := newSandbox(t)
	var lines []string
	for _, name := range []string{"oneliners.txt", "everyday.txt", "readers.txt", "lookers.txt"} {
		for _, command := range spelledOut(t, name) {
			j, err := shell.Judge(strings.TrimPrefix(command, "? "), shell.Bash)
			switch {
			case err != nil || slices.Contains(j.Looks, "/") || slices.Contains(j.Looks, "/var"):
			case j.Class == shell.ReadOnly:
				lines = append(lines, j.Line("/nonexistent", nil))
			case j.Repository != nil:
				lines = append(lines, j.Command)
			}
		}
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	every, some := realpart.Trials(20, 5), []string(nil)
	for i, line := range lines {
		if *canaryAll || i%every == 0 {
			some = append(some, line)
		}
	}
	for some := range slices.Chunk(some, 200) {
		found := s.run(t, some)
		for _, line := range slices.Sorted(maps.Keys(found)) {
			t.Errorf("%s:\n\t%s", line, strings.Join(found[line], "\n\t"))
		}
	}
}

// TestCanaryNotices runs lines that write, connect, signal another process, or wait. The sandbox must record each.
func TestCanaryNotices(t *testing.T) {
	t.Parallel()
	realpart.Unraced(t)
	s := newSandbox(t)
	lines := []string{
		"echo x > g", "echo x >> f", ": > /etc/passwd", "touch f", "mkdir /var/tmp/x", "rm -f nothing", "mv f f",
		"chmod 600 f", "ln -s f l", "echo x | tee h", "sort -o f f", "find . -name nothing -o -name h -delete",
		"git tag v2", "git for-each-ref >k", "sed -i s/x/y/ f", "awk 'BEGIN {print > \"m\"}'", "truncate -s 0 f",
		"dd if=/dev/null of=f", "exec 5<>/dev/tcp/127.0.0.1/80", "echo x >/dev/udp/127.0.0.1/53",
		"getent hosts example.com", "hostname -f", "ls; logger x", "kill -TERM 1", "(kill -KILL $PPID)", "cat",
		"read x", "sleep 1",
		"tail -f --pid 999999 f", "head -c 1 >/dev/null", "cat </dev/tty", "hostname x", "date -s 2020-01-01",
		"ip link add x type dummy", "ip link set lo up", "ip addr add 10.0.0.1/8 dev lo",
	}
	found := s.run(t, lines)
	for _, line := range lines {
		if len(found[line]) == 0 {
			t.Errorf("%q was not noticed", line)
		}
	}
}
