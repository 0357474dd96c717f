// Package fakedocker is a container engine that runs no containers. It serves the part of Docker's API that the
// product uses, on a socket of the test. It keeps created containers, counts started processes, and fails on demand.
// Where engines differ, it answers like Docker or like Podman ([Options.Podman]).
package fakedocker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// The operations, as faults name them.
const (
	List        = "containers.list"
	Inspect     = "containers.inspect"
	Create      = "containers.create"
	Start       = "containers.start"
	Remove      = "containers.remove"
	ExecCreate  = "exec.create"
	ExecStart   = "exec.start"
	ExecInput   = "exec.input" // the input of a started process; a fault before its effect drops half of the input
	ExecInspect = "exec.inspect"
	Image       = "images.inspect"
	Images      = "images.list"
	Version     = "version"
	Volumes     = "volumes.list"
	MakeVolume  = "volumes.create"
	DropVolume  = "volumes.remove"
	Install     = "exec.install" // an installer that fills a volume; a fault before its effect ends it in the middle
)

// Options of an engine.
type Options struct {
	Podman bool
	Images []string // the existing images
	// Volumes are the directories that each image declares as volumes.
	Volumes []string
	// Exec returns the output and the exit code of a process; nil: no output, and 0.
	Exec func(command []string) (stdout, stderr string, exit int)
	// Files are the files that /work of each container begins with. If they are set, tar and processes with an input
	// really run: with the programs of this machine, in a folder for each container. Scripts do not, because at its
	// limit a script ends all processes of its user.
	Files map[string]string
	// Fault returns the fault of an operation; nil: only the faults of Break occur.
	Fault func(op string) fakegoogle.Fault
}

// Deed is a container or process that the engine has started. The record remains after both have ended.
type Deed struct {
	Container Container
	Process   string // empty: the container itself was started
	Command   []string
	Wrote     map[string]string // the files that the process wrote in /work, by their paths there
	Filled    string            // the volume that the process, an installer, has filled
}

// Container is a created container.
type Container struct {
	ID, Name, Image string
	Labels          map[string]string
	Body            json.RawMessage // the request that created it
	State           string
	order           int
}

// Engine is a running fake engine.
type Engine struct {
	Host string // DOCKER_HOST
	o    Options
	dir  string // contains the containers' folders

	mu         sync.Mutex
	containers []*Container
	processes  []*process
	volumes    []*Volume
	deeds      []Deed
	removed    int
	faults     map[string][]fakegoogle.Fault
	calls      map[string]int
}

// Open starts an engine that ends with its test.
func Open(t testing.TB, o Options) *Engine {
	t.Helper()
	e, end, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("fakedocker: %v", err)
		}
	})
	return e
}

// New starts an engine outside a test. Call end to stop it.
func New(o Options) (e *Engine, end func() error, err error) {
	dir, err := os.MkdirTemp("", "docker") // a test's own directory may be too long for a socket
	if err != nil {
		return nil, nil, err
	}
	e = &Engine{Host: "unix://" + filepath.Join(dir, "docker.sock"), o: o, dir: dir,
		faults: map[string][]fakegoogle.Fault{}, calls: map[string]int{}}
	l, err := net.Listen("unix", filepath.Join(dir, "docker.sock"))
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	srv := &http.Server{Handler: e.routes()} // #nosec G112 -- the client is the test's
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	return e, func() error {
		err := srv.Close()
		if ended := <-done; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}, nil
}

// Break makes the next calls of an operation fail, in order.
func (e *Engine) Break(op string, faults ...fakegoogle.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults[op] = faults
}

// Calls returns the number of calls of an operation.
func (e *Engine) Calls(op string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls[op]
}

// Containers returns the existing containers.
func (e *Engine) Containers() (all []Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.containers {
		all = append(all, *c)
	}
	return all
}

// Started returns the number of started containers.
func (e *Engine) Started() (n int) {
	for _, d := range e.Deeds() {
		if d.Process == "" {
			n++
		}
	}
	return n
}

// Deeds returns everything that was started, in order.
func (e *Engine) Deeds() []Deed { e.mu.Lock(); defer e.mu.Unlock(); return slices.Clone(e.deeds) }

// Removed returns the number of removed containers.
func (e *Engine) Removed() int { e.mu.Lock(); defer e.mu.Unlock(); return e.removed }

// Ran returns the number of processes that were started.
func (e *Engine) Ran() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.processes {
		n += p.starts
	}
	return n
}

// Add adds a container with labels, as another program would, and returns its ID.
func (e *Engine) Add(labels map[string]string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := &Container{ID: e.id(), Name: fmt.Sprint("other", len(e.containers)), Labels: labels, State: "running"}
	e.containers = append(e.containers, c)
	return c.ID
}

// id returns a new ID of 64 digits.
func (e *Engine) id() string {
	e.calls["ids"]++
	return fmt.Sprintf("%064x", e.calls["ids"]+0xabc0)
}

func (e *Engine) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		_, _ = io.WriteString(w, "OK")
	})
	for pattern, h := range map[string]struct {
		op string
		do func(*http.Request) reply
	}{
		"GET /v1.41/version":                {Version, e.version},
		"GET /v1.41/images/json":            {Images, e.images},
		"GET /v1.41/images/{path...}":       {Image, e.image},
		"GET /v1.41/containers/json":        {List, e.list},
		"GET /v1.41/containers/{id}/json":   {Inspect, e.inspect},
		"POST /v1.41/containers/create":     {Create, e.create},
		"POST /v1.41/containers/{id}/start": {Start, e.start},
		"DELETE /v1.41/containers/{id}":     {Remove, e.remove},
		"POST /v1.41/containers/{id}/exec":  {ExecCreate, e.execCreate},
		"POST /v1.41/exec/{id}/start":       {ExecStart, e.execStart},
		"GET /v1.41/exec/{id}/json":         {ExecInspect, e.execInspect},
		"GET /v1.41/volumes":                {Volumes, e.listVolumes},
		"POST /v1.41/volumes/create":        {MakeVolume, e.makeVolume},
		"DELETE /v1.41/volumes/{name}":      {DropVolume, e.dropVolume},
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f := e.next(h.op)
			var answer reply
			f.Serve(w, r, func() (http.HandlerFunc, bool) {
				e.mu.Lock()
				defer e.mu.Unlock()
				answer = h.do(r)
				return answer.write, answer.status < 400
			})
			if answer.finish != nil {
				answer.finish()
			}
		})
	}
	return mux
}

func (e *Engine) next(op string) (f fakegoogle.Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls[op]++
	if q := e.faults[op]; len(q) > 0 {
		f, e.faults[op] = q[0], q[1:]
	} else if e.o.Fault != nil {
		f = e.o.Fault(op)
	}
	return f
}

func (e *Engine) version(*http.Request) reply {
	name := "Engine"
	if e.o.Podman {
		name = "Podman Engine"
	}
	return reply{status: 200, body: map[string]any{"Components": []map[string]string{{"Name": name}},
		"ApiVersion": "1.41"}}
}

func (e *Engine) find(r *http.Request) *Container {
	i := slices.IndexFunc(e.containers, func(c *Container) bool {
		return c.ID == r.PathValue("id") || c.Name == r.PathValue("id")
	})
	if i < 0 {
		return nil
	}
	return e.containers[i]
}

func (e *Engine) list(r *http.Request) reply {
	var filters struct{ Label map[string]bool }
	if f := r.FormValue("filters"); f != "" {
		if err := json.Unmarshal([]byte(f), &filters); err != nil {
			return refusal(400, "filters: %v", err)
		}
	}
	out := []map[string]any{}
	for _, c := range slices.Backward(e.containers) {
		has := r.FormValue("all") == "1" || c.State == "running"
		for label := range filters.Label {
			name, value, _ := strings.Cut(label, "=")
			has = has && c.Labels[name] == value
		}
		if has {
			out = append(out, map[string]any{"Id": c.ID, "Names": []string{"/" + c.Name}, "Image": c.Image,
				"State": c.State, "Labels": c.Labels, "Created": 1_700_000_000 + c.order})
		}
	}
	return reply{status: 200, body: out}
}

func (e *Engine) inspect(r *http.Request) reply {
	c := e.find(r)
	if c == nil {
		return refusal(404, "No such container: %s", r.PathValue("id"))
	}
	return reply{status: 200, body: map[string]any{"Id": c.ID, "Created": "2026-03-02T10:00:00Z", "Name": "/" + c.Name,
		"State":  map[string]any{"Status": c.State, "Running": c.State == "running"},
		"Config": map[string]any{"Image": c.Image, "Labels": c.Labels}}}
}

func (e *Engine) images(*http.Request) reply {
	all := []map[string]any{{"Id": "sha256:0", "RepoTags": []string{"<none>:<none>"}}}
	for _, name := range e.o.Images {
		all = append(all, map[string]any{"Id": "sha256:1", "RepoTags": []string{name}})
	}
	return reply{status: 200, body: all}
}

func (e *Engine) image(r *http.Request) reply {
	name, _ := strings.CutSuffix(r.PathValue("path"), "/json")
	if !slices.Contains(e.o.Images, name) {
		return refusal(404, "No such image: %s", name)
	}
	volumes := map[string]struct{}{}
	for _, path := range e.o.Volumes {
		volumes[path] = struct{}{}
	}
	return reply{status: 200, body: map[string]any{"Id": "sha256:" + strings.Repeat("0", 64),
		"Config": map[string]any{"Volumes": volumes}}}
}

func (e *Engine) create(r *http.Request) reply {
	raw, err := io.ReadAll(r.Body)
	var body struct {
		Image  string
		Labels map[string]string
	}
	if err := errors.Join(err, json.Unmarshal(raw, &body)); err != nil {
		return refusal(400, "%v", err)
	}
	name := r.FormValue("name")
	for _, c := range e.containers {
		if c.Name == name && e.o.Podman {
			return refusal(500, "the container name %q is already in use", name)
		} else if c.Name == name {
			return refusal(409, "Conflict. The container name %q is already in use", name)
		}
	}
	if !slices.Contains(e.o.Images, body.Image) {
		return refusal(404, "No such image: %s", body.Image)
	}
	c := &Container{ID: e.id(), Name: name, Image: body.Image, Labels: body.Labels, Body: raw, State: "created",
		order: len(e.containers)}
	if err := e.addFiles(c.ID); err != nil {
		return refusal(500, "%v", err)
	}
	e.containers = append(e.containers, c)
	return reply{status: 201, body: map[string]any{"Id": c.ID, "Warnings": []string{}}}
}

func (e *Engine) start(r *http.Request) reply {
	c := e.find(r)
	switch {
	case c == nil:
		return refusal(404, "No such container")
	case c.State == "running":
		return reply{status: 304}
	}
	c.State = "running"
	e.deeds = append(e.deeds, Deed{Container: *c})
	return reply{status: 204}
}

func (e *Engine) remove(r *http.Request) reply {
	c := e.find(r)
	if c == nil {
		return refusal(404, "No such container")
	}
	e.containers = slices.DeleteFunc(e.containers, func(one *Container) bool { return one == c })
	e.processes = slices.DeleteFunc(e.processes, func(p *process) bool { return p.container == c.ID })
	if err := os.RemoveAll(e.root(c.ID)); err != nil {
		return refusal(500, "%v", err)
	}
	e.removed++
	return reply{status: 204}
}
