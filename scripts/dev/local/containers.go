package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/tools/container/docker"
)

// The bounds of the look for an engine: how long one may take to answer, and how many of its images are offered.
const (
	engineTime = 10 * time.Second
	mostImages = 20
)

// sockets are where engines of containers listen on a developer's machine.
func (e *environment) sockets() []string {
	if host := e.outer("DOCKER_HOST"); host != "" {
		if path, ok := strings.CutPrefix(host, "unix://"); ok {
			return []string{path}
		}
		return nil // somebody's engine on another machine, which is used where DOCKER_IMAGES says so
	}
	own := []string{"/var/run/docker.sock", "/run/podman/podman.sock"}
	if dir := e.outer("XDG_RUNTIME_DIR"); dir != "" {
		own = append(own, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman", "podman.sock"))
	}
	return own
}

// findEngine looks for a container engine if no images are configured, and offers the engine's images. It returns the
// message for the person who starts the server.
func (e *environment) findEngine(ctx context.Context) string {
	if !e.own("DOCKER_IMAGES") {
		return "of " + e.get("DOCKER_IMAGES") + " at " + e.get("DOCKER_HOST")
	}
	for _, path := range e.sockets() {
		images, err := imagesAt(ctx, "unix://"+path)
		switch {
		case err != nil:
			continue
		case len(images) == 0:
			return "none: the engine at " + path + " has no image with a name"
		}
		e.fill("DOCKER_HOST", "unix://"+path)
		e.fill("DOCKER_IMAGES", strings.Join(images, ","))
		return fmt.Sprintf("of %s at %s, without a network (DOCKER_IMAGES says which)", strings.Join(images, ", "),
			path)
	}
	return "none: no engine answers at a socket of this machine"
}

// imagesAt returns the names of some images that the engine has, in their order.
func imagesAt(ctx context.Context, host string) ([]string, error) {
	e, err := docker.Open(docker.Config{Host: host, Timeout: engineTime})
	if err != nil {
		return nil, err
	}
	names, err := e.Images(ctx)
	_ = e.Close() // it never fails
	slices.Sort(names)
	return names[:min(len(names), mostImages)], err
}
