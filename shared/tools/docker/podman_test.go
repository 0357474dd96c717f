package docker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// real holds the tools on Podman.
type real struct {
	tools tool.Set
	host  *podman.Engine
	n     int
}

func onPodman(t *testing.T) *real {
	t.Helper()
	host := podman.Start(t)
	return &real{tools: toolsOn(t, host.Host), host: host}
}

func toolsOn(t testing.TB, host string) tool.Set {
	t.Helper()
	e, err := engine.Open(engine.Config{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	return docker.New(docker.Options{Engine: e, Images: []string{image}})
}

// slow is an engine that calls a function before the next program with an input.
type slow struct {
	docker.Engine
	meanwhile func()
}

func (s *slow) Feed(ctx context.Context, id string, command []string, in []byte) (int, error) {
	if do := s.meanwhile; do != nil {
		s.meanwhile = nil
		do()
	}
	return s.Engine.Feed(ctx, id, command, in)
}

// prepared returns a call that is ready to be executed.
func (r *real) prepared(t *testing.T, name string, args map[string]any) (tool.Call, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r.n++
	c := call(fmt.Sprintf("act%d", r.n))
	if c.Args, err = r.tools[name].Normalize(raw); err != nil {
		t.Fatal(err)
	}
	if r.tools[name].Prepares() {
		c.Handle, err = r.tools[name].Prepare(t.Context(), c)
	}
	return c, err
}

// do executes a call.
func (r *real) do(t *testing.T, name string, args map[string]any) (json.RawMessage, error) {
	t.Helper()
	c, err := r.prepared(t, name, args)
	if err != nil {
		return nil, err
	}
	return r.tools[name].Execute(t.Context(), c)
}

// must executes a call that must succeed, and returns its result. A script may fail with an exit code.
func must[Out any](t *testing.T, r *real, name string, args map[string]any) (out Out) {
	t.Helper()
	raw, err := r.do(t, name, args)
	if fault.Is(err, fault.Tool, docker.CodeExit) {
		raw, err = tool.PartialResult(err), nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func (r *real) create(t *testing.T, group string) string {
	t.Helper()
	return must[docker.Created](t, r, docker.Create,
		map[string]any{"options": map[string]any{"image": image, "memory": 64, "group": group}}).ID
}

func script(id, text string) map[string]any {
	return map[string]any{"containerId": id, "script": text}
}

// TestPodmanSession uses all tools on a real engine.
func TestPodmanSession(t *testing.T) {
	r := onPodman(t)
	id := r.create(t, "build")
	got := must[docker.Result](t, r, docker.Script, script(id, `mkdir -p src .git; echo "package x" >src/x.go
echo secret >.git/config; printf '\377' >bin; ln -s /etc/passwd link; echo done; echo oops >&2; exit 4`))
	if got.Stdout != "done\n" || got.Stderr != "oops\n" || got.ExitCode != 4 || got.Truncated || got.OutputLost {
		t.Errorf("the script: %+v", got)
	}
	got = must[docker.Result](t, r, docker.Shell, map[string]any{"command": "cat src/x.go"})
	if got.Stdout != "package x\n" {
		t.Errorf("the command: %+v", got)
	}
	tree := must[docker.Tree](t, r, docker.SourceFiles, map[string]any{"containerId": id})
	if len(tree.Files) != 1 || tree.Files[0].Path != "src/x.go" || tree.LeftOut != 2 || tree.Cut {
		t.Errorf("the files: %+v", tree)
	}
	file := must[docker.FileText](t, r, docker.ReadFile, map[string]any{"containerId": id, "path": "src/x.go"})
	if file.Content == nil || *file.Content != "package x\n" {
		t.Errorf("the file: %+v", file)
	}
	if none := must[docker.FileText](t, r, docker.ReadFile,
		map[string]any{"containerId": id, "path": "/work/none"}); none.Content != nil {
		t.Errorf("a file that is not there: %q", *none.Content)
	}
	if _, err := r.do(t, docker.ReadFile, map[string]any{"containerId": id, "path": "src"}); err == nil {
		t.Error("a directory was read as a file")
	}
	for name, args := range map[string]map[string]any{ // busybox has no git
		docker.ConfigureGit: {"containerId": id, "username": "ana"},
		docker.Script:       script(id, "git --version"),
		docker.Shell:        {"command": "git --version"}} {
		_, err := r.do(t, name, args)
		var got docker.Result
		if !fault.Is(err, fault.Tool, docker.CodeExit) || json.Unmarshal(tool.PartialResult(err), &got) != nil ||
			got.ExitCode != 127 || !strings.Contains(got.Stderr, "not found") {
			t.Errorf("%s: %+v, %v; want error %v %v, no error from json.Unmarshal, got.ExitCode 127, "+
				"got.Stderr with “not found”",
				name, got, err, fault.Tool, docker.CodeExit)
		}
	}
	list := must[docker.Listed](t, r, docker.List, map[string]any{})
	if len(list.Containers) != 1 || list.Containers[0].ID != id || list.Containers[0].Group != "build" {
		t.Errorf("there are %+v", list)
	}
	r.create(t, "build")
	r.create(t, "other")
	if _, err := r.do(t, docker.Create, map[string]any{"options": map[string]any{"image": image}}); !fault.Is(err,
		fault.Policy, docker.CodeTooMany) {
		t.Errorf("a fourth container: %v", err)
	}
	if n := must[docker.Removed](t, r, docker.Cleanup, map[string]any{"group": "build"}).Removed; n != 2 {
		t.Errorf("%d were removed with their group", n)
	}
	if _, err := r.do(t, docker.Script, script(id, "true")); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("a script in a container that is gone: %v", err)
	}
	foreign := r.host.Run("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1024:1024", image, "/bin/sleep", "1000")
	for _, name := range []string{docker.Destroy, docker.SourceFiles} {
		_, err := r.do(t, name, map[string]any{"containerId": foreign})
		if !fault.Is(err, fault.Auth, fault.CodeNotFound) {
			t.Errorf("%s of a foreign container: %v", name, err)
		}
	}
	if n := r.host.Containers(); n != 2 {
		t.Errorf("there are %d containers", n)
	}
}

// TestPodmanScriptLimit runs a script beyond its limit. The script leaves a process behind that would run for long.
func TestPodmanScriptLimit(t *testing.T) {
	r := onPodman(t)
	id := r.create(t, "g")
	args := script(id, "echo begun; (trap '' TERM HUP; sleep 1000; touch /work/late) & sleep 1000")
	args["timeoutSeconds"] = 1
	_, err := r.do(t, docker.Script, args)
	var got docker.Result
	if !fault.Is(err, fault.Tool, docker.CodeTimeout) || json.Unmarshal(tool.PartialResult(err), &got) != nil ||
		!got.TimedOut || got.Stdout != "begun\n" {
		t.Errorf("%+v, %v", got, err)
	}
	left := must[docker.Result](t, r, docker.Script, script(id, "ps -o args | grep -c '[s]leep 1000'"))
	if left.Stdout != "0\n" {
		t.Errorf("it left %s processes", left.Stdout)
	}
}

// TestPodmanExitCodeOfTimeout runs a script that exits with the code that marks the time limit.
func TestPodmanExitCodeOfTimeout(t *testing.T) {
	r := onPodman(t)
	got := must[docker.Result](t, r, docker.Script, script(r.create(t, "g"), "exit 241"))
	if got.TimedOut || got.ExitCode != 240 || !strings.Contains(got.Stderr, "it exited with 241") {
		t.Errorf("it is %+v", got)
	}
}

// TestPodmanScriptInterrupted interrupts a running script, and one that was never started.
func TestPodmanScriptInterrupted(t *testing.T) {
	for name, begin := range map[string]bool{"running": true, "not begun": false} {
		t.Run(name, func(t *testing.T) {
			r := onPodman(t)
			its := r.tools[docker.Script]
			id := r.create(t, "g")
			c, err := r.prepared(t, docker.Script, script(id, "touch begun; sleep 1000"))
			if err != nil {
				t.Fatal(err)
			}
			want := tool.Never
			if begin {
				want = tool.Done
				ctx, cancel := context.WithCancel(t.Context())
				left := make(chan error, 1)
				go func() {
					_, err := its.Execute(ctx, c)
					left <- err
				}()
				await.That(t, "the script has begun", func() bool {
					return must[docker.Result](t, r, docker.Script, script(id, "test -e begun")).ExitCode == 0
				})
				cancel()
				if err := <-left; !tool.IsAmbiguous(err) {
					t.Errorf("left with %v", err)
				}
				if err := its.Interrupt(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			c.Over = true
			out, err := its.Reconcile(t.Context(), c)
			if err != nil || out.Verdict != want || begin && !fault.Is(out.Err, fault.Policy, docker.CodeStopped) {
				t.Errorf("%+v, %v", out, err)
			}
			if n := r.host.Containers(); n != 0 {
				t.Errorf("there are %d containers", n)
			}
		})
	}
}

// dies is the environment variable that makes this test binary run one script until it is killed.
const dies = "DOCKER_TEST_DIES"

// dying is the call that the killed process executes.
type dying struct {
	Host, Handle string
	Args         json.RawMessage
}

func runAndDie() {
	var d dying
	if err := json.Unmarshal([]byte(os.Getenv(dies)), &d); err != nil {
		panic(err)
	}
	e, err := engine.Open(engine.Config{Host: d.Host})
	if err != nil {
		panic(err)
	}
	c := call("act2")
	c.Args, c.Handle = d.Args, d.Handle
	its := docker.New(docker.Options{Engine: e, Images: []string{image}})[docker.Script]
	_, err = its.Execute(context.Background(), c)
	fmt.Println("ended", err)
}

// TestPodmanScriptAfterKill kills the process that started a script. The next process finds the script, and does not
// start it again.
func TestPodmanScriptAfterKill(t *testing.T) {
	r := onPodman(t)
	id := r.create(t, "g")
	c, err := r.prepared(t, docker.Script,
		script(id, "echo x >>n; touch begun; while [ ! -e go ]; do sleep 0.1; done; exit 6"))
	if err != nil {
		t.Fatal(err)
	}
	its := r.tools[docker.Script]
	if out, err := its.Reconcile(t.Context(), c); err != nil || out.Verdict != tool.NotDone {
		t.Errorf("before its start: %+v, %v", out, err)
	}
	what, err := json.Marshal(dying{r.host.Host, c.Handle, c.Args})
	if err != nil {
		t.Fatal(err)
	}
	first := exec.Command(os.Args[0])
	first.Env, first.Stderr = append(os.Environ(), dies+"="+string(what)), os.Stderr
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	await.That(t, "the script has begun", func() bool {
		return must[docker.Result](t, r, docker.Script, script(id, "test -e begun")).ExitCode == 0
	})
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	short, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if out, err := its.Reconcile(short, c); err != nil || out.Verdict != tool.Running {
		t.Errorf("while it runs: %+v, %v", out, err)
	}
	if _, err := its.Execute(t.Context(), c); !tool.IsAmbiguous(err) {
		t.Errorf("a second start: %v", err)
	}
	must[docker.Result](t, r, docker.Script, script(id, "touch go"))
	out, err := its.Reconcile(ctx, c)
	result := string(tool.PartialResult(out.Err))
	if err != nil || out.Verdict != tool.Done || !strings.Contains(result, `"exitCode":6`) ||
		!strings.Contains(result, `"outputLost":true`) {
		t.Errorf("after its end: %s %+v, %v", result, out, err)
	}
	if n := must[docker.Result](t, r, docker.Script, script(id, "cat n")).Stdout; n != "x\n" {
		t.Errorf("it ran: %q", n)
	}
}

// TestPodmanContainersRemoved removes a waiting container, a working one, and one that was never started.
func TestPodmanContainersRemoved(t *testing.T) {
	r := onPodman(t)
	id := r.create(t, "build")
	must[docker.Result](t, r, docker.Script, script(id, "sleep 100 &"))
	r.create(t, "test")
	if _, err := r.do(t, docker.Create, map[string]any{"options": map[string]any{"image": image, "memory": 64,
		"command": []string{"/none"}}}); err == nil {
		t.Error("a container without its command was started")
	}
	ended := tool.Call{UID: "ana", RunID: "run_1"}
	for _, want := range []int{3, 0} {
		if n, err := r.tools[docker.Create].Dispose(t.Context(), ended); n != want || err != nil {
			t.Errorf("removed %d, and not %d; %v", n, want, err)
		}
	}
	left := must[docker.Listed](t, r, docker.List, map[string]any{"all": true})
	if len(left.Containers) != 0 {
		t.Errorf("left are %+v", left)
	}
}
