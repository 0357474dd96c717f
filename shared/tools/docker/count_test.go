package docker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// do executes a call. Each call has an action of its own.
func (w *world) do(t *testing.T, c tool.Call, name string, args map[string]any) error {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	if c.Args, err = w.tools[name].Normalize(raw); err != nil {
		t.Fatal(err)
	}
	if w.tools[name].Prepares() {
		if c.Handle, err = w.tools[name].Prepare(t.Context(), c); err != nil {
			return err
		}
	}
	_, err = w.tools[name].Execute(t.Context(), c)
	return err
}

// TestContainerCaps creates as many containers as a run may have, and as many as its user may have in all runs.
func TestContainerCaps(t *testing.T) {
	w := newWorld(t, fakedocker.Options{})
	n := 0
	in := func(uid, run string) tool.Call {
		n++
		c := call(fmt.Sprint("act_", n))
		c.UID, c.RunID = uid, run
		return c
	}
	create := func(uid, run string) error {
		return w.do(t, in(uid, run), docker.Create, map[string]any{"options": map[string]any{"image": image}})
	}
	for i := range container.PerUser {
		if err := create("ana", fmt.Sprint("run_", i/container.PerRun)); err != nil {
			t.Fatal(err)
		}
		if i == container.PerRun-1 {
			if err := create("ana", "run_0"); !fault.Is(err, fault.Policy, docker.CodeTooMany) {
				t.Errorf("one more of its run: %v", err)
			}
		}
	}
	first := w.Containers()[0].ID
	if err := create("ana", "run_9"); !fault.Is(err, fault.Policy, docker.CodeTooMany) ||
		!strings.Contains(err.Error(), first) {
		t.Errorf("one more of its user: %v", err)
	}
	if err := create("bea", "run_b"); err != nil {
		t.Errorf("another user's first: %v", err)
	}
	destroy := map[string]any{"containerId": first}
	if err := w.do(t, in("bea", "run_b"), docker.Destroy, destroy); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("another user destroys it: %v", err)
	}
	if err := w.do(t, in("ana", "run_9"), docker.Destroy, destroy); err != nil {
		t.Fatal(err)
	}
	if err := create("ana", "run_9"); err != nil {
		t.Errorf("there is room, and yet: %v", err)
	}
}

// TestRemoveContainersOfRun uses an engine that fails, with containers of another run and of another user.
func TestRemoveContainersOfRun(t *testing.T) {
	for name, faults := range map[string][]fakegoogle.Fault{
		"all is well": nil, "the engine fails": {{Kind: fakegoogle.StatusBefore, Status: 500}},
		"it is done and the answer an error": {{Kind: fakegoogle.StatusAfter, Status: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fakedocker.Options{})
			w.made(t, "a")
			w.made(t, "b")
			for i, o := range []container.Owner{{UID: "ana", RunID: "run_2"}, {UID: "bea", RunID: "run_1"}} {
				_, err := w.e.Create(t.Context(), o, container.Spec{ActionID: "x", Image: image,
					Name: fmt.Sprint(container.NamePrefix, i), Memory: container.MinMemory})
				if err != nil {
					t.Fatal(err)
				}
			}
			w.Break(fakedocker.Remove, faults...)
			ended := tool.Call{UID: "ana", RunID: "run_1"}
			_, err := w.tools[docker.Create].Dispose(t.Context(), ended)
			if (err != nil) != (len(faults) > 0) {
				t.Errorf("the first time: %v", err)
			}
			if _, err := w.tools[docker.Create].Dispose(t.Context(), ended); err != nil {
				t.Errorf("the second time: %v", err)
			}
			if left := w.Containers(); len(left) != 2 {
				t.Errorf("there are %d containers, of which two are others'", len(left))
			}
		})
	}
}

// TestCreateImageWithVolumes checks that an image with volumes is refused by name, and that nothing is created.
func TestCreateImageWithVolumes(t *testing.T) {
	w := newWorld(t, fakedocker.Options{Volumes: []string{"/data"}})
	err := w.do(t, call("act1"), docker.Create, map[string]any{"options": map[string]any{"image": image}})
	if !fault.Is(err, fault.Policy, fault.CodeForbidden) || !strings.Contains(err.Error(), image) {
		t.Errorf("it is used: %v", err)
	}
	if n := len(w.Containers()); n != 0 {
		t.Errorf("there are %d containers", n)
	}
}

// TestCreateWithoutHealthCheck checks the request that the engine receives.
func TestCreateWithoutHealthCheck(t *testing.T) {
	w := newWorld(t, fakedocker.Options{})
	w.made(t, "c")
	if body := string(w.Containers()[0].Body); !strings.Contains(body, `"Healthcheck":{"Test":["NONE"]}`) {
		t.Errorf("it is asked for %s", body)
	}
}
