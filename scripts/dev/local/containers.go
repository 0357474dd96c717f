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

// These limit the search for a container engine: how long an engine may take to answer, and how many of its images are
// used.
const (
	engineTime = 10 * time.Second
	mostImages = 20
)

// sockets returns the paths where container engines listen on a developer's machine.
func (e *environment) sockets() []string {
	if host := e.outer("DOCKER_HOST"); host != "" {
		if path, ok := strings.CutPrefix(host, "unix://"); ok {
			return []string{path}
		}
		return nil // an engine on another machine is used only if DOCKER_IMAGES is set
	}
	own := []string{"/var/run/docker.sock", "/run/podman/podman.sock"}
	if dir := e.outer("XDG_RUNTIME_DIR"); dir != "" {
		own = append(own, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman", "podman.sock"))
	}
	return own
}

// findEngine looks for a container engine if DOCKER_IMAGES is not set, and configures the images that the engine has.
// It returns a line for the greeting.
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
		return fmt.Sprintf("of %s at %s, without a network (DOCKER_IMAGES selects them)", strings.Join(images, ", "),
			path)
	}
	return "none: no container engine answers on this machine"
}

// imagesAt returns the names of images that the engine has, in sorted order, at most mostImages.
func imagesAt(ctx context.Context, host string) ([]string, error) {
	e, err := docker.Open(docker.Config{Host: host, Timeout: engineTime})
	if err != nil {
		return nil, err
	}
	names, err := e.Images(ctx)
	_ = e.Close() // Close always returns nil
	slices.Sort(names)
	return names[:min(len(names), mostImages)], err
}
