package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// DestroyArgs are the arguments of docker.destroyContainer.
type DestroyArgs struct {
	ContainerID string `json:"containerId" jsonschema:"The id that createContainer has returned."`
}

// GroupArgs are the arguments of docker.cleanupGroupContainers.
type GroupArgs struct {
	Group string `json:"group" jsonschema:"The group that the containers were created in."`
}

// Removed is the result of both tools.
type Removed struct {
	Removed int `json:"removed"` // number of containers; 0 if they were already gone
}

func (t *tools) destroy() *tool.Tool {
	return tool.Define(tool.Def[DestroyArgs, Removed]{
		Name: Destroy,
		Description: "Ends a container of this task, or of another task of its user, and removes it with all that it " +
			"has written.",
		SideEffect: true,
		Refine:     func(s *jsonschema.Schema) { s.Properties["containerId"].Pattern = idPattern },
		Preview: func(a DestroyArgs) tool.Preview {
			p := tool.Preview{Title: "Remove a container"}
			p.AddLine("Container", a.ContainerID)
			return p
		},
		Summary: func(a DestroyArgs) string { return fmt.Sprintf("Removed the container %.12s.", a.ContainerID) },
		Prepare: t.whole,
		Execute: func(ctx context.Context, c tool.Call, a DestroyArgs) (Removed, error) {
			if c.Handle != a.ContainerID { // the stored handle was not part of the approval, but the arguments were
				return Removed{}, fault.New(fault.Policy, fault.CodeIntegrity,
					"The recorded container is not the approved one. Nothing was removed.")
			}
			e, err := t.engine()
			if err != nil {
				return Removed{}, err
			}
			return removed(e.Remove(ctx, a.ContainerID))
		},
		Reconcile: func(ctx context.Context, c tool.Call, _ DestroyArgs) (tool.Verdict, Removed, string, error) {
			e, err := t.engine()
			if err != nil {
				return "", Removed{}, "", err
			}
			if c.Handle == "" {
				return tool.NotDone, Removed{}, "", nil
			}
			there, err := ownedByUser(ctx, e, c, c.Handle)
			return absent(err == nil && !there, err)
		},
	})
}

// whole checks that the container belongs to the user. It returns its full ID, which is never reused, as the handle.
func (t *tools) whole(ctx context.Context, c tool.Call, a DestroyArgs) (string, error) {
	e, err := t.engine()
	if err != nil {
		return "", err
	}
	there, err := ownedByUser(ctx, e, c, a.ContainerID)
	switch {
	case err != nil:
		return "", nothingDone(err)
	case !there:
		return "", fault.NotFound()
	}
	return a.ContainerID, nil
}

// ownedByUser reports whether the call's user owns the container, in any run.
func ownedByUser(ctx context.Context, e Engine, c tool.Call, id string) (bool, error) {
	has, err := e.All(ctx, owner(c))
	return slices.ContainsFunc(has, func(one container.Container) bool { return one.ID == id }), err
}

// removed returns the outcome of a removal. If the engine does not find the container, the outcome is ambiguous, and
// the caller checks whether it is gone.
func removed(err error) (Removed, error) {
	switch {
	case err == nil:
		return Removed{1}, nil
	case errors.Is(err, container.ErrMissing):
		return Removed{}, tool.Ambiguous(fault.New(fault.Tool, fault.CodeNotFound,
			"The container no longer existed."))
	case errors.Is(err, container.ErrTaken): // another request is removing it
		return Removed{}, tool.Transient(fault.New(fault.Tool, fault.CodeBusy, "The container is being removed."))
	}
	return Removed{}, err
}

// absent reports a removal as done if the container no longer exists.
func absent(gone bool, err error) (tool.Verdict, Removed, string, error) {
	switch {
	case gone:
		return tool.Done, Removed{}, "", nil
	case err != nil:
		return "", Removed{}, "", fault.As(err)
	}
	return tool.NotDone, Removed{}, "", nil
}

func (t *tools) cleanup() *tool.Tool {
	return tool.Define(tool.Def[GroupArgs, Removed]{
		Name:        Cleanup,
		Description: "Ends the containers of a group of this task and removes them with all that they have written.",
		SideEffect:  true,
		Contained:   true,
		Refine:      func(s *jsonschema.Schema) { s.Properties["group"].Pattern = groupPattern },
		Pinned:      func(a GroupArgs) any { return a },
		Preview: func(a GroupArgs) tool.Preview {
			p := tool.Preview{Title: "Remove the containers of a group"}
			p.AddLine("Group", a.Group)
			return p
		},
		Summary: func(a GroupArgs) string { return fmt.Sprintf("Removed the containers of the group %s.", a.Group) },
		Execute: t.removeGroup,
		Reconcile: func(ctx context.Context, c tool.Call, a GroupArgs) (tool.Verdict, Removed, string, error) {
			e, err := t.engine()
			if err != nil {
				return "", Removed{}, "", err
			}
			left, err := e.List(ctx, owner(c), a.Group, true)
			return absent(err == nil && len(left) == 0, err)
		},
	})
}

func (t *tools) removeGroup(ctx context.Context, c tool.Call, a GroupArgs) (all Removed, err error) {
	e, err := t.engine()
	if err != nil {
		return all, err
	}
	has, err := e.List(ctx, owner(c), a.Group, true)
	if err != nil {
		return all, nothingDone(err)
	}
	for _, one := range has {
		r, err := removed(e.Remove(ctx, one.ID))
		if err != nil {
			return all, tool.Ambiguous(err) // some may be gone; the remaining ones can be listed
		}
		all.Removed += r.Removed
	}
	return all, nil
}

// removeAll removes the remaining containers of an ended run. Containers that another process removes at the same time
// count as removed. Those whose removal is in progress are checked again.
func (t *tools) removeAll(ctx context.Context, c tool.Call) (n int, err error) {
	e, err := t.engine()
	if err != nil {
		return 0, err
	}
	has, err := e.List(ctx, owner(c), "", true)
	if err != nil {
		return 0, nothingDone(err)
	}
	for _, one := range has {
		switch err := e.Remove(ctx, one.ID); {
		case errors.Is(err, container.ErrMissing):
		case errors.Is(err, container.ErrTaken):
			return n, fault.New(fault.Tool, fault.CodeBusy, "A container is still being removed.")
		case err != nil:
			return n, err
		default:
			n++
		}
	}
	return n, nil
}
