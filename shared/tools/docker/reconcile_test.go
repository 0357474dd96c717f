package docker_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/container"
	engine "github.com/countersign-run/countersign/shared/tools/container/docker"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

const image = "localhost/busybox:1"

// call returns a call of Ana's run.
func call(id string) tool.Call {
	return tool.Call{UID: "ana", RunID: "run_1", ActionID: id, Output: io.Discard}
}

// world is an engine that runs nothing, with the tools on it.
type world struct {
	*fakedocker.Engine
	tools tool.Set
	e     *engine.Engine
}

func newWorld(t *testing.T, o fakedocker.Options) *world {
	t.Helper()
	o.Images = []string{image}
	fake := fakedocker.Open(t, o)
	e, err := engine.Open(engine.Config{Host: fake.Host, Timeout: await.Most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() }) // it never fails
	return &world{fake, docker.New(docker.Options{Engine: e, Images: []string{image}}), e}
}

// made returns the ID of a running container of Ana's run.
func (w *world) made(t *testing.T, name string) string {
	t.Helper()
	id, err := w.e.Create(t.Context(), container.Owner{UID: "ana", RunID: "run_1"}, container.Spec{ActionID: name,
		Name: container.NamePrefix + name, Image: image, Memory: container.MinMemory, Group: "build"})
	if err == nil {
		err = w.e.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// provider returns a provider for a call.
func (w *world) provider(t *testing.T, name string, args map[string]any, effects func() int) *toolstest.Provider {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	c := call("act1")
	if c.Args, err = w.tools[name].Normalize(raw); err != nil {
		t.Fatal(err)
	}
	return &toolstest.Provider{Tool: w.tools[name], Call: c, Break: w.Break, Calls: w.Calls, Effects: effects}
}

// engines runs the test with Docker and with Podman, whose answers differ.
func engines(t *testing.T, test func(t *testing.T, o fakedocker.Options)) {
	t.Run("docker", func(t *testing.T) { test(t, fakedocker.Options{}) })
	t.Run("podman", func(t *testing.T) { test(t, fakedocker.Options{Podman: true}) })
}

var status, kind = toolstest.Status, toolstest.Kind

// refusedAfter is the answer to a second start after the first one succeeded.
var refusedAfter = fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 409}

func not(code fault.Code) toolstest.Settled {
	return toolstest.Settled{Want: toolstest.Failed, Class: fault.Tool, Code: code}
}

// panicking is an engine whose methods all panic.
type panicking struct{}

func (panicking) List(context.Context, container.Owner, string, bool) ([]container.Container, error) {
	panic("CANARY")
}
func (panicking) All(context.Context, container.Owner) ([]container.Container, error) {
	panic("CANARY")
}
func (panicking) Find(context.Context, container.Owner, string) (container.Container, error) {
	panic("CANARY")
}
func (panicking) Create(context.Context, container.Owner, container.Spec) (string, error) {
	panic("CANARY")
}
func (panicking) Start(context.Context, string) error                          { panic("CANARY") }
func (panicking) Remove(context.Context, string) error                         { panic("CANARY") }
func (panicking) NewProcess(context.Context, string, []string) (string, error) { panic("CANARY") }
func (panicking) Run(context.Context, string, container.Streams) error         { panic("CANARY") }
func (panicking) Feed(context.Context, string, []string, []byte) (int, error)  { panic("CANARY") }
func (panicking) Look(context.Context, string) (container.Process, error)      { panic("CANARY") }
func (panicking) RemoveVolume(context.Context, string) error                   { panic("CANARY") }
func (panicking) Volumes(context.Context, container.Owner) ([]container.Volume, error) {
	panic("CANARY")
}
func (panicking) MakeVolume(context.Context, container.Owner, container.Volume) error {
	panic("CANARY")
}
func (panicking) Converse(context.Context, string, []string, io.Reader, container.Streams) (int, error) {
	panic("CANARY")
}

var broken = docker.New(docker.Options{Engine: panicking{}, Images: []string{image}})

// TestCreateSettles uses Podman. It answers 500 if a name is taken, and so leaves more outcomes open than Docker does.
func TestCreateSettles(t *testing.T) {
	made := toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	toolstest.Settling{
		Open: func(t *testing.T) *toolstest.Provider {
			w := newWorld(t, fakedocker.Options{Podman: true})
			p := w.provider(t, docker.Create, map[string]any{"options": map[string]any{"image": image}}, w.Started)
			p.Result = func(t *testing.T, completed json.RawMessage) {
				if all := w.Containers(); len(all) != 1 || !strings.Contains(string(completed), all[0].ID) {
					t.Errorf("%s for %v", completed, all)
				}
			}
			return p
		},
		Broken: broken[docker.Create],
		Acts:   []string{fakedocker.Inspect, fakedocker.List, fakedocker.Image, fakedocker.Create, fakedocker.Start},
		Cases: map[string]toolstest.Settled{
			"nothing breaks":     made,
			"create answer lost": made.After(fakedocker.Create, kind(fakegoogle.ResetAfter)),
			"create 500 after":   made.After(fakedocker.Create, status(500, "")),
			"start answer lost":  made.After(fakedocker.Start, kind(fakegoogle.ResetAfter)),
			"start 500, done":    made.After(fakedocker.Start, kind(fakegoogle.StatusAfter)),
			"start hangs, done":  made.After(fakedocker.Start, kind(fakegoogle.HangAfter)),
			"no look at it":      made.After(fakedocker.Image, status(500, ""), kind(fakegoogle.ResetAfter)),
			"no such image":      not(docker.CodeNoImage).After(fakedocker.Create, status(404, "")),
			"no such command":    not(docker.CodeNotReady).After(fakedocker.Start, status(404, "")),
		},
	}.Run(t)
}

func TestScriptSettles(t *testing.T) {
	for name, podman := range map[string]bool{docker.Script: true, docker.ConfigureGit: false, docker.Shell: false} {
		t.Run(name, func(t *testing.T) {
			engines(t, func(t *testing.T, o fakedocker.Options) {
				if o.Podman && !podman {
					return // the result does not depend on the engine
				}
				o.Exec = func([]string) (string, string, int) { return "out", "err", 0 }
				ran := toolstest.Settled{Want: toolstest.Completed, Effects: 1}
				toolstest.Settling{
					Open: func(t *testing.T) *toolstest.Provider {
						w := newWorld(t, o)
						id := w.made(t, "c")
						args := map[string]any{"containerId": id, "script": "make"}
						switch name {
						case docker.ConfigureGit:
							args = map[string]any{"containerId": id, "username": "ana"}
						case docker.Shell:
							args = map[string]any{"command": "make"}
						}
						p := w.provider(t, name, args, w.Ran)
						p.Result = func(t *testing.T, completed json.RawMessage) {
							var r docker.Result
							if err := json.Unmarshal(completed, &r); err != nil || r.ExitCode != 0 ||
								!r.OutputLost && r.Stdout != "out" {
								t.Errorf("the result is %s", completed)
							}
						}
						return p
					},
					Broken: broken[name],
					Acts:   []string{fakedocker.ExecCreate, fakedocker.ExecStart},
					Looks:  []string{fakedocker.ExecInspect},
					Cases: map[string]toolstest.Settled{
						"nothing breaks":    ran,
						"start answer lost": ran.After(fakedocker.ExecStart, kind(fakegoogle.ResetAfter)),
						"start 409, done":   ran.After(fakedocker.ExecStart, refusedAfter),
						"start 500, not":    ran.After(fakedocker.ExecStart, status(500, "")),
						"create 500":        ran.After(fakedocker.ExecCreate, status(500, "")),
						"container stopped": not(docker.CodeNotReady).After(fakedocker.ExecCreate, status(409, "")),
					},
				}.Run(t)
			})
		})
	}
}

func TestDestroySettles(t *testing.T) {
	gone := toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	toolstest.Settling{
		Open: func(t *testing.T) *toolstest.Provider {
			w := newWorld(t, fakedocker.Options{})
			return w.provider(t, docker.Destroy, map[string]any{"containerId": w.made(t, "c")}, w.Removed)
		},
		Broken: broken[docker.Destroy],
		Acts:   []string{fakedocker.List, fakedocker.Remove}, Rereads: true,
		Cases: map[string]toolstest.Settled{
			"nothing breaks":   gone,
			"answer lost":      gone.After(fakedocker.Remove, kind(fakegoogle.ResetAfter)),
			"500, done":        gone.After(fakedocker.Remove, kind(fakegoogle.StatusAfter)),
			"being removed":    gone.After(fakedocker.Remove, status(409, "")),
			"500 and not done": gone.After(fakedocker.Remove, status(500, "")),
		},
	}.Run(t)
}

func TestCleanupSettles(t *testing.T) {
	gone := toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	toolstest.Settling{
		Open: func(t *testing.T) *toolstest.Provider {
			w := newWorld(t, fakedocker.Options{})
			w.made(t, "c")
			return w.provider(t, docker.Cleanup, map[string]any{"group": "build"}, w.Removed)
		},
		Broken: broken[docker.Cleanup],
		Acts:   []string{fakedocker.List, fakedocker.Remove},
		Cases: map[string]toolstest.Settled{
			"nothing breaks": gone,
			"answer lost":    gone.After(fakedocker.Remove, kind(fakegoogle.ResetAfter)),
			"500, done":      gone.After(fakedocker.Remove, kind(fakegoogle.StatusAfter)),
		},
	}.Run(t)
}

// TestDestroyOfOtherHandle starts a call again with a stored handle that names another container.
func TestDestroyOfOtherHandle(t *testing.T) {
	w := newWorld(t, fakedocker.Options{})
	approved, other := w.made(t, "a"), w.made(t, "b")
	args, err := w.tools[docker.Destroy].Normalize([]byte(`{"containerId":"` + approved + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	c := call("act_1")
	c.UID, c.RunID, c.Args, c.Handle = "ana", "run_1", args, other
	if _, err := w.tools[docker.Destroy].Execute(t.Context(), c); !fault.Is(err, fault.Policy, fault.CodeIntegrity) {
		t.Errorf("the handle of another container: %v", err)
	}
	if n := len(w.Containers()); n != 2 {
		t.Errorf("%d containers are left, want 2", n)
	}
}
