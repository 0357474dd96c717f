package demohost

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

var testNow = time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)

func openTest(t *testing.T) *Host {
	t.Helper()
	h, err := Open(Options{Dir: filepath.Join(t.TempDir(), "host"), Now: func() time.Time { return testNow }})
	return cleanup.Close(t, h, err)
}

// say executes a command, and returns all its output and its exit code.
func (h *Host) say(t testing.TB, command string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	out := &shown{}
	s := &shell{machine: h.machine}
	o := s.run(ctx, work{command: command, vars: base(), dir: home, out: out, errs: out})
	if ctx.Err() != nil {
		t.Errorf("%q does not end", command)
	}
	return out.String(), o.code
}

// shown records the output of commands.
type shown struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Write(p[:min(len(p), max(0, 1<<20-s.b.Len()))])
	return len(p), nil
}

func (s *shown) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// secret is in a file next to the disk, and must never be shown. Commands contain it only in pieces.
const secret = "of-the-developers-machine"

// hostile lists commands that try to leave the disk. OUT is the path of the folder around the disk on the real machine.
var hostile = []string{
	"cat OUT/secret", "cat ../../../../../../../../../../OUT/secret", "cat /../OUT/secret", "cat ../secret",
	"cat /../secret",
	"cd ..; cd ..; cd ..; cat secret", "cd /; cat ../secret; cd ..; cat secret", "cat < OUT/secret",
	"cat 0< ../../secret",
	"echo $(<OUT/secret)", "echo $(cat OUT/secret)", "echo `cat ../../../secret`", "source OUT/secret", ". OUT/secret",
	". ../../secret", "exec cat OUT/secret", "exec < OUT/secret; cat", "bash OUT/secret", "sh -c 'cat OUT/secret'",
	"ln -s OUT/secret /tmp/l; cat /tmp/l; cat < /tmp/l; . /tmp/l; cp /tmp/l /tmp/m; cat /tmp/m",
	"ln -s ../../../../../../../../../../../../../../../../OUT/secret /tmp/l; cat /tmp/l; head /tmp/l; grep . /tmp/l",
	"ln -s ../../secret /tmp/l; cat /tmp/l", "ln -s .. /tmp/up; cat /tmp/up/../secret; cat /tmp/up/up/up/secret",
	"ln -s OUT /tmp/d; ls /tmp/d; cat /tmp/d/secret; cd /tmp/d; ls; cat secret; echo *; echo /tmp/d/*",
	"ln OUT/secret /tmp/h; cat /tmp/h", "ln ../../secret /tmp/h; cat /tmp/h", "mv OUT/secret /tmp/x; cat /tmp/x",
	"cp OUT/secret /tmp/x; cat /tmp/x", "cp -r OUT /tmp/x; cat /tmp/x/secret",
	"cp -a /tmp/../.. /tmp/x; cat /tmp/x/secret",
	"echo OUT/*; echo OUT/secre?; echo ../../*; echo /*/../../*", "shopt -s globstar; echo OUT/**",
	"echo changed > OUT/secret", "echo changed >> ../../../secret", "echo changed > OUT/new", "touch OUT/new",
	"mkdir OUT/new",
	"echo x | tee OUT/new", "rm -rf OUT", "rm -rf OUT/secret", "rm -rf /", "rm -rf /*", "rm -rf ../../..",
	"rm -rf .. .",
	"ln -s OUT /tmp/d; rm -rf /tmp/d/", "ln -s OUT /tmp/d; rm -rf /tmp/d/secret", "ln -s OUT /tmp/d; touch /tmp/d/new",
	"ln -s OUT/new /tmp/n; echo changed > /tmp/n",
	"ln -s OUT/secret /tmp/n; echo changed > /tmp/n; truncate -s 0 /tmp/n",
	"ln -s OUT /tmp/d; mv /etc/passwd /tmp/d/new", "ln -s OUT /tmp/d; find /tmp/d/ -delete", "find OUT -type f -delete",
	"find /tmp/../../.. -name secret -exec cat {} \\;", "chmod -R 777 OUT", "chmod 000 OUT/secret",
	"ln -s OUT/secret /tmp/l; chmod 777 /tmp/l; touch /tmp/l", "sed -i s/of/no/ OUT/secret",
	"cat <(cat OUT/secret)", "cat <(echo x) > OUT/new", "echo x > >(cat > OUT/new)", "eval 'cat <(echo x)'",
	"trap 'cat OUT/secret' EXIT", "trap 'cat <(echo x)' EXIT", "f() { cat OUT/secret; }; f & wait",
	"cat OUT/secret & wait",
	"alias cat='cat OUT/secret'; cat", "exec 3<OUT/secret; cat <&3", "read x < OUT/secret; echo $x",
	"mapfile x < OUT/secret; echo ${x[@]}", "while read l; do echo $l; done < OUT/secret", "cat <<< $(<OUT/secret)",
	"exec > OUT/new; echo changed", "cat /proc/self/environ; cat /proc/1/root/OUT/secret; ls /proc/self/root/OUT",
	"cat /proc/self/cwd/secret; cat /dev/fd/3; cat /dev/fd/../../OUT/secret", "echo x > /dev/tcp/127.0.0.1/22",
	"exec 3<>/dev/tcp/127.0.0.1/22; cat <&3", "cat < /dev/tcp/127.0.0.1/22", "/bin/cat OUT/secret",
	"/usr/bin/env cat OUT/secret",
	"env -i /bin/sh -c 'cat OUT/secret'", "OUT/run", "sudo OUT/run", "command OUT/run", "exec OUT/run", "env OUT/run",
	"bash -c OUT/run",
	"nohup OUT/run", "echo OUT/run | xargs -n1 env", "find /etc/hostname -exec OUT/run \\;", "PATH=OUT run",
	"export PATH=OUT; run",
	"export PATH=OUT:$PATH; command -v run; type run; type -p run; which run", "hash -p OUT/run ls; ls", "source run",
	"export PATH=OUT; source run; . secret; . run", "LD_PRELOAD=OUT/run ls", "BASH_ENV=OUT/run bash -c true",
	"ENV=OUT/run sh -c true", "cd OUT; pwd; pwd -P; ls; cat secret", "command pwd -P",
	"builtin pwd -P; builtin cd OUT; pwd",
	"command source OUT/secret", "builtin . OUT/secret", "builtin source OUT/run", "command eval '. OUT/secret'",
	"builtin command builtin . OUT/secret", "HOME=OUT; cd; cat secret; cat ~/secret", "cat ~root/../OUT/secret",
	"echo ~nobody/x",
	"TMPDIR=OUT; cat <(echo x)", "export TMPDIR=OUT; bash -c 'cat <(echo x)'", "env TMPDIR=OUT bash -c 'cat <(echo x)'",
	"cat /dev/null/pipes/sh-interp-1", "PWD=OUT; cat secret; cd .; pwd", "pushd OUT; cat secret; dirs",
	"cd -P OUT; cat secret",
	"test -e OUT/secret && echo there", "[ -f OUT/secret ] && echo there", "[[ -r OUT/secret ]] && echo there",
	"[ -O OUT/secret ] && echo there",
	"ls -la OUT", "ls -R OUT", "du -a OUT", "stat OUT/secret", "file OUT/secret",
	"readlink -f OUT/secret; realpath OUT",
	"wc OUT/secret; sort OUT/secret; uniq OUT/secret; cut -c1- OUT/secret; tac OUT/secret; nl OUT/secret; " +
		"sha256sum OUT/secret",
	"tail -n 3 OUT/secret; head -c 9 OUT/secret; sed -n 1p OUT/secret; tr a b < OUT/secret; grep -r . OUT; xargs cat " +
		"<<< OUT/secret",
	"tar cf - OUT; dd if=OUT/secret; python3 -c 'print(1)'; perl -e 1; nc -l 1; curl file:///OUT/secret; ssh " +
		"127.0.0.1; mkfifo OUT/new",
	"mount --bind OUT /mnt; chroot OUT; nsenter -t 1 -a; unshare -r", "kill -9 $$; kill 1; kill -9 -1; kill $PPID",
	"cat \"$(echo OUT)/secret\"", "x=OUT; cat ${x}/secret; cat ${x}/{secret,run}", "printf '%s' OUT/secret | xargs cat",
	"echo 'cat OUT/secret' > /tmp/s; chmod +x /tmp/s; /tmp/s; bash /tmp/s; . /tmp/s; sh < /tmp/s",
	"cat OUT/secret 2>&1 >/dev/stdout",
	"cp /tmp/../../secret /tmp/a; cp ./../../../../secret /tmp/a; cat /tmp/a",
	"cat 'OUT//secret' OUT/./secret /./OUT/secret",
	"select x in a; do cat OUT/secret; break; done <<< 1", "coproc cat OUT/secret", "time cat OUT/secret",
	"! cat OUT/secret",
	"mv /tmp OUT/new; mv / OUT/new; cp /etc/passwd OUT/new",
	"ln -s / /tmp/root; cat /tmp/root/OUT/secret; ls /tmp/root/..",
	"mkdir /tmp/a; ln -s ../.. /tmp/a/up; mv /tmp/a/up /up; cat /up/secret; ls /up; ls /up/; cat /up/disk/../secret",
}

// outside creates a file that must not be shown and a program that must not run, in the folder around the disk.
func outside(t testing.TB, h *Host) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(filepath.Dir(h.machine.disk.root.Name()))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"secret": "echo " + secret + "\n",
		"run": "#!/bin/sh\necho " + secret + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents lists the files around the disk, with their modes.
func contents(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(dir, "disk"):
			return filepath.SkipDir
		case path == filepath.Join(dir, "machine.json"):
			return nil
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.WriteString(strings.Join([]string{path, info.Mode().String(), string(text)}, " "))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCommandsConfined executes commands that try to leave the disk, as if their user had approved each.
func TestCommandsConfined(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	h := openTest(t)
	dir := outside(t, h)
	before := contents(t, dir)
	for _, line := range hostile {
		command := strings.ReplaceAll(line, "OUT", dir)
		out, _ := h.say(t, command)
		if strings.Contains(out, secret) || strings.Contains(out, "there\n") {
			t.Errorf("%q sees it:\n%s", line, out)
		}
		if line == "echo ~nobody/x" && out != "/nonexistent/x\n" {
			t.Errorf("%q asks the real machine: %s", line, out)
		}
		if got := contents(t, dir); got != before {
			t.Fatalf("%q changed what lies around the disk:\n%s\nwas:\n%s", line, got, before)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 1 { // the host's own folder
			t.Errorf("%q left %v in the real folder for temporary files (%v)", line, left, err)
		}
	}
}

// TestSimulatedFiles checks that commands see only the simulated machine's files, even where the real disk has
// others.
func TestSimulatedFiles(t *testing.T) {
	h := openTest(t)
	dir := outside(t, h)
	for command, want := range map[string]string{
		"echo OUT/s*":                                     "OUT/s*\n",
		"PATH=OUT; command -v run; type -p run":           "type: run: not found\n",
		"PATH=OUT; type run; which run; builtin type run": "type: run: not found\ntype: run: not found\n",
		"PATH=OUT; source run; builtin . run": "source: run: No such file or directory\n.: run: No such " +
			"file or directory\n",
		"PATH=OUT; run": "run: command not found\n",
		"mkdir -p /proc/self; cd /proc/self; pwd -P; command pwd -P; builtin pwd -P"://
		"/proc/self\n/proc/self\n/proc/self\n",
		"echo ~daemon ~root ~ ~nobody":  "~daemon /root /root /nonexistent\n",
		"echo $HOME $UID $USER $TMPDIR": "/root 0 root\n",
		"cd OUT || echo $?":             "cd: no such file or directory: \"OUT\"\n1\n",
	} {
		real := strings.NewReplacer("OUT", dir)
		if out, _ := h.say(t, real.Replace(command)); out != real.Replace(want) {
			t.Errorf("%q says %q", command, out)
		}
	}
}

// FuzzNoCommandLeaves recombines the parts of hostile commands.
func FuzzNoCommandLeaves(f *testing.F) {
	for _, line := range hostile {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 400 || strings.ContainsAny(line, "\x00") || strings.Contains(line, "{1..") ||
			strings.Count(line, "..") > 20 || strings.Count(line, "=$") > 2 {
			t.Skip("it is too long, or grows without end and takes all of the time")
		}
		h := openTest(t)
		dir := outside(t, h)
		before := contents(t, dir)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s := &shell{machine: h.machine}
		w := &shown{}
		s.run(ctx, work{command: strings.ReplaceAll(line, "OUT", dir), vars: base(), dir: home, out: w, errs: w})
		if strings.Contains(w.String(), secret) {
			t.Errorf("%q sees it", line)
		}
		if got := contents(t, dir); got != before {
			t.Errorf("%q changed what lies around the disk", line)
		}
	})
}

func TestLimits(t *testing.T) {
	realpart.Long(t, "it fills a disk and starts many processes")
	h := openTest(t)
	h.machine.disk.most = 8 << 20
	const endless = "while true; do echo x; done | head -n 1" // only its time limit ends it here
	for command, says := range map[string]string{
		"f() { f; }; f":             "nesting level",
		"yes > /tmp/much; echo $?":  "141",
		":(){ :|:& };:; echo after": "",
		endless:                     "x",
	} {
		within := await.Most
		if command == endless {
			within = 10 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), within)
		w := &shown{}
		(&shell{machine: h.machine}).run(ctx, work{command: command, vars: base(), dir: home, out: w, errs: w})
		cancel()
		if !strings.Contains(w.String(), says) {
			t.Errorf("%q says %q", command, w.String())
		}
	}
	if info, err := h.machine.disk.stat("/tmp/much"); err != nil || info.Size() > 8<<20 {
		t.Errorf("more was written than there is room for: %v, %v", info, err)
	}
}
