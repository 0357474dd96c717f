package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed agents
var exampleAgents embed.FS

// The files of the agents that call the example shop's actions, of which one answers on its page, and that read the
// web.
const (
	pageAgent    = "shop.agent.yaml"
	supportAgent = "shop-support.agent.yaml"
	readerAgent  = "reader.agent.yaml"
)

// agents writes the files of the example agents into a folder, from which they are read like an operator's, unless
// AGENTS names others. The shop's agents are among them where the shop's actions are, and the reader where the web
// is on.
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
	err = errors.Join(os.RemoveAll(folder), os.CopyFS(folder, files))
	shops := s.env.own("ACTIONS")
	if err == nil && shops {
		err = bind(filepath.Join(folder, pageAgent), ownOrigins(s.base))
	}
	for file, kept := range map[string]bool{pageAgent: shops, supportAgent: shops, readerAgent: s.reads()} {
		if err == nil && !kept {
			err = os.Remove(filepath.Join(folder, file))
		}
	}
	return err
}

// bind has an agent's file name the origins of its pages, which are known when the server starts.
func bind(file string, origins []string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "origins: [%s]\n", strings.Join(origins, ", "))
	return errors.Join(err, f.Close())
}
