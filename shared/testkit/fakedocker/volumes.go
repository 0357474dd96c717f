package fakedocker

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// Volume is a created volume. An installer fills it.
type Volume struct {
	Name   string
	Labels map[string]string
	Filled bool
}

// AllVolumes returns the existing volumes.
func (e *Engine) AllVolumes() (all []Volume) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.volumes {
		all = append(all, *v)
	}
	return all
}

func (e *Engine) volume(name string) int {
	return slices.IndexFunc(e.volumes, func(v *Volume) bool { return v.Name == name })
}

func (e *Engine) listVolumes(r *http.Request) reply {
	var filters struct{ Label map[string]bool }
	if err := json.Unmarshal([]byte(r.FormValue("filters")), &filters); err != nil {
		return refusal(400, "filters: %v", err)
	}
	out := []*Volume{}
	for _, v := range e.volumes {
		has := true
		for label := range filters.Label {
			name, value, _ := strings.Cut(label, "=")
			has = has && v.Labels[name] == value
		}
		if has {
			out = append(out, v)
		}
	}
	return reply{status: 200, body: map[string]any{"Volumes": out}}
}

func (e *Engine) makeVolume(r *http.Request) reply {
	v := &Volume{}
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		return refusal(400, "%v", err)
	}
	if at := e.volume(v.Name); at >= 0 {
		v = e.volumes[at]
	} else {
		e.volumes = append(e.volumes, v)
	}
	return reply{status: 201, body: v}
}

func (e *Engine) dropVolume(r *http.Request) reply {
	at := e.volume(r.PathValue("name"))
	if at < 0 {
		return refusal(404, "no such volume")
	}
	for _, c := range e.containers {
		if c.fills() == e.volumes[at].Name {
			return refusal(409, "volume is in use")
		}
	}
	e.volumes = slices.Delete(e.volumes, at, at+1)
	return reply{status: 204}
}

// fills returns the name of the volume that the container can write to.
func (c *Container) fills() string {
	var body struct {
		HostConfig struct {
			Mounts []struct {
				Source   string
				ReadOnly bool
			}
		}
	}
	_ = json.Unmarshal(c.Body, &body) // create has read it
	for _, m := range body.HostConfig.Mounts {
		if !m.ReadOnly {
			return m.Source
		}
	}
	return ""
}

// filling returns a function that simulates the shell of a container that fills a volume. With arguments the shell is
// an installer; without arguments it only checks whether the volume is filled (exit code 12).
func (e *Engine) filling(p *process, volume string) func(io.Reader) (string, string, bool) {
	return func(io.Reader) (stdout, stderr string, answers bool) {
		f := fakegoogle.Fault{}
		if len(p.command) > 3 {
			f = e.next(Install)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		at := e.volume(volume)
		switch p.running = false; {
		case at < 0:
			p.exit = 1
		case len(p.command) == 3 && e.volumes[at].Filled:
			p.exit = 12
		case len(p.command) == 3:
		case slices.Contains(early, f.Kind):
			p.exit = 137
		default:
			e.volumes[at].Filled = true
			i := slices.IndexFunc(e.deeds, func(d Deed) bool { return d.Process == p.id })
			e.deeds[i].Filled = volume
		}
		return "", "", f.Kind == fakegoogle.None
	}
}
