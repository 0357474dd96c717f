package docker_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	moby "github.com/moby/moby/api/types/container"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/docker"
)

var (
	judging = docker.New(docker.Options{Images: []string{image, "localhost/go:1"}})
	anID    = strings.Repeat("0a", 32)
)

func options(change map[string]any) map[string]any {
	o := map[string]any{"image": image, "command": []string{"/bin/sh"}, "env": []string{"CI=1"}, "memory": 64,
		"group": "build"}
	for name, v := range change {
		if o[name] = v; v == nil {
			delete(o, name)
		}
	}
	return map[string]any{"options": o}
}

func forbidden(field string, change map[string]any) toolstest.Refused {
	return toolstest.Refused{Change: options(change), Field: field, Class: fault.Policy}
}

func TestCreateSuite(t *testing.T) {
	other := func(name string, v any) toolstest.Refused {
		return forbidden("options/"+name, map[string]any{name: v})
	}
	toolstest.Suite{
		Tool:   judging[docker.Create],
		Args:   options(nil),
		Other:  map[string]map[string]any{"options": options(map[string]any{"image": "localhost/go:1"})},
		Labels: []string{"Image", "Command", "Environment", "Memory", "Group", "Stays", "Network"},
		Previews: map[string]toolstest.Shown{
			"all": {Want: []string{"Create a container", "Image: " + image, "Command: /bin/sh", "Environment: CI=1",
				"Memory: 64 MiB", "Group: build", "Network: none"}},
			"defaults": {Change: map[string]any{"options": map[string]any{"image": image}},
				Want: []string{"Memory: 512 MiB"}},
		},
		Refused: map[string]toolstest.Refused{
			"privileged (FI-010)": other("HostConfig", map[string]any{"Privileged": true}),
			"the socket (FI-011)": other("HostConfig", map[string]any{"Binds": []string{"/var/run/docker.sock:/s"}}),
			"the root (FI-013)":   other("HostConfig", map[string]any{"Binds": []string{"/:/host:ro"}}),
			"and no image (FI-010)": forbidden("options/HostConfig",
				map[string]any{"image": nil, "HostConfig": map[string]any{"Privileged": true}}),
			"a flag":             other("privileged", true),
			"a flag with a dash": other("cap-add", []string{"ALL"}),
			"volumes":            other("volumes", []string{"/:/h"}),
			"a network":          other("NetworkMode", "host"),
			"another image":      forbidden("options/image", map[string]any{"image": "alpine"}),
			"a credential": forbidden("options/env/1", map[string]any{"env": []string{"A=1",
				"GITHUB_TOKEN=ghp_" + strings.Repeat("aB3", 12)}}),
			"an unknown field":     {Change: options(map[string]any{"colour": "red"}), Field: "options/colour"},
			"our name in capitals": {Change: options(map[string]any{"Image": image}), Field: "options/Image"},
			"no image":             {Change: options(map[string]any{"image": nil}), Field: "options/image"},
			"too much memory":      {Change: options(map[string]any{"memory": 2049}), Field: "options/memory"},
			"too little":           {Change: options(map[string]any{"memory": 15}), Field: "options/memory"},
			"a strange group":      {Change: options(map[string]any{"group": "a b"}), Field: "options/group"},
			"a strange variable":   {Change: options(map[string]any{"env": []string{"=x"}}), Field: "options/env"},
			"NUL":                  {Change: options(map[string]any{"command": []string{"a\x00"}}), Field: "options"},
			"very much": {Field: "options",
				Change: options(map[string]any{"command": slices.Repeat([]string{strings.Repeat("x", 4096)}, 5)})},
		},
	}.Run(t)
}

// TestFetchSuite tests calls with the facts that a proposed call gets from the commit.
func TestFetchSuite(t *testing.T) {
	tools := docker.New(docker.Options{Images: []string{image, toolchain}, Checkouts: commitFiles{},
		Packages: packagesOf(t, "registry.npmjs.org", "proxy.golang.org")})
	toolstest.Suite{
		Tool: tools[docker.FetchDependencies],
		Args: fetchArgs(nil),
		Other: map[string]map[string]any{"image": fetchArgs(map[string]any{"image": image}),
			"owner": fetchArgs(map[string]any{"owner": "bea"}), "repo": fetchArgs(map[string]any{"repo": "app"}),
			"commit": fetchArgs(map[string]any{"commit": strings.Repeat("0d", 20)}),
			"path":   fetchArgs(map[string]any{"path": "package-lock.json"})},
		Labels: []string{"Lock file", "Of", "Image", "Command", "Reaches these hosts alone", "Volume", "Stays"},
		Previews: map[string]toolstest.Shown{"a call": {Want: []string{"Fetch dependencies", "Lock file: web/go.sum",
			"Of: acme/web at " + strings.Repeat("0c", 20), "Image: " + toolchain}}},
		Refused: map[string]toolstest.Refused{
			"another image":     {Change: map[string]any{"image": "alpine"}, Field: "image", Class: fault.Policy},
			"no lock file":      {Change: map[string]any{"path": "web/go.mod"}, Field: "path"},
			"a path out":        {Change: map[string]any{"path": "../go.sum"}, Field: "path"},
			"an absolute path":  {Change: map[string]any{"path": "/go.sum"}, Field: "path"},
			"a path of 2 lines": {Change: map[string]any{"path": "a\nb/go.sum"}, Field: "path"},
			"a branch":          {Change: map[string]any{"commit": "main"}, Field: "commit"},
			"dots":              {Change: map[string]any{"repo": ".."}, Field: "repo"},
			"a strange owner":   {Change: map[string]any{"owner": "-x"}, Field: "owner"},
		},
	}.Run(t)
	with, without := tools[docker.Create], judging[docker.Create]
	volume := options(map[string]any{"dependencies": "countersign-deps-" + strings.Repeat("0", 32)})
	for _, c := range []struct {
		tool *tool.Tool
		args map[string]any
		ok   bool
	}{{with, volume, true}, {without, volume, false},
		{with, options(map[string]any{"dependencies": "/var/run"}), false}} {
		raw, err := json.Marshal(c.args)
		if err == nil {
			_, err = c.tool.Normalize(raw)
		}
		if (err == nil) != c.ok {
			t.Errorf("%v: %v; want (err == nil) %v", c.args, err, c.ok)
		}
	}
	if judging[docker.FetchDependencies] != nil {
		t.Error("dependencies are fetched without a host")
	}
}

// TestCreateMemoryBounds checks that the limits of memory are those in the schema that the model reads.
func TestCreateMemoryBounds(t *testing.T) {
	tl := judging[docker.Create]
	for _, mib := range []int{container.MinMemory >> 20, container.MaxMemory >> 20} {
		raw, err := json.Marshal(options(map[string]any{"memory": mib}))
		if err == nil {
			_, err = tl.Normalize(raw)
		}
		if err != nil {
			t.Errorf("%d MiB: %v", mib, err)
		}
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(tl.Schema, &s); err != nil {
		t.Fatal(err)
	}
	memory := s.Properties["options"].Properties["memory"]
	if memory.Minimum == nil || *memory.Minimum != 16 || memory.Maximum == nil || *memory.Maximum != 2048 {
		t.Errorf("the schema has %+v", memory)
	}
}

func TestScriptSuite(t *testing.T) {
	toolstest.Suite{
		Tool: judging[docker.Script],
		Args: map[string]any{"containerId": anID, "script": "make"},
		Other: map[string]map[string]any{"containerId": {"containerId": strings.Repeat("0b", 32)},
			"script": {"script": "make test"}, "timeoutSeconds": {"timeoutSeconds": 300}},
		Free:   []string{"containerId", "script", "timeoutSeconds"},
		Labels: []string{"Script", "Container", "Ended after"},
		Texts:  map[string]string{"script": "Script"},
		Refused: map[string]toolstest.Refused{
			"a command for an id (FI-014)": {Change: map[string]any{"containerId": "; id"}, Field: "containerId"},
			"a short id":                   {Change: map[string]any{"containerId": "0a0a0a"}, Field: "containerId"},
			"nothing":                      {Change: map[string]any{"script": ""}, Field: "script"},
			"too long": {Change: map[string]any{"script": strings.Repeat("ä", docker.MaxScript/2+1)},
				Field: "script"},
			"NUL":      {Change: map[string]any{"script": "a\x00"}, Field: "script"},
			"too slow": {Change: map[string]any{"timeoutSeconds": 301}, Field: "timeoutSeconds"},
		},
	}.Run(t)
}

func TestGitSuite(t *testing.T) {
	toolstest.Suite{
		Tool: judging[docker.ConfigureGit],
		Args: map[string]any{"containerId": anID, "username": "ana-b"},
		Other: map[string]map[string]any{"containerId": {"containerId": strings.Repeat("0b", 32)},
			"username": {"username": "bea"}},
		Free:   []string{"containerId"},
		Labels: []string{"Name", "Address", "Container"},
		Refused: map[string]toolstest.Refused{
			"a token":   {Change: map[string]any{"token": "ghp_x"}, Field: "token"},
			"a command": {Change: map[string]any{"username": "a; id"}, Field: "username"},
			"an option": {Change: map[string]any{"username": "-a"}, Field: "username"},
		},
		Unsaid: []string{"ghp_x"},
	}.Run(t)
}

func TestShellSuite(t *testing.T) {
	toolstest.Suite{
		Tool:   judging[docker.Shell],
		Args:   map[string]any{"command": "ls -l"},
		Other:  map[string]map[string]any{"command": {"command": "ls"}, "timeoutSeconds": {"timeoutSeconds": 300}},
		Labels: []string{"Command", "Ended after"},
		Refused: map[string]toolstest.Refused{
			"blank":      {Change: map[string]any{"command": " "}, Field: "command"},
			"not a line": {Change: map[string]any{"command": "if"}, Field: "command"},
		},
	}.Run(t)
}

func TestRemovalSuites(t *testing.T) {
	toolstest.Suite{
		Tool:   judging[docker.Destroy],
		Args:   map[string]any{"containerId": anID},
		Other:  map[string]map[string]any{"containerId": {"containerId": strings.Repeat("0b", 32)}},
		Labels: []string{"Container"},
		Refused: map[string]toolstest.Refused{
			"a name": {Change: map[string]any{"containerId": "web"}, Field: "containerId"}},
	}.Run(t)
	toolstest.Suite{
		Tool:    judging[docker.Cleanup],
		Args:    map[string]any{"group": "build"},
		Other:   map[string]map[string]any{"group": {"group": "test"}},
		Labels:  []string{"Group"},
		Refused: map[string]toolstest.Refused{"all": {Change: map[string]any{"group": "*"}, Field: "group"}},
	}.Run(t)
}

// TestCommandsOfEachClass tests commands of each class. All need approval, and none can be always allowed.
func TestCommandsOfEachClass(t *testing.T) {
	for command, class := range map[string]tool.Class{"ls": tool.ClassRead, "touch x": tool.ClassChange,
		"rm -rf x": tool.ClassDestructive, "eval $x": tool.ClassOpaque} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		r, err := judging[docker.Shell].Rule(t.Context(), tool.Call{Args: args})
		if err != nil || r.Mode != tool.RuleAsk || r.Always != nil || r.Class != class {
			t.Errorf("%s: %+v, %v; want r.Mode %v, r.Always nil, r.Class %v", command, r, err, tool.RuleAsk, class)
		}
	}
}

// TestEngineFieldsForbidden compares the fields with the API's own types.
func TestEngineFieldsForbidden(t *testing.T) {
	ours := map[string]bool{"Image": true, "Env": true, "Memory": true}
	var all []string
	var add func(reflect.Type)
	add = func(s reflect.Type) {
		for f := range s.Fields() {
			if f.Anonymous {
				add(f.Type)
			} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
				if name == "" {
					name = f.Name
				}
				all = append(all, name)
			}
		}
	}
	add(reflect.TypeFor[moby.Config]())
	add(reflect.TypeFor[moby.HostConfig]())
	for _, name := range all {
		if ours[name] {
			continue
		}
		raw, err := json.Marshal(options(map[string]any{name: "x"}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := judging[docker.Create].Normalize(raw); fault.As(err).Class != fault.Policy {
			t.Errorf("%s is refused with %v", name, err)
		}
	}
	if len(all) < 60 {
		t.Errorf("only %d fields", len(all))
	}
}

// TestNamesComplete checks that Names has all tools.
func TestNamesComplete(t *testing.T) {
	all := docker.New(docker.Options{Images: []string{image}, Checkouts: commitFiles{},
		Packages: packagesOf(t, "proxy.golang.org")})
	if len(all) != len(docker.Names) {
		t.Errorf("the tools are %v", all.Names())
	}
	for _, name := range docker.Names {
		if all[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
}
