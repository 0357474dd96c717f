package docker_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

// do carries out a call of a user's run, one of each action.
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

// TestContainersAreCountedByUser creates one in each of a user's runs: they stay, and those of any run make room.
func TestContainersAreCountedByUser(t *testing.T) {
	w := newWorld(t, fakedocker.Options{})
	in := func(uid, run string) tool.Call {
		c := call("act_" + uid + "_" + run)
		c.UID, c.RunID = uid, run
		return c
	}
	create := func(uid, run string) error {
		return w.do(t, in(uid, run), docker.Create, map[string]any{"options": map[string]any{"image": image}})
	}
	for _, run := range []string{"run_1", "run_2", "run_3"} {
		if err := create("ana", run); err != nil {
			t.Fatal(err)
		}
	}
	first := w.Containers()[0].ID
	if err := create("ana", "run_4"); !fault.Is(err, fault.Policy, docker.CodeTooMany) ||
		!strings.Contains(err.Error(), first) {
		t.Errorf("a fourth one: %v", err)
	}
	if err := create("bea", "run_5"); err != nil {
		t.Errorf("another user's first: %v", err)
	}
	destroy := map[string]any{"containerId": first}
	if err := w.do(t, in("bea", "run_5"), docker.Destroy, destroy); !fault.Is(err, fault.Auth, fault.CodeNotFound) {
		t.Errorf("another user destroys it: %v", err)
	}
	if err := w.do(t, in("ana", "run_4"), docker.Destroy, destroy); err != nil {
		t.Fatal(err)
	}
	if err := create("ana", "run_4"); err != nil {
		t.Errorf("there is room, and yet: %v", err)
	}
}

// TestAnImageWithVolumesIsRefused names it, and creates nothing.
func TestAnImageWithVolumesIsRefused(t *testing.T) {
	w := newWorld(t, fakedocker.Options{Volumes: []string{"/data"}})
	err := w.do(t, call("act1"), docker.Create, map[string]any{"options": map[string]any{"image": image}})
	if !fault.Is(err, fault.Policy, fault.CodeForbidden) || !strings.Contains(err.Error(), image) {
		t.Errorf("it is used: %v", err)
	}
	if n := len(w.Containers()); n != 0 {
		t.Errorf("there are %d containers", n)
	}
}

// TestHealthIsNotChecked looks at what the engine is asked for.
func TestHealthIsNotChecked(t *testing.T) {
	w := newWorld(t, fakedocker.Options{})
	w.made(t, "c")
	if body := string(w.Containers()[0].Body); !strings.Contains(body, `"Healthcheck":{"Test":["NONE"]}`) {
		t.Errorf("it is asked for %s", body)
	}
}
