// Package podman runs Podman's service for tests, as an engine that speaks Docker's API and runs real containers. Each
// service has its own directory with a socket and a store, and one image made from busybox, because no registry is
// used. It needs root; rootless Podman was not tried.
package podman

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// Image is the engine's image. It has busybox's programs, and no /work.
const Image = "localhost/busybox:1"

// Keeping is [Image] with a volume. [Engine.Keep] creates it.
const Keeping = "localhost/keeping:1"

// T is the owner of an engine: a test, or a trial of the part. The engine ends with it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Cleanup(func())
}

// An Engine is a running service. The service and its containers end with the test.
type Engine struct {
	Host   string // DOCKER_HOST
	t      T
	dir    string
	podman string
	root   []byte // the files of the image, as an archive without its end
}

// works runs a container. If that fails, the test is skipped.
var works = realpart.Podman.Tried(func(t *realpart.Trial) {
	t.Run(start(t).command("run", "--rm", "--network=none", Image, "true"))
})

// Start starts a service. If Podman is missing or cannot run a container, the test is skipped, or fails if REQUIRE_ALL
// is 1.
func Start(t T) *Engine {
	t.Helper()
	realpart.Podman.Take(t)
	programs(t)
	works(t)
	return start(t)
}

// programs returns the paths of an engine's programs.
func programs(t T) map[string]string {
	t.Helper()
	if os.Geteuid() != 0 {
		realpart.Podman.Absent(t, "its service is run as root here, and this is another user")
	}
	path := map[string]string{}
	for program, pkg := range map[string]string{"podman": "podman", "runc": "runc", "busybox": "busybox-static"} {
		found, err := exec.LookPath(program)
		if err != nil {
			realpart.Podman.Absent(t, program+" (package "+pkg+") is not there")
		}
		path[program] = found
	}
	return path
}

func start(t T) *Engine {
	t.Helper()
	path := programs(t)
	dir, err := os.MkdirTemp("", "podman") // a test's own directory may be too long for a socket
	check(t, err)
	e := &Engine{Host: "unix://" + dir + "/docker.sock", t: t, dir: dir, podman: path["podman"]}
	t.Cleanup(func() { // the last process of a container may still write how that ended
		await.That(t, "the engine's directory is removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	e.configure()
	e.serve()
	e.load(path["busybox"])
	return e
}

// configure writes the settings. The only networks are none and the host's. The process limits are those that an engine
// may set even if it cannot raise its own limits.
func (e *Engine) configure() {
	e.write("storage.conf", "[storage]\ndriver = \"vfs\"\nrunroot = %q\ngraphroot = %q\n", e.path("run"),
		e.path("graph"))
	e.write("containers.conf", "[containers]\nnetns = \"none\"\nlog_driver = \"k8s-file\"\n"+
		"default_ulimits = [\"nofile=1024:4096\", \"nproc=1024:1024\"]\n"+
		"[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nruntime = \"runc\"\ntmp_dir = %q\n"+
		"[network]\nnetwork_config_dir = %q\n", e.path("tmp"), e.path("net"))
}

func (e *Engine) write(name, format string, args ...any) {
	e.t.Helper()
	check(e.t, os.WriteFile(e.path(name), []byte(fmt.Sprintf(format, args...)), 0o600))
}

func (e *Engine) path(name string) string { return filepath.Join(e.dir, name) }

func (e *Engine) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.podman, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.dir,
		"CONTAINERS_STORAGE_CONF=" + e.path("storage.conf"), "CONTAINERS_CONF=" + e.path("containers.conf")}
	return cmd
}

// serve starts the service, and waits until the service answers.
func (e *Engine) serve() {
	e.t.Helper()
	cmd := e.command("system", "service", "--time=0", e.Host)
	var printed bytes.Buffer
	cmd.Stderr = &printed
	child.OwnGroup(cmd)
	child.DieWithParent(cmd)
	ended, err := child.Start(cmd)
	check(e.t, err)
	e.t.Cleanup(func() {
		out, err := e.command("rm", "--all", "--force", "--volumes", "--time=0").CombinedOutput()
		if err != nil {
			e.t.Errorf("containers could not be removed: %v\n%s", err, out)
		}
		_ = cmd.Process.Kill()
		<-ended
	})
	await.That(e.t, "podman listens", func() bool {
		select {
		case <-ended:
			e.t.Fatalf("podman ended: %s", printed.String())
		default:
		}
		c, err := net.Dial("unix", strings.TrimPrefix(e.Host, "unix://"))
		return err == nil && c.Close() == nil
	})
}

// load creates the image.
func (e *Engine) load(busybox string) {
	e.t.Helper()
	program, err := os.ReadFile(busybox)
	check(e.t, err)
	list, err := exec.Command(busybox, "--list").Output()
	check(e.t, err)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h *tar.Header, content []byte) { e.add(w, h, content) }
	for _, name := range []string{"bin", "etc", "proc", "sys", "dev"} {
		add(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
	}
	add(&tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755}, program)
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			add(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}, nil)
		}
	}
	check(e.t, w.Flush())
	e.root = b.Bytes()
	e.make(Image, nil, "ENV PATH=/bin")
}

func (e *Engine) add(w *tar.Writer, h *tar.Header, content []byte) {
	e.t.Helper()
	h.Size = int64(len(content))
	check(e.t, w.WriteHeader(h))
	_, err := w.Write(content)
	check(e.t, err)
}

// Toolchain makes an image that has programs of this machine too, by their paths in the image, and a directory /deps
// that the containers' user can write to.
func (e *Engine) Toolchain(image string, programs map[string]string) {
	e.t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	e.add(w, &tar.Header{Name: "deps/", Typeflag: tar.TypeDir, Mode: 0o755, Uid: 1000, Gid: 1000}, nil)
	for to, from := range programs {
		content, err := os.ReadFile(from) // #nosec G304 -- a program of the test
		check(e.t, err)
		e.add(w, &tar.Header{Name: strings.TrimPrefix(to, "/"), Typeflag: tar.TypeReg, Mode: 0o755}, content)
	}
	check(e.t, w.Flush())
	e.make(image, b.Bytes(), "ENV PATH=/bin:/usr/local/go/bin", "ENV GOROOT=/usr/local/go")
}

// Volumes returns the number of volumes.
func (e *Engine) Volumes() int {
	e.t.Helper()
	out, err := e.command("volume", "ls", "--quiet").Output()
	check(e.t, err)
	return len(strings.Fields(string(out)))
}

// Keep creates the image [Keeping].
func (e *Engine) Keep() {
	e.t.Helper()
	e.make(Keeping, nil, "ENV PATH=/bin", "VOLUME /kept")
}

// make makes an image of the files and more of them, changed by instructions as those of a Dockerfile.
func (e *Engine) make(image string, more []byte, changes ...string) {
	e.t.Helper()
	args := []string{"import"}
	for _, change := range changes {
		args = append(args, "--change", change)
	}
	cmd := e.command(append(args, "-", image)...)
	end := make([]byte, 1024) // two empty blocks
	cmd.Stdin = io.MultiReader(bytes.NewReader(e.root), bytes.NewReader(more), bytes.NewReader(end))
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("podman import: %v\n%s", err, out)
	}
}

// Containers returns the number of containers, including stopped ones.
func (e *Engine) Containers() int {
	e.t.Helper()
	out, err := e.command("ps", "--all", "--quiet").Output()
	check(e.t, err)
	return len(strings.Fields(string(out)))
}

// Run starts a container, as a program other than the product would, and returns its ID.
func (e *Engine) Run(args ...string) string {
	e.t.Helper()
	out, err := e.command(append([]string{"run", "--detach", "--network=none"}, args...)...).CombinedOutput()
	if err != nil {
		e.t.Fatalf("podman run: %v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func check(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("podman: %v", err)
	}
}
