package action

import (
	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/strictyaml"
)

// A Problem is a mistake in a file: where it is within the folder of actions, and what was expected.
type Problem = strictyaml.Problem

// document is a YAML file that holds one mapping.
type document struct{ *strictyaml.Document }

func parse(file string, data []byte) (*document, error) {
	d, err := strictyaml.Parse(file, data)
	return &document{d}, err
}

// section is a mapping whose keys are known.
type section struct {
	*document
	strictyaml.Section
}

func (d *document) section(n *yaml.Node, keys ...string) (section, error) {
	s, err := d.Section(n, keys...)
	return section{d, s}, err
}
