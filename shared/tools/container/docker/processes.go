package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	moby "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// errOdd means that an answer does not follow the API's description.
var errOdd = errors.New("docker: unexpected response")

var isID = lazyregexp.New(`^[0-9a-f]{64}$`)

func validID(id string) bool { return isID.MatchString(id) }

// NewProcess registers a process for a container with the engine, and returns its ID. Nothing runs before Run. The
// caller must own the container. It returns ErrMissing if the container does not exist, and ErrTaken if it is not
// running.
func (e *Engine) NewProcess(ctx context.Context, id string, command []string) (process string, err error) {
	err = e.ask(ctx, func(ctx context.Context) error {
		made, err := e.client.ExecCreate(ctx, id, client.ExecCreateOptions{User: container.User,
			WorkingDir: container.Work, Cmd: command, AttachStdout: true, AttachStderr: true})
		if process = made.ID; err == nil && !validID(process) {
			return errOdd
		}
		return err
	})
	return process, err
}

// Run starts a process and passes on its output until it ends or ctx ends. An engine starts a process only once.
// Engines answer a second start in different ways (Docker 409, Podman 500), and an interrupted start with the same
// statuses. After any error, the process may therefore be running; use [Engine.Look] to find out.
func (e *Engine) Run(ctx context.Context, process string, to container.Streams) error {
	begin, cancel := context.WithTimeout(ctx, e.timeout) // the connection outlives it
	attached, err := e.streams.ExecAttach(begin, process, client.ExecAttachOptions{})
	cancel()
	if err != nil {
		return tool.Unanswered(fault.New(fault.Tool, CodeFailed,
			"The container engine did not start this, or had already started it."))
	}
	stop := context.AfterFunc(ctx, attached.Close)
	defer func() {
		if stop() {
			attached.Close()
		}
	}()
	err = container.Demux(to, attached.Reader)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Feed runs a program in a container with in as its standard input, and returns the exit code. The output is discarded.
// After an error, the program may have run.
func (e *Engine) Feed(ctx context.Context, id string, command []string, in []byte) (exit int, err error) {
	return e.Converse(ctx, id, command, bytes.NewReader(in), container.Streams{Stdout: io.Discard, Stderr: io.Discard})
}

// Converse runs a program in a container with in as its standard input, passes its output on, and returns the exit
// code. If ctx ends, the program continues without a reader. After an error, the program may have run.
func (e *Engine) Converse(ctx context.Context, id string, command []string, in io.Reader,
	to container.Streams) (exit int, err error) {
	var process string
	err = e.ask(ctx, func(ctx context.Context) error {
		made, err := e.client.ExecCreate(ctx, id, client.ExecCreateOptions{User: container.User,
			WorkingDir: container.Work, Cmd: command, AttachStdin: true, AttachStdout: true, AttachStderr: true})
		if process = made.ID; err == nil && !validID(process) {
			return errOdd
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	begin, cancel := context.WithTimeout(ctx, e.timeout) // the connection outlives it
	attached, err := e.streams.ExecAttach(begin, process, client.ExecAttachOptions{})
	cancel()
	if err != nil {
		return 0, tool.Unanswered(fault.New(fault.Tool, CodeFailed, "The container engine did not start this."))
	}
	defer attached.Close()
	stop := context.AfterFunc(ctx, attached.Close)
	defer stop()
	go func() { // a program need not read everything; its exit code shows the result
		_, _ = io.Copy(attached.Conn, in)
		_ = attached.CloseWrite()
	}()
	if err := container.Demux(to, attached.Reader); err != nil {
		return 0, tool.Unanswered(err)
	}
	return e.exitCode(ctx, process)
}

// exitCode waits until a process has ended and returns its exit code.
func (e *Engine) exitCode(ctx context.Context, process string) (int, error) {
	for {
		p, err := e.Look(ctx, process)
		if err != nil || p.Started && !p.Running {
			return p.ExitCode, err
		}
		if err := wait.For(ctx, lookEvery); err != nil {
			return 0, err
		}
	}
}

// lookEvery is the interval between two checks of a process that is about to end.
const lookEvery = 100 * time.Millisecond

// Look returns the state of a process. It returns ErrMissing if the engine does not know the process. An engine forgets
// ended processes after some minutes.
func (e *Engine) Look(ctx context.Context, process string) (container.Process, error) {
	var raw bytes.Buffer
	err := e.read(ctx, &raw, func(ctx context.Context) error {
		_, err := e.client.ExecInspect(ctx, process, client.ExecInspectOptions{})
		return err
	})
	if err != nil {
		return container.Process{}, err
	}
	var said moby.ExecInspectResponse // distinguishes a missing exit code from 0, unlike the library
	if err := json.Unmarshal(raw.Bytes(), &said); err != nil || said.ID != process {
		return container.Process{}, failed(http.StatusOK)
	}
	p := container.Process{Running: said.Running, Started: said.Running || said.Pid != 0 || said.CanRemove}
	if said.ExitCode == nil {
		return p, nil
	}
	if p.ExitCode = *said.ExitCode; p.Started || p.ExitCode != 0 {
		p.Started = true
		return p, nil
	}
	// The exit code is 0 in both cases. With Docker, the process has ended, because a process that was not started has
	// no exit code. With Podman, it was not started.
	isPodman, err := e.isPodman(ctx)
	p.Started = !isPodman
	return p, err
}

// isPodman asks the engine once whether it is Podman.
func (e *Engine) isPodman(ctx context.Context) (bool, error) {
	if known := e.podman.Load(); known != 0 {
		return known == 1, nil
	}
	var is bool
	err := e.ask(ctx, func(ctx context.Context) error {
		version, err := e.client.ServerVersion(ctx, client.ServerVersionOptions{})
		for _, part := range version.Components {
			is = is || strings.Contains(part.Name, "Podman")
		}
		return err
	})
	if err == nil && is {
		e.podman.Store(1)
	} else if err == nil {
		e.podman.Store(2)
	}
	return is, err
}
