// Package agentfiles reads the agents that operators declare, each in a file NAME.agent.yaml. Field names follow the
// Agent Config of Google's Agent Development Kit where the meaning is the same
// (https://google.github.io/adk-docs/agents/config/). Every mistake is reported at the start, all at once, with the
// file, the line and what was expected.
package agentfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

const (
	extension = ".agent.yaml"
	maxFiles  = 100
)

// Options has the tools and defaults for the agents in files.
type Options struct {
	Tools   tool.Set // the deployment's tools
	Actions tool.Set // the subset of Tools that an agent for web pages can name
	Servers []string // name prefixes of the tools of MCP servers (registry.Agent.Served)

	// NoTools is set if this process has none of the agents' tools. Their names are then not checked, and the agents
	// get no tools. Such agents can only end their runs.
	NoTools bool

	// PagesAlone is set if this process serves web pages and has only the tools for that. NoTools then applies to all
	// other agents.
	PagesAlone bool

	Limits     registry.Limits   // defaults for a file's limits
	PageLimits registry.Limits   // the same for an agent for web pages
	OnReject   registry.OnReject // default for a file's onReject
}

// Load reads the agents in the folder, ordered by file name. Its error joins one [*strictyaml.Problem] for each
// mistake.
func Load(dir string, o Options) ([]registry.Agent, error) {
	root, err := os.OpenRoot(dir) // prevents reads outside the folder, even through links
	if err != nil {
		return nil, fmt.Errorf("cannot open the agents folder %q; it must be a directory", dir)
	}
	defer root.Close()
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	var all []registry.Agent
	var wrong []error
	for _, name := range names {
		a, err := load(root, name, o)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		all = append(all, a)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return all, nil
}

// list returns the names of the agent files. Any other YAML file is an error, because its name is probably mistyped.
func list(root *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, errors.New("cannot read the agents folder")
	}
	var wrong []error
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, ".") || e.IsDir():
		case strings.HasSuffix(name, extension):
			names = append(names, name)
		case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
			wrong = append(wrong, &strictyaml.Problem{File: name, Text: "a name that ends in " + extension +
				" was expected"})
		}
	}
	switch {
	case len(wrong) > 0:
		return nil, errors.Join(wrong...)
	case len(names) == 0:
		return nil, errors.New("the folder of agents has no agent file; NAME" + extension + " was expected")
	case len(names) > maxFiles:
		return nil, &strictyaml.Problem{File: names[maxFiles],
			Text: fmt.Sprintf("more than %d agents", maxFiles)}
	}
	return names, nil
}

func load(root *os.Root, name string, o Options) (registry.Agent, error) {
	data, err := strictyaml.Read(root, name)
	if err != nil {
		return registry.Agent{}, err
	}
	return Parse(name, data, o)
}
