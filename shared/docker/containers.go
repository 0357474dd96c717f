package docker

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"time"

	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/countersign-run/countersign/shared/container"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// The labels by which containers are known.
const (
	labelUser   = "run.countersign.user" // container.Owner.Key
	labelRun    = "run.countersign.run"
	labelAction = "run.countersign.action"
	labelGroup  = "run.countersign.group"
)

// waiting is what a container runs that was given no command: it lives, and buries what its processes leave.
var waiting = []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 86400 & wait $!; done"}

// Create creates a container that is not started. Errors: ErrTaken where there is one with its name, ErrMissing where
// the engine does not have the image, and one of the class PolicyError where the image keeps volumes.
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

// refuseVolumes refuses an image that declares volumes: the engine makes each a directory of its host, which can be
// written to without bound, though the container's root cannot.
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
		return tool.Transient(fault.As(err)) // nothing was asked for but to look
	case err == nil && volumes > 0:
		return fault.New(fault.Policy, fault.CodeForbidden, "No container is made of %s: the image declares volumes, "+
			"which the engine would keep on its host.", image)
	}
	return err
}

func (e *Engine) config(o container.Owner, s container.Spec, command []string) *moby.Config {
	return &moby.Config{
		Image:      s.Image,
		Entrypoint: command[:1], // in place of the image's
		Cmd:        command[1:],
		User:       container.User,
		WorkingDir: container.Work,
		// The image's own would run on and on beside what is asked for.
		Healthcheck: &moby.HealthConfig{Test: []string{"NONE"}},
		Env:         append([]string{"HOME=" + container.Work, "TMPDIR=" + container.Work}, s.Env...),
		Labels: map[string]string{labelUser: o.Key(), labelRun: o.RunID, labelAction: s.ActionID,
			labelGroup: s.Group},
	}
}

// hostConfig is all that a container may do. What lies in Work counts as its memory, of which it takes half at most, so
// that a full one is an error of who writes; there is no swap. The limits of processes are those that an engine without
// the right to raise its own can set too.
func (e *Engine) hostConfig(s container.Spec) *moby.HostConfig {
	pids := int64(container.Pids)
	return &moby.HostConfig{
		NetworkMode:    moby.NetworkMode(cmp.Or(e.network, "none")),
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

// Start starts a container that is the caller's; one that runs stays as it is.
func (e *Engine) Start(ctx context.Context, id string) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{})
		return err
	})
}

// Find returns the owner's container with the id or name. The error is ErrMissing for any other.
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

// List returns the owner's containers, newest first: those of a group unless that is empty, and those that do not run
// too if all is set.
func (e *Engine) List(ctx context.Context, o container.Owner, group string, all bool) ([]container.Container, error) {
	wanted := map[string]string{labelUser: o.Key(), labelRun: o.RunID}
	if group != "" {
		wanted[labelGroup] = group
	}
	return e.those(ctx, wanted, all)
}

// All returns the containers that the owner's user has, of all runs, be it that they do not run; newest first.
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

// list returns the containers that have these labels, whatever the engine makes of the filter.
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

// Remove ends what runs in a container, at once, and removes it with all that it has written. The error is ErrMissing
// where it is not there. The caller knows that it is theirs.
func (e *Engine) Remove(ctx context.Context, id string) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
}
