package main

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakedocker"
)

// TestContainerEngineSockets looks for an engine on a machine with one, on a machine without one, and where
// DOCKER_HOST names an engine on another machine.
func TestContainerEngineSockets(t *testing.T) {
	fake := fakedocker.Open(t, fakedocker.Options{Images: []string{"localhost/b:1", "localhost/a:1"}})
	empty := fakedocker.Open(t, fakedocker.Options{})
	for host, want := range map[string]struct{ images, says string }{
		fake.Host:            {"localhost/a:1,localhost/b:1", "of localhost/a:1, localhost/b:1 at /"},
		empty.Host:           {"", "has no image"},
		"unix:///none.sock":  {"", "no container engine answers"},
		"ssh://ana@elsewher": {"", "no container engine answers"},
	} {
		e := newEnvironment(func(name string) string { return map[string]string{"DOCKER_HOST": host}[name] })
		says := e.findEngine(t.Context())
		if !strings.Contains(says, want.says) || e.get("DOCKER_IMAGES") != want.images {
			t.Errorf("%s: %q, of %q", host, says, e.get("DOCKER_IMAGES"))
		}
	}
}

// TestContainersForPlanner starts the server on a machine with an engine.
func TestContainersForPlanner(t *testing.T) {
	fake := fakedocker.Open(t, fakedocker.Options{Images: []string{"localhost/a:1"}})
	t.Setenv("DOCKER_HOST", fake.Host)
	u := serve(t)
	if u.s.app.API.Loop.Tools["docker.createContainer"] == nil || !strings.Contains(u.s.containers, "localhost/a:1") {
		t.Errorf("the start says %q", u.s.containers)
	}
}
