package docker

import (
	"context"
	"maps"
	"strconv"
	"time"

	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// The labels that identify containers.
const (
	labelUser   = "run.countersign.user" // container.Owner.Key
	labelRun    = "run.countersign.run"
	labelAction = "run.countersign.action"
	labelGroup  = "run.countersign.group"
)

// waiting is the command of a container that has no command of its own. It keeps the container alive and reaps orphaned
// processes.
var waiting = []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 86400 & wait $!; done"}

// Create creates a container without starting it. Errors: ErrTaken if the name is taken, ErrMissing if the engine does
// not have the image, PolicyError forbidden if the image declares volumes, and the package's own.
func (e *Engine) Create(ctx context.Context, o container.Owner, s container.Spec) (id string, err error) {
	command := s.Command
	if len(command) == 0 {
		command = waiting
	}
	if err := e.refuseVolumes(ctx, s.Image); err != nil {
		return "", err
	}
	err = e.ask(ctx, func(ctx context.Context) error {
		made, err := e.client.ContainerCreate(ctx, client.ContainerCreateOptions{
			Name:       s.Name,
			Config:     e.config(o, s, command),
			HostConfig: e.hostConfig(s),
		})
		if id = made.ID; err == nil && !validID(id) {
			return errOdd
		}
		return err
	})
	return id, err
}

// refuseVolumes returns a PolicyError if the image declares volumes. The engine would make a directory on its host for
// each volume, and a container could write to it without limit, although its root is read-only.
func (e *Engine) refuseVolumes(ctx context.Context, image string) error {
	var volumes int
	err := e.ask(ctx, func(ctx context.Context) error {
		got, err := e.client.ImageInspect(ctx, image)
		if err == nil && got.Config == nil {
			return errOdd
		}
		if err == nil {
			volumes = len(got.Config.Volumes)
		}
		return err
	})
	switch {
	case tool.IsAmbiguous(err):
		return tool.Transient(fault.As(err)) // the request only reads
	case err == nil && volumes > 0:
		return fault.New(fault.Policy, fault.CodeForbidden, "No container is made of %s: the image declares volumes, "+
			"which the engine would keep on its host.", image)
	}
	return err
}

func (e *Engine) config(o container.Owner, s container.Spec, command []string) *moby.Config {
	return &moby.Config{
		Image:      s.Image,
		Entrypoint: command[:1], // replaces the image's
		Cmd:        command[1:],
		User:       container.User,
		WorkingDir: container.Work,
		// The image's own health check would run in addition to the requested command.
		Healthcheck: &moby.HealthConfig{Test: []string{"NONE"}},
		Env:         append([]string{"HOME=" + container.Work, "TMPDIR=" + container.Work}, s.Env...),
		Labels: map[string]string{labelUser: o.Key(), labelRun: o.RunID, labelAction: s.ActionID,
			labelGroup: s.Group},
	}
}

// hostConfig returns the limits and permissions of a container. Files in Work count as memory and take at most half of
// it, so that a full directory is an error of the writer. There is no swap. Even an engine that cannot raise its own
// limits can set these process limits.
func (e *Engine) hostConfig(s container.Spec) *moby.HostConfig {
	pids := int64(container.Pids)
	return &moby.HostConfig{
		NetworkMode:    e.networkOf(s),
		Mounts:         mounts(s),
		ReadonlyRootfs: true,
		CapDrop:        []string{"ALL"},
		SecurityOpt:    []string{"no-new-privileges"},
		Tmpfs: map[string]string{
			container.Work: "rw,exec,nosuid,nodev,mode=1777,size=" + strconv.FormatInt(s.Memory/2, 10)},
		LogConfig: moby.LogConfig{Type: "none"},
		Resources: moby.Resources{
			Memory:     s.Memory,
			MemorySwap: s.Memory,
			NanoCPUs:   container.CPUs * 1e9,
			PidsLimit:  &pids,
			Ulimits: []*moby.Ulimit{
				{Name: "nofile", Soft: container.SoftFiles, Hard: container.HardFiles},
				{Name: "nproc", Soft: container.Processes, Hard: container.Processes}},
		},
	}
}

// Start starts a container. The caller must own it. A container that runs already is not changed.
func (e *Engine) Start(ctx context.Context, id string) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
}

// Find returns the owner's container with the ID or name. It returns ErrMissing for any other container.
func (e *Engine) Find(ctx context.Context, o container.Owner, ref string) (found container.Container, err error) {
	var mine bool
	err = e.ask(ctx, func(ctx context.Context) error {
		got, err := e.client.ContainerInspect(ctx, ref, client.ContainerInspectOptions{})
		c := got.Container
		if err != nil {
			return err
		}
		created, err := time.Parse(time.RFC3339Nano, c.Created)
		if err != nil || c.Config == nil || c.State == nil || !validID(c.ID) {
			return errOdd
		}
		l := c.Config.Labels
		if mine = l[labelUser] == o.Key() && l[labelRun] == o.RunID; mine {
			found = of(c.ID, c.Config.Image, string(c.State.Status), l, created)
		}
		return nil
	})
	if err == nil && !mine {
		err = container.ErrMissing
	}
	return found, err
}

// List returns the owner's containers, newest first. A non-empty group restricts the list to that group. all includes
// containers that are not running.
func (e *Engine) List(ctx context.Context, o container.Owner, group string, all bool) ([]container.Container, error) {
	wanted := map[string]string{labelUser: o.Key(), labelRun: o.RunID}
	if group != "" {
		wanted[labelGroup] = group
	}
	return e.those(ctx, wanted, all)
}

// All returns the containers of the owner's user in all runs, running or not, newest first.
func (e *Engine) All(ctx context.Context, o container.Owner) ([]container.Container, error) {
	return e.those(ctx, map[string]string{labelUser: o.Key()}, true)
}

func (e *Engine) those(ctx context.Context, wanted map[string]string, all bool) ([]container.Container, error) {
	found, err := e.list(ctx, wanted, all)
	out := make([]container.Container, 0, len(found))
	for _, c := range found {
		out = append(out, of(c.ID, c.Image, string(c.State), c.Labels, time.Unix(c.Created, 0).UTC()))
	}
	return out, err
}

// list returns the containers with these labels, even if the engine ignores the filter.
func (e *Engine) list(ctx context.Context, wanted map[string]string, all bool) (found []moby.Summary, err error) {
	filters := client.Filters{}
	for name, value := range wanted {
		filters.Add("label", name+"="+value)
	}
	err = e.ask(ctx, func(ctx context.Context) error {
		got, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: all, Filters: filters})
		for _, c := range got.Items {
			has := maps.Clone(c.Labels)
			maps.DeleteFunc(has, func(name, value string) bool {
				v, asked := wanted[name]
				return !asked || v != value
			})
			if len(has) == len(wanted) && validID(c.ID) {
				found = append(found, c)
			}
		}
		return err
	})
	return found, err
}

func of(id, image, state string, labels map[string]string, created time.Time) container.Container {
	return container.Container{ID: id, Image: image, State: container.State(state), RunID: labels[labelRun],
		ActionID: labels[labelAction], Group: labels[labelGroup], CreatedAt: created}
}

// Remove kills all processes in a container and removes the container with all its data. The caller must own it. It
// returns ErrMissing if the container does not exist.
func (e *Engine) Remove(ctx context.Context, id string) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
}
