package docker_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/container/docker"
)

var ana = container.Owner{UID: "ana", RunID: "run_1"}

// open returns an engine on Podman.
func open(t *testing.T) (*docker.Engine, *podman.Engine) {
	t.Helper()
	real := podman.Start(t)
	e, err := docker.Open(docker.Config{Host: real.Host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	return e, real
}

// started returns a running container of Ana's.
func started(t *testing.T, e *docker.Engine, name string) string {
	t.Helper()
	id, err := e.Create(t.Context(), ana, container.Spec{Name: container.NamePrefix + name, ActionID: name,
		Image: podman.Image, Memory: 64 << 20, Group: "g"})
	if err == nil {
		err = e.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// runs runs a shell command in the container and returns its output and exit code.
func runs(t *testing.T, e *docker.Engine, id, line string) (stdout, stderr string, exit int) {
	t.Helper()
	var out, errs bytes.Buffer
	process, err := e.NewProcess(t.Context(), id, []string{"/bin/sh", "-c", line})
	if err == nil {
		err = e.Run(t.Context(), process, container.Streams{Stdout: &out, Stderr: &errs})
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), ended(t, e, process).ExitCode
}

func ended(t *testing.T, e *docker.Engine, process string) container.Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	for {
		p, err := e.Look(ctx, process)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Running {
			return p
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPodmanContainerLimits(t *testing.T) {
	e, _ := open(t)
	id := started(t, e, "a1")
	const none = "0000000000000000\n"
	for line, want := range map[string]string{
		"id -u; id -g":                                             "1000\n1000\n",
		"touch /x 2>/dev/null || echo no":                          "no\n",
		"echo ok >/work/x && cat /work/x; pwd":                     "ok\n/work\n",
		"grep -E 'Cap(Eff|Bnd)' /proc/self/status":                 "CapEff:\t" + none + "CapBnd:\t" + none,
		"grep NoNewPrivs /proc/self/status":                        "NoNewPrivs:\t1\n",
		"ls /sys/class/net":                                        "lo\n",
		"ulimit -Hn":                                               "4096\n",
		"grep -c . /proc/1/environ >/dev/null; echo $HOME $TMPDIR": "/work /work\n",
	} {
		if got, errs, _ := runs(t, e, id, line); got != want {
			t.Errorf("%s prints %q (%s); want %q", line, got, errs, want)
		}
	}
	if _, _, exit := runs(t, e, id, "head -c 100000000 /dev/zero >/work/big; e=$?; rm /work/big; exit $e"); exit == 0 {
		t.Error("more was written than there is room")
	}
	out, errs, exit := runs(t, e, id, "echo out; echo err >&2; exit 7")
	if out != "out\n" || errs != "err\n" || exit != 7 {
		t.Errorf("%q, %q, %d; want out %q, errs %q, exit 7", out, errs, exit, "out\n", "err\n")
	}
}

func TestPodmanForeignContainer(t *testing.T) {
	e, real := open(t)
	id := started(t, e, "a1")
	foreign := real.Run("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:1024",
		podman.Image, "/bin/sleep", "1000")
	for _, o := range []container.Owner{{UID: "bea", RunID: ana.RunID}, {UID: ana.UID, RunID: "run_2"}} {
		if _, err := e.Find(t.Context(), o, id); !errors.Is(err, container.ErrMissing) {
			t.Errorf("%v finds it: %v", o, err)
		}
		if l, err := e.List(t.Context(), o, "", true); err != nil || len(l) != 0 {
			t.Errorf("%v has %v, %v", o, l, err)
		}
	}
	if _, err := e.Find(t.Context(), ana, foreign); !errors.Is(err, container.ErrMissing) {
		t.Errorf("a container of another program is found: %v", err)
	}
	l, err := e.List(t.Context(), ana, "g", false)
	if err != nil || len(l) != 1 || l[0].ID != id || l[0].State != container.Running || l[0].Group != "g" {
		t.Errorf("ana has %+v, %v", l, err)
	}
	if l, err := e.List(t.Context(), ana, "h", true); err != nil || len(l) != 0 {
		t.Errorf("there is %+v in the group h: %v", l, err)
	}
	if c, err := e.Find(t.Context(), ana, container.NamePrefix+"a1"); err != nil || c.ID != id || c.ActionID != "a1" {
		t.Errorf("by its name is found %+v, %v", c, err)
	}
}

func TestPodmanNameTaken(t *testing.T) {
	e, real := open(t)
	id := started(t, e, "a1")
	_, err := e.Create(t.Context(), ana, container.Spec{Name: container.NamePrefix + "a1", Image: podman.Image,
		Memory: 64 << 20})
	if !errors.Is(err, container.ErrTaken) && !tool.IsAmbiguous(err) { // Docker says 409, Podman 500
		t.Errorf("created twice: %v", err)
	}
	if n := real.Containers(); n != 1 {
		t.Errorf("there are %d containers", n)
	}
	if err := e.Start(t.Context(), id); err != nil {
		t.Errorf("a second start: %v", err)
	}
	_, err = e.Create(t.Context(), ana, container.Spec{Name: container.NamePrefix + "a2", Image: "localhost/other:1",
		Memory: 64 << 20})
	if !errors.Is(err, container.ErrMissing) {
		t.Errorf("an image that is not there: %v", err)
	}
	if err := e.Remove(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := e.Remove(t.Context(), id); !errors.Is(err, container.ErrMissing) {
		t.Errorf("removed twice: %v", err)
	}
}

// TestPodmanImageWithVolumes checks that the engine creates no directory on its host.
func TestPodmanImageWithVolumes(t *testing.T) {
	e, real := open(t)
	real.Keep()
	_, err := e.Create(t.Context(), ana, container.Spec{Name: container.NamePrefix + "a1", Image: podman.Keeping,
		Memory: 64 << 20})
	if !fault.Is(err, fault.Policy, fault.CodeForbidden) || !strings.Contains(err.Error(), podman.Keeping) {
		t.Errorf("it is made: %v", err)
	}
	if n := real.Containers(); n != 0 {
		t.Errorf("there are %d containers", n)
	}
}

// TestPodmanProcessStartsOnce starts a process a second time after it has ended. The second start is ambiguous and runs
// nothing.
func TestPodmanProcessStartsOnce(t *testing.T) {
	e, _ := open(t)
	id := started(t, e, "a1")
	process, err := e.NewProcess(t.Context(), id, []string{"/bin/sh", "-c", "echo x >>/work/n"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := e.Look(t.Context(), process); err != nil || p.Started || p.Running {
		t.Errorf("before its start it is %+v, %v", p, err)
	}
	var out bytes.Buffer
	to := container.Streams{Stdout: &out, Stderr: &out}
	if err := e.Run(t.Context(), process, to); err != nil {
		t.Fatal(err)
	}
	if p := ended(t, e, process); !p.Started || p.ExitCode != 0 {
		t.Errorf("after it has ended it is %+v", p)
	}
	if err := e.Run(t.Context(), process, to); !tool.IsAmbiguous(err) {
		t.Errorf("a second start: %v", err)
	}
	if got, _, _ := runs(t, e, id, "cat /work/n"); got != "x\n" {
		t.Errorf("it ran: %q", got)
	}
	if err := e.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Look(t.Context(), process); !errors.Is(err, container.ErrMissing) {
		t.Errorf("of a container that is gone: %v", err)
	}
}

// TestPodmanProcessWithoutReader stops reading from a process while it runs.
func TestPodmanProcessWithoutReader(t *testing.T) {
	e, _ := open(t)
	id := started(t, e, "a1")
	process, err := e.NewProcess(t.Context(), id, []string{"/bin/sh", "-c",
		"echo begun; while [ ! -e /work/go ]; do sleep 0.1; done; echo on; exit 5"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := e.Run(ctx, process, container.Streams{Stdout: writer(func(p []byte) {
		if strings.Contains(string(p), "begun") {
			cancel()
		}
	}), Stderr: writer(func([]byte) {})}); !errors.Is(err, context.Canceled) {
		t.Errorf("left with %v", err)
	}
	if p, err := e.Look(t.Context(), process); err != nil || !p.Running || !p.Started {
		t.Errorf("it is %+v, %v", p, err)
	}
	runs(t, e, id, "touch /work/go")
	if p := ended(t, e, process); p.ExitCode != 5 {
		t.Errorf("it ended as %+v", p)
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
