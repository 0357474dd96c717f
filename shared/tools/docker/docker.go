// Package docker provides the tools of agents that work in containers (seed 004): they create containers, run scripts
// in them, read their files and remove them. A container never gets more than package container allows.
//
// A container belongs to the run that created it; other runs cannot see it, but a user can remove their own containers
// of any run. The containers of a run are removed without a question when the run has ended. A script is an exec of the
// engine. It is prepared before the intent, and the engine starts an exec at most once, so a script runs at most once
// even if processes die. The engine reports the outcome. No argument takes a credential, so none enters a container.
// Removing a container counts as an ordinary change, because nothing in it is meant to last.
package docker

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/container/outlet"
)

// The tools' names for the model, as in seed 004.
const (
	List         = "docker.listContainers"
	Create       = "docker.createContainer"
	Destroy      = "docker.destroyContainer"
	Cleanup      = "docker.cleanupGroupContainers"
	Script       = "docker.executeScript"
	ReadFile     = "docker.readFileInContainer"
	EditFile     = "docker.editFile"
	SourceFiles  = "docker.getAllSourceFiles"
	ConfigureGit = "github.configureGitClientInContainer"
	Shell        = "run_shell_command"

	FetchDependencies = "docker.fetchDependencies"
)

// Names lists the names of all these tools.
var Names = []string{Create, Script, Destroy, Cleanup, List, ReadFile, EditFile, SourceFiles, ConfigureGit,
	Shell, FetchDependencies}

// Engine runs containers (package docker of shared). Its errors are those of that package.
type Engine interface {
	List(ctx context.Context, o container.Owner, group string, all bool) ([]container.Container, error)
	All(ctx context.Context, o container.Owner) ([]container.Container, error)
	Find(ctx context.Context, o container.Owner, ref string) (container.Container, error)
	Create(ctx context.Context, o container.Owner, s container.Spec) (id string, err error)
	Start(ctx context.Context, id string) error
	Remove(ctx context.Context, id string) error
	NewProcess(ctx context.Context, id string, command []string) (process string, err error)
	Run(ctx context.Context, process string, to container.Streams) error
	Feed(ctx context.Context, id string, command []string, in []byte) (exit int, err error)
	Converse(ctx context.Context, id string, command []string, in io.Reader, to container.Streams) (exit int, err error)
	Look(ctx context.Context, process string) (container.Process, error)
	Volumes(ctx context.Context, o container.Owner) ([]container.Volume, error)
	MakeVolume(ctx context.Context, o container.Owner, v container.Volume) error
	RemoveVolume(ctx context.Context, name string) error
}

// Options configures the tools.
type Options struct {
	Engine  Engine   // nil in a process that only judges and shows calls
	Images  []string // the allowed images (DOCKER_IMAGES)
	Network string   // the network of containers (DOCKER_NETWORK); empty: none

	Checkouts Source       // for the files of repositories; nil: checkouts are off
	Packages  outlet.Hosts // the hosts that dependencies come from (DOCKER_PACKAGE_HOSTS); none: nothing is fetched
}

// tools runs the calls of the tools.
type tools struct{ Options }

// New returns the tools for containers.
func New(o Options) tool.Set {
	t := &tools{o}
	t.Images = slices.Clone(o.Images)
	all := []*tool.Tool{t.list(), t.create(), t.destroy(), t.cleanup(), t.script(), t.readFile(), t.editFile(),
		t.sourceFiles(), t.configureGit(), t.shell()}
	if t.fetches() {
		all = append(all, t.fetch())
	}
	return tool.NewSet(all...)
}

// fetches reports whether dependencies can be fetched.
func (t *tools) fetches() bool { return t.Checkouts != nil && len(t.Packages.Names()) > 0 }

// engine returns the engine that runs calls.
func (t *tools) engine() (Engine, error) {
	if t.Engine == nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "This process has no container engine.")
	}
	return t.Engine, nil
}

// owner returns the owner whose containers a call sees: its run.
func owner(c tool.Call) container.Owner { return container.Owner{UID: c.UID, RunID: c.RunID} }

// The error codes of the tools for containers.
const (
	CodeStopped  = fault.Code("cancelled")         // the user stopped it together with the run
	CodeTimeout  = fault.Code("timeout")           // it was stopped at its time limit
	CodeExit     = fault.Code("exit_code")         // it ended with a non-zero exit code
	CodeNotReady = fault.Code("container_stopped") // the container is not running
	CodeNoImage  = fault.Code("no_image")          // the engine does not have the container or image
	CodeTooMany  = fault.Code("too_many_containers")
	codeNoTar    = fault.Code("no_tar")
	CodeWhich    = fault.Code("which_container") // the run has no container, or more than one
)

// find returns a running container of the call's run.
func find(ctx context.Context, e Engine, c tool.Call, id string) (container.Container, error) {
	found, err := e.Find(ctx, owner(c), id)
	switch {
	case err != nil:
		return found, nothingDone(err)
	case found.State != container.Running:
		return found, fault.New(fault.Tool, CodeNotReady, "The container does not run.")
	}
	return found, nil
}

// nothingDone marks the error of a request that changes nothing, so that a retry is safe.
func nothingDone(err error) error {
	switch {
	case errors.Is(err, container.ErrMissing):
		return fault.NotFound()
	case errors.Is(err, container.ErrTaken):
		return fault.New(fault.Tool, CodeNotReady, "The container does not run.")
	case tool.IsAmbiguous(err):
		return tool.Transient(fault.As(err))
	}
	return err
}

// lookEvery is the interval between two checks of a running process.
const lookEvery = 200 * time.Millisecond
