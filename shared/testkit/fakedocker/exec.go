package fakedocker

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
)

type process struct {
	id, container string
	command       []string
	input         bool
	starts        int
	exit          int
	running       bool
}

// Forget drops the engine's knowledge of ended processes, as engines do after some minutes.
func (e *Engine) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.processes = nil
}

func (e *Engine) execCreate(r *http.Request) reply {
	c := e.find(r)
	var body struct {
		Cmd         []string
		AttachStdin bool
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return refusal(400, "%v", err)
	}
	switch {
	case c == nil:
		return refusal(404, "No such container")
	case c.State != "running":
		return refusal(409, "Container %s is not running", c.ID)
	}
	p := &process{id: e.id(), container: c.ID, command: body.Cmd, input: body.AttachStdin}
	e.processes = append(e.processes, p)
	return reply{status: 201, body: map[string]any{"Id": p.id}}
}

func (e *Engine) process(r *http.Request) *process {
	i := slices.IndexFunc(e.processes, func(p *process) bool { return p.id == r.PathValue("id") })
	if i < 0 {
		return nil
	}
	return e.processes[i]
}

func (e *Engine) execStart(r *http.Request) reply {
	_, err := io.Copy(io.Discard, r.Body) // closing a connection with unread data resets it
	p := e.process(r)
	switch {
	case err != nil:
		return refusal(400, "%v", err)
	case p == nil:
		return refusal(404, "No such exec instance")
	case p.starts > 0 && e.o.Podman:
		return refusal(500, "can only start created exec sessions")
	case p.starts > 0:
		return refusal(409, "exec command has already run")
	}
	p.starts++
	d, volume := Deed{Process: p.id, Command: p.command}, ""
	for _, c := range e.containers {
		if c.ID == p.container {
			d.Container, volume = *c, c.fills()
		}
	}
	e.deeds = append(e.deeds, d)
	a := reply{status: http.StatusSwitchingProtocols}
	switch {
	case volume != "" && p.command[0] == "/bin/sh":
		p.running = true
		a.feed = e.filling(p, volume)
	case e.o.Files != nil && p.input:
		p.running = true
		a.feed, a.finish = e.feeding(p)
	case e.o.Files != nil && p.command[0] == "tar":
		a.stdout, a.stderr = e.run(p, nil)
	case e.o.Exec != nil:
		a.stdout, a.stderr, p.exit = e.o.Exec(p.command)
		if p.input {
			a.feed = a.afterInput
		}
	}
	return a
}

// afterInput reads the whole input before it returns the output, because closing a connection with unread data resets
// it.
func (a reply) afterInput(in io.Reader) (stdout, stderr string, answers bool) {
	_, err := io.Copy(io.Discard, in)
	return a.stdout, a.stderr, err == nil
}

func (e *Engine) execInspect(r *http.Request) reply {
	p := e.process(r)
	if p == nil {
		return refusal(404, "No such exec instance")
	}
	body := map[string]any{"ID": p.id, "ContainerID": p.container, "Running": p.running, "Pid": 0, "CanRemove": false,
		"ExitCode": nil}
	switch {
	case p.running:
	case p.starts > 0:
		body["ExitCode"], body["CanRemove"] = p.exit, e.o.Podman
	case e.o.Podman:
		body["ExitCode"] = 0
	}
	return reply{status: 200, body: body}
}
