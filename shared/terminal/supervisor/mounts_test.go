package supervisor_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestMountedOnDemand makes a host report mounts of an automounter or of a user's file system. A command that runs
// without approval reads none of these folders, neither through a link nor while it searches a folder.
func TestMountedOnDemand(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mounts := filepath.Join(dir, "mounts")
	table := "/dev/root / fuse.root rw 0 0\nnone DIR/net autofs rw 0 0\nx DIR/of\\040one fuse.sshfs rw 0 0\n" +
		"y DIR/plain/below fuse rw 0 0\nz DIR/disk ext4 rw 0 0\n"
	err = errors.Join(err, os.WriteFile(mounts, []byte(strings.ReplaceAll(table, "DIR", dir)), 0o600))
	for _, name := range []string{"net/host", "of one", "plain/below", "disk"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	for name, to := range map[string]string{"link": "disk/../net/host", "own": "/proc/self/root", "fd": "/dev/fd",
		"fine": "disk", "loop": "loop"} {
		err = errors.Join(err, os.Symlink(to, filepath.Join(dir, name)))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := sshd.Start(t, sshd.Options{Env: []string{"COUNTERSIGN_MOUNTS=" + mounts}})
	k, err := supervisor.Open(t.Context(), s.Dial())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"": nil, "disk": nil, "fine": nil, "plain": nil, "nowhere": nil,
		"net": supervisor.ErrMounted, "net/host/x": supervisor.ErrMounted, "of one/x": supervisor.ErrMounted,
		"link/x": supervisor.ErrMounted, "own/etc": supervisor.ErrMounted, "fd/0": supervisor.ErrMounted,
		"loop":        supervisor.ErrMounted,
		"disk/../net": supervisor.ErrMounted, "plain/below": supervisor.ErrMounted, "WALK disk": nil,
		"d*": nil, "n*": supervisor.ErrMounted, "*n*": supervisor.ErrMounted,
		"WALK plain": supervisor.ErrMounted, "WALK ": supervisor.ErrMounted} {
		name, walks := strings.CutPrefix(path, "WALK ")
		for i, o := range []supervisor.Opens{
			{Looks: []string{dir + "/" + name}, Walks: walks},
			{Looks: []string{"./" + name}, Walks: walks},
			{Paths: []supervisor.Path{{Name: dir + "/" + name, Shown: "x"}}, Within: []string{dir}, Walks: walks},
		} {
			if i == 2 && (name == "nowhere" || strings.Contains(name, "*")) { // nothing is opened by a pattern
				want = supervisor.ErrMissing
			}
			id := strings.NewReplacer("/", "_", " ", "_", "*", "star").Replace(path) + "_" + string(rune('a'+i))
			_, err := k.Start(t.Context(), supervisor.Start{ID: id, Command: "true", Grammar: shell.Bash, Plain: true,
				Limit: await.Most, Cwd: dir, Opens: o}, io.Discard)
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%q (%d): %v; want %v", path, i, err, want)
			}
		}
	}
}

// TestKernelFiles makes a host report file systems whose files the kernel provides. A command that runs without
// approval reads no file whose content a reader consumes, such as a pipe of traces, and searches none of these folders.
func TestKernelFiles(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mounts := filepath.Join(dir, "mounts")
	table := "a DIR/proc proc rw 0 0\nb DIR/sys sysfs rw 0 0\nc DIR/sys/trace\\040d tracefs rw 0 0\n"
	err = errors.Join(err, os.WriteFile(mounts, []byte(strings.ReplaceAll(table, "DIR", dir)), 0o600))
	for _, name := range []string{"proc", "proc2", "sys/trace d/cpu0", "srv/sub"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"proc/kmsg", "proc/kcore", "proc/cpuinfo", "proc2/kmsg", "sys/uevent",
		"sys/trace d/cpu0/trace_pipe", "srv/f"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600))
	}
	if err := errors.Join(err, os.Symlink("../proc/kmsg", filepath.Join(dir, "srv/link"))); err != nil {
		t.Fatal(err)
	}
	s := sshd.Start(t, sshd.Options{Env: []string{"COUNTERSIGN_MOUNTS=" + mounts}})
	k, err := supervisor.Open(t.Context(), s.Dial())
	if err != nil {
		t.Fatal(err)
	}
	start := func(id string, o supervisor.Opens) error {
		_, err := k.Start(t.Context(), supervisor.Start{ID: id, Command: "true", Grammar: shell.Bash, Plain: true,
			Limit: await.Most, Cwd: dir, Opens: o}, io.Discard)
		return err
	}
	if err := start("look", supervisor.Opens{Looks: []string{"srv/link"}}); !errors.Is(err, supervisor.ErrSpecial) {
		t.Errorf("a look at such a file: %v", err)
	}
	if err := start("walk", supervisor.Opens{Looks: []string{"proc"}, Walks: true}); err != nil {
		t.Errorf("a search by name: %v", err)
	}
	for name, want := range map[string]supervisor.FileKind{"proc/kmsg": supervisor.FileOther,
		"srv/link": supervisor.FileOther, "proc/cpuinfo": supervisor.FileRegular} {
		if f, err := k.File(t.Context(), dir+"/"+name); err != nil || f.Kind != want || f.SHA256 != "" && f.Size == 0 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	n := 0
	for path, want := range map[string]error{"proc/kmsg": supervisor.ErrSpecial, "proc/kcore": supervisor.ErrSpecial,
		"srv/link": supervisor.ErrSpecial, "proc/cpuinfo": nil, "proc2/kmsg": nil, "sys/uevent": nil, "srv/f": nil,
		"sys/trace d/cpu0/trace_pipe": supervisor.ErrSpecial, "sys/trace d": supervisor.ErrSpecial, "WALK srv": nil,
		"WALK srv/f": nil, "WALK proc": supervisor.ErrSpecial, "WALK sys/trace d/cpu0": supervisor.ErrSpecial,
		"WALK proc/cpuinfo": nil, "WALK ": supervisor.ErrSpecial, "WALK proc2": nil} {
		name, walks := strings.CutPrefix(path, "WALK ")
		n++
		err := start(fmt.Sprintf("k%d", n), supervisor.Opens{Within: []string{dir}, Walks: walks,
			Paths: []supervisor.Path{{Name: strings.TrimSuffix(dir+"/"+name, "/"), Shown: "x"}}})
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: %v; want %v", path, err, want)
		}
	}
}
