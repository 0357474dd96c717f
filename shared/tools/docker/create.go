package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// CreateArgs are the arguments of docker.createContainer.
type CreateArgs struct {
	Options CreateOptions `json:"options" jsonschema:"What the container is made of."`
}

// CreateOptions are all options of a container.
type CreateOptions struct {
	Image   string   `json:"image" jsonschema:"One of the images that the operator allows."`
	Command []string `json:"command,omitempty" jsonschema:"What it runs, program first; by default it waits for scripts."`
	Env     []string `json:"env,omitempty" jsonschema:"Environment variables, each NAME=value. Never a credential."`
	Memory  int      `json:"memory,omitempty" jsonschema:"MiB that it may use: 512 if left out, at most 2048."`
	Group   string   `json:"group,omitempty" jsonschema:"A name to remove several containers together."`

	Checkout *Checkout `json:"checkout,omitempty" jsonschema:"A commit of a GitHub repository whose files are in /work from the beginning."`

	Dependencies string `json:"dependencies,omitempty" jsonschema:"The volume that docker.fetchDependencies has returned: it is at /deps, read-only."`

	others []string // names of unknown options in the call
}

// UnmarshalJSON records the names of unknown fields, so that Normalize can give a reason for refusing each.
func (o *CreateOptions) UnmarshalJSON(b []byte) error {
	type plain CreateOptions
	var all map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(b, &all), json.Unmarshal(b, (*plain)(o))); err != nil {
		return err
	}
	for name := range maps.Keys(all) {
		if !slices.Contains(options, name) {
			o.others = append(o.others, name)
		}
	}
	slices.Sort(o.others)
	return nil
}

// options are the names of the known options.
var options = []string{"image", "command", "env", "memory", "group", "checkout", "dependencies"}

// Limits of a container's options.
const (
	defaultMemory = 512 // MiB
	maxWords      = 64  // of a command, and of the variables
	maxWord       = 4 << 10
	maxOptions    = 16 << 10
)

// Created is the result of docker.createContainer.
type Created struct {
	ID       string      `json:"id"`
	Checkout *CheckedOut `json:"checkout,omitempty"`
}

func (t *tools) create() *tool.Tool {
	return tool.Define(tool.Def[CreateArgs, Created]{
		Name: Create,
		Description: "Creates a container for this task and starts it: as an ordinary user, with /work as its only " +
			"directory that can be written to, and " + t.reach() + ". A task has at most three; they are removed " +
			"when it ends. Images: " + strings.Join(t.Images, ", "),
		SideEffect: true,
		Contained:  t.Network == "",
		Refine:     t.refineCreate,
		Normalize:  t.normalizeCreate,
		Pinned: func(a CreateArgs) any {
			o := a.Options
			return CreateArgs{CreateOptions{Image: o.Image, Memory: cmp.Or(o.Memory, defaultMemory),
				Group: o.Group, Checkout: o.Checkout}}
		},
		Preview:   t.previewCreate,
		Summary:   func(a CreateArgs) string { return fmt.Sprintf("Created a container of %s.", a.Options.Image) },
		Execute:   t.createOnce,
		Reconcile: t.findCreated,
		Dispose:   t.removeAll,
	})
}

func (t *tools) reach() string {
	if t.Network == "" {
		return "without a network"
	}
	return "with the network " + t.Network
}

func (t *tools) refineCreate(s *jsonschema.Schema) {
	o := s.Properties["options"]
	o.AdditionalProperties, o.Required = nil, nil         // Normalize refuses unknown fields with a reason
	o.Properties["image"].MaxLength = jsonschema.Ptr(512) // Normalize refuses other images as a matter of policy
	for _, list := range []string{"command", "env"} {
		p := o.Properties[list]
		p.MaxItems, p.Items.MaxLength = jsonschema.Ptr(maxWords), jsonschema.Ptr(maxWord)
	}
	o.Properties["env"].Items.Pattern = `^[A-Za-z_][A-Za-z0-9_]*=`
	o.Properties["memory"].Minimum = jsonschema.Ptr(float64(container.MinMemory >> 20))
	o.Properties["memory"].Maximum = jsonschema.Ptr(float64(container.MaxMemory >> 20))
	o.Properties["group"].Pattern = groupPattern
	t.refineCheckout(o)
	if o.Properties["dependencies"].Pattern = volumePattern; !t.fetches() {
		delete(o.Properties, "dependencies")
	}
}

const groupPattern = `^[a-z0-9][a-z0-9-]{0,39}$`

func (t *tools) normalizeCreate(a CreateArgs) (CreateArgs, error) {
	o := &a.Options
	for _, name := range o.others {
		if engines[normalName(name)] {
			return a, forbidden("options/"+shownName(name), "What a container may do is fixed here, and this "+
				"option of the engine is not available.")
		}
	}
	for _, name := range o.others {
		return a, fault.Invalid("options/"+shownName(name), "unknown field")
	}
	size := 0
	for _, word := range slices.Concat(o.Command, o.Env) {
		if size += len(word); strings.ContainsRune(word, 0) || size > maxOptions {
			return a, fault.Invalid("options", "must be words without NUL, 16 KiB in total")
		}
	}
	for i, v := range o.Env {
		if obs.RemoveSecrets(v) != v {
			return a, forbidden(fmt.Sprintf("options/env/%d", i), "No credential enters a container.")
		}
	}
	if o.Image == "" {
		return a, fault.Invalid("options/image", "an image is required")
	}
	if !slices.Contains(t.Images, o.Image) {
		return a, forbidden("options/image", "Containers are made of these images alone: %s.",
			strings.Join(t.Images, ", "))
	}
	if o.Dependencies != "" && !t.fetches() {
		return a, fault.Invalid("options/dependencies", "no dependencies can be fetched here")
	}
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	return a, t.checkCheckout(o)
}

func forbidden(field, format string, args ...any) error {
	err := fault.New(fault.Policy, fault.CodeForbidden, format, args...)
	err.Field = field
	return err
}

func shownName(name string) string {
	shown, _ := visible.Line(name)
	if len(shown) > 64 {
		return "…"
	}
	return shown
}

func (t *tools) previewCreate(a CreateArgs) tool.Preview {
	o := a.Options
	p := tool.Preview{Title: "Create a container"}
	p.AddLine("Image", o.Image)
	if len(o.Command) > 0 {
		p.AddText("Command", strings.Join(o.Command, "\n"))
	}
	if len(o.Env) > 0 {
		p.AddText("Environment", strings.Join(o.Env, "\n"))
	}
	previewCheckout(&p, o.Checkout)
	if o.Dependencies != "" {
		p.AddLine("Dependencies", o.Dependencies+", read-only at "+deps)
	}
	p.AddField("Memory", fmt.Sprintf("%d MiB", o.Memory))
	p.AddField("Stays", "until it is destroyed, or the task has ended")
	if o.Group != "" {
		p.AddLine("Group", o.Group)
	}
	if t.Network == "" {
		p.AddField("Network", "none")
	} else {
		p.AddLine("Network", t.Network)
	}
	t.warn(&p)
	return p
}

// warn adds a warning to a card if containers can reach a network.
func (t *tools) warn(p *tool.Preview) {
	if t.Network != "" {
		p.Warn("Programs in the container can reach the network %s, and can send their data there.", t.Network)
	}
}

// createOnce creates the container under a name that no other call uses, and starts it. It skips steps that were done
// before.
func (t *tools) createOnce(ctx context.Context, c tool.Call, a CreateArgs) (Created, error) {
	e, err := t.engine()
	if err != nil {
		return Created{}, err
	}
	found, err := e.Find(ctx, owner(c), nameOf(c))
	if errors.Is(err, container.ErrMissing) {
		found.ID, err = t.createNew(ctx, e, c, a.Options)
	} else if err != nil {
		err = nothingDone(err)
	}
	if err != nil {
		return Created{}, err
	}
	if found.State != container.Running {
		err = e.Start(ctx, found.ID)
		if errors.Is(err, container.ErrMissing) || errors.Is(err, container.ErrTaken) {
			err = fault.New(fault.Tool, CodeNotReady, "The container could not be started: it has no such command.")
		}
	}
	made := Created{ID: found.ID}
	if err == nil && a.Options.Checkout != nil {
		made.Checkout, err = t.checkOut(ctx, e, c, found.ID, *a.Options.Checkout)
	}
	return made, err
}

func (t *tools) createNew(ctx context.Context, e Engine, c tool.Call, o CreateOptions) (string, error) {
	has, err := e.All(ctx, owner(c))
	if err != nil {
		return "", nothingDone(err)
	}
	if err := checkRoom(has, c.RunID); err != nil {
		return "", err
	}
	env, err := t.envOf(ctx, e, c, o)
	if err != nil {
		return "", err
	}
	id, err := e.Create(ctx, owner(c), container.Spec{Name: nameOf(c), ActionID: c.ActionID, Image: o.Image,
		Command: o.Command, Env: env, Memory: int64(o.Memory) << 20, Group: o.Group, Volume: o.Dependencies})
	switch {
	case errors.Is(err, container.ErrMissing):
		return "", fault.New(fault.Tool, CodeNoImage, "The container engine does not have this image.")
	case errors.Is(err, container.ErrTaken):
		return "", tool.Ambiguous(fault.New(fault.Tool, fault.CodeBusy, "A container with this name exists."))
	}
	return id, err
}

// envOf returns the environment of a container: the variables that lead programs to its dependencies, and the call's
// own. Only a volume of the call's run can be mounted.
func (t *tools) envOf(ctx context.Context, e Engine, c tool.Call, o CreateOptions) ([]string, error) {
	if o.Dependencies == "" {
		return o.Env, nil
	}
	has, err := e.Volumes(ctx, owner(c))
	if err != nil {
		return nil, nothingDone(err)
	}
	at := slices.IndexFunc(has, func(v container.Volume) bool { return v.Name == o.Dependencies })
	if at < 0 {
		return nil, fault.Invalid("options/dependencies", "this task has no volume with this name")
	}
	return slices.Concat(dependencies(has[at].Kind), o.Env), nil
}

// checkRoom refuses a container above the limit of a run, or above the limit of its user in all runs. The error names
// the containers of other runs, because no other list contains them.
func checkRoom(has []container.Container, runID string) error {
	mine := 0
	var others []string
	for _, one := range has {
		if one.RunID == runID {
			mine++
		} else {
			others = append(others, one.ID)
		}
	}
	switch {
	case mine >= container.PerRun:
		return fault.New(fault.Policy, CodeTooMany, "This task has %d containers already. Destroy one of them first.",
			mine)
	case len(has) >= container.PerUser:
		return fault.New(fault.Policy, CodeTooMany, "The user has %d containers in all their tasks, which go when "+
			"these end. Destroy one first; those of other tasks are: %s.", len(has),
			strings.Join(others[:min(len(others), container.PerUser)], ", "))
	}
	return nil
}

func nameOf(c tool.Call) string { return container.NamePrefix + c.ActionID }

// findCreated finds the container by its name. If the container was not started yet, or runs without its files, the
// outcome is still open.
func (t *tools) findCreated(ctx context.Context, c tool.Call, a CreateArgs) (tool.Verdict, Created, string, error) {
	e, err := t.engine()
	if err != nil {
		return "", Created{}, "", err
	}
	found, err := e.Find(ctx, owner(c), nameOf(c))
	switch {
	case errors.Is(err, container.ErrMissing):
		return tool.NotDone, Created{}, "", nil
	case err != nil:
		return "", Created{}, "", fault.As(err)
	case found.State == container.Created || found.State == "configured":
		return tool.NotDone, Created{}, "", nil
	}
	made := Created{ID: found.ID}
	if a.Options.Checkout != nil && found.State == container.Running {
		made.Checkout, err = t.checkedOut(ctx, c, found.ID)
		switch {
		case err != nil && fault.As(err).Code != codeNoTar:
			return "", Created{}, "", fault.As(err)
		case made.Checkout == nil:
			return tool.NotDone, Created{}, "", nil
		}
	}
	return tool.Done, made, "", nil
}
