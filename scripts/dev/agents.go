package main

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed agents
var exampleAgents embed.FS

// shopAgent is the file of the agent that calls the example shop's actions.
const shopAgent = "shop-support.agent.yaml"

// agents writes the files of the example agents into a folder, from which they are read like an operator's, unless
// AGENTS names others. The shop's agent is among them where the shop's actions are.
func (s *server) agents(dir string) error {
	if !s.env.own("AGENTS") {
		return nil
	}
	files, err := fs.Sub(exampleAgents, "agents")
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "agents")
	s.env.fill("AGENTS", folder)
	if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, files)); err != nil || s.env.own("ACTIONS") {
		return err
	}
	return os.Remove(filepath.Join(folder, shopAgent))
}
