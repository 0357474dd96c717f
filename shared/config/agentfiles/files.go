// Package agentfiles reads the agents that operators declare: one NAME.agent.yaml each, with the field names of the
// Agent Config of Google's Agent Development Kit where they mean the same
// (https://google.github.io/adk-docs/agents/config/).
// Whatever is wrong is an error at the start, with the file, the line and what was expected, and all of it is reported
// at once.
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

// Options say what a file's agent is made of.
type Options struct {
	Tools   tool.Set // of the deployment, which the files name
	Actions tool.Set // those of Tools that an agent of web pages may name
	Servers []string // how the names of tools begin that come and go (registry.Agent.Served)

	// NoTools reports that this process has none of the tools that agents call. Their names are then not looked up, and
	// the agents get none: enough to end their runs.
	NoTools bool

	// PagesAlone reports that this process answers web pages and has the tools for that alone. To the other agents
	// NoTools applies.
	PagesAlone bool

	Limits     registry.Limits   // what a file's limits are where it does not say
	PageLimits registry.Limits   // likewise, of an agent of web pages
	OnReject   registry.OnReject // likewise
}

// Load reads the folder's agents, in the order of their files' names. Its error joins a [*strictyaml.Problem] for each
// mistake.
func Load(dir string, o Options) ([]registry.Agent, error) {
	root, err := os.OpenRoot(dir) // no file outside it is read, not even through a link
	if err != nil {
		return nil, fmt.Errorf("the folder of agents %q cannot be opened; a directory was expected", dir)
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

// list returns the names of the agents' files. Other YAML in the folder is a file whose name was mistyped.
func list(root *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, errors.New("the folder of agents cannot be read")
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
		return nil, errors.New("the folder of agents has none; a file NAME" + extension + " was expected")
	case len(names) > maxFiles:
		return nil, &strictyaml.Problem{File: names[maxFiles],
			Text: fmt.Sprintf("there are more than %d agents", maxFiles)}
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
