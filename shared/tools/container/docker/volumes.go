package docker

import (
	"cmp"
	"context"

	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/countersign-run/countersign/shared/tools/container"
)

// labelKind identifies the content of a volume.
const labelKind = "run.countersign.kind"

// networkOf returns the network of a container.
func (e *Engine) networkOf(s container.Spec) moby.NetworkMode {
	if s.Offline {
		return "none"
	}
	return moby.NetworkMode(cmp.Or(e.network, "none"))
}

// mounts returns the mounts of a container: its volume, if it has one. No path of the engine's host can be mounted.
func mounts(s container.Spec) []mount.Mount {
	if s.Volume == "" {
		return nil
	}
	return []mount.Mount{{Type: mount.TypeVolume, Source: s.Volume, Target: container.Dependencies, ReadOnly: !s.Fills}}
}

// Volumes returns the owner's volumes.
func (e *Engine) Volumes(ctx context.Context, o container.Owner) (all []container.Volume, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		got, err := e.client.VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.
			Add("label", labelUser+"="+o.Key()).Add("label", labelRun+"="+o.RunID)})
		for _, v := range got.Items {
			// An engine that ignores the filter would return the volumes of other owners.
			if v.Labels[labelUser] == o.Key() && v.Labels[labelRun] == o.RunID {
				all = append(all, container.Volume{Name: v.Name, Kind: v.Labels[labelKind]})
			}
		}
		return err
	})
	return all, err
}

// MakeVolume makes a volume of the owner. A volume with this name stays as it is.
func (e *Engine) MakeVolume(ctx context.Context, o container.Owner, v container.Volume) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: v.Name, Labels: map[string]string{
			labelUser: o.Key(), labelRun: o.RunID, labelKind: v.Kind}})
		return err
	})
}

// RemoveVolume removes a volume, which the caller must own. It returns ErrMissing if there is none, and ErrTaken if a
// container uses it.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	return e.ask(ctx, func(ctx context.Context) error {
		_, err := e.client.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
		return err
	})
}
