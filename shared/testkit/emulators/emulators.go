// Package emulators runs the Firestore and Pub/Sub emulators of the Google Cloud SDK on loopback. Tests call Firestore
// and PubSub, which start each emulator once per test binary; scripts/dev -emulators calls StartFirestore and
// StartPubSub. The jars are run directly: the gcloud wrapper is slower to start and leaves its Java child running when
// it is killed.
package emulators

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
)

// ErrAbsent means that Java or the emulator is not installed; the error that wraps it says how to install it.
var ErrAbsent = errors.New("not installed")

const stopBound = 5 * time.Second // from the interrupt to the kill

// part describes one emulator: the location of its jar, and its names.
type part struct {
	name      string
	hostVar   string // the variable that names an external emulator, as for Google's own libraries
	component string // its name for gcloud
	jar       string // a pattern below the SDK's platform folder
	args      func(jar string) []string
	warm      func(ctx context.Context, addr string) error // sends the first requests, and waits for the answers
}

var firestore = part{
	name: "Firestore emulator", hostVar: "FIRESTORE_EMULATOR_HOST", component: "cloud-firestore-emulator",
	jar: "cloud-firestore-emulator/cloud-firestore-emulator.jar",
	args: func(jar string) []string {
		return []string{"-Duser.language=en", "-cp", jar,
			"com.google.cloud.datastore.emulator.firestore.CloudFirestore"}
	},
	warm: warmFirestore,
}

var pubsub = part{
	name: "Pub/Sub emulator", hostVar: "PUBSUB_EMULATOR_HOST", component: "pubsub-emulator",
	jar:  "pubsub-emulator/lib/cloud-pubsub-emulator-*.jar",
	args: func(jar string) []string { return []string{"-jar", jar} },
	warm: warmPubSub,
}

// An Emulator is a running emulator at Addr.
type Emulator struct {
	Addr string // host:port, for FIRESTORE_EMULATOR_HOST or PUBSUB_EMULATOR_HOST
	proc *exec.Cmd
	done <-chan struct{} // closed when the process has ended

	outlives bool // see Outliving
	found    int  // the process ID of an emulator from Find
}

// Option changes how an emulator is run.
type Option func(*Emulator)

// Outliving keeps the emulator running, with all its data in memory, when this process is killed. [Emulator.Note]
// stores its address, and [Find] returns it in the next process.
func Outliving(e *Emulator) { e.outlives = true }

// StartFirestore returns a running Firestore emulator: the one that FIRESTORE_EMULATOR_HOST names, or a new process
// whose output is written to logw. Its error is or wraps [ErrAbsent] or ctx's error, or says that Java has ended.
func StartFirestore(ctx context.Context, logw io.Writer, opts ...Option) (*Emulator, error) {
	return firestore.start(ctx, logw, opts...)
}

// StartPubSub is like [StartFirestore], for Pub/Sub and PUBSUB_EMULATOR_HOST.
func StartPubSub(ctx context.Context, logw io.Writer, opts ...Option) (*Emulator, error) {
	return pubsub.start(ctx, logw, opts...)
}

// UseFirestore starts a Firestore emulator without a log, and names it in FIRESTORE_EMULATOR_HOST. The caller stops it.
func UseFirestore(ctx context.Context) (stop func(), err error) {
	e, err := StartFirestore(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	stop = func() { _ = e.Stop() } // the emulator ends with this process in any case
	if err := os.Setenv("FIRESTORE_EMULATOR_HOST", e.Addr); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// Stop ends the process and waits until it has ended. It does not stop an external emulator.
func (e *Emulator) Stop() error {
	if e.found != 0 {
		return e.stopFound()
	}
	if e.proc == nil {
		return nil
	}
	// If the interrupt is not supported (Windows) or ignored, the kill below ends the process.
	_ = e.proc.Process.Signal(os.Interrupt)
	select {
	case <-e.done:
		return nil
	case <-time.After(stopBound):
	}
	if err := e.proc.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the emulator at %s: %w", e.Addr, err)
	}
	<-e.done
	return nil
}

func (p part) start(ctx context.Context, logw io.Writer, opts ...Option) (*Emulator, error) {
	if host := os.Getenv(p.hostVar); host != "" {
		return &Emulator{Addr: host}, nil
	}
	java, err := findJava()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	jar, err := p.find()
	if err != nil {
		return nil, err
	}
	// Another process may take the free port before Java listens on it; hence the retries.
	for try := 1; ; try++ {
		e, err := p.launch(ctx, java, jar, logw, opts)
		if err == nil || try == 3 || ctx.Err() != nil {
			return e, err
		}
	}
}

func (p part) launch(ctx context.Context, java, jar string, logw io.Writer, opts []Option) (*Emulator, error) {
	port, err := freeport.Port()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	const host = "127.0.0.1"
	cmd := exec.Command(java, append(p.args(jar), "--host="+host, "--port="+port)...)
	cmd.Stdout, cmd.Stderr = logw, logw
	e := &Emulator{Addr: net.JoinHostPort(host, port), proc: cmd}
	for _, opt := range opts {
		opt(e)
	}
	child.OwnGroup(cmd) // a Ctrl-C at the terminal does not end it before scripts/dev has drained
	if !e.outlives {
		child.DieWithParent(cmd)
	}
	if e.done, err = child.Start(cmd); err != nil {
		return nil, fmt.Errorf("%s: start Java: %w", p.name, err)
	}
	if err := child.Answers(ctx, "http://"+e.Addr+"/", e.done); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.name, err), e.Stop())
	}
	return e, nil
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("java is %w; install a Java runtime (17 or later), or point JAVA_HOME at one", ErrAbsent)
	}
	return path, nil
}

// find looks for the jar in the usual places of the SDK, without running gcloud, which takes a second.
func (p part) find() (string, error) {
	for _, dir := range platformDirs() {
		if found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(p.jar))); len(found) > 0 {
			return found[len(found)-1], nil // Glob sorts: the last one is the newest
		}
	}
	return "", fmt.Errorf("%s is %w; run `gcloud components install %s` (or, with the SDK from apt, install "+
		"google-cloud-cli-%s), "+
		"or set CLOUD_EMULATORS_DIR to the folder that holds %s", p.name, ErrAbsent, p.component,
		strings.TrimPrefix(p.component, "cloud-"), strings.Split(p.jar, "/")[0])
}

// platformDirs returns the folders that may hold the emulators; only the configured ones, if there are any.
func platformDirs() []string {
	if dir := os.Getenv("CLOUD_EMULATORS_DIR"); dir != "" {
		return []string{dir}
	}
	if root := os.Getenv("CLOUDSDK_ROOT_DIR"); root != "" {
		return []string{filepath.Join(root, "platform")}
	}
	var roots []string
	if gcloud, err := exec.LookPath("gcloud"); err == nil {
		if real, err := filepath.EvalSymlinks(gcloud); err == nil {
			roots = append(roots, filepath.Dir(filepath.Dir(real)))
		}
	}
	roots = append(roots, "/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk", "/opt/google-cloud-sdk",
		"/snap/google-cloud-cli/current", "/opt/homebrew/share/google-cloud-sdk", "/usr/local/share/google-cloud-sdk")
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, "google-cloud-sdk"))
	}
	if local := os.Getenv("LOCALAPPDATA"); local != "" {
		roots = append(roots, filepath.Join(local, "Google", "Cloud SDK", "google-cloud-sdk"))
	}
	for i := range roots {
		roots[i] = filepath.Join(roots[i], "platform")
	}
	return roots
}
