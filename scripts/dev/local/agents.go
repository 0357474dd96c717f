package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed agents
var exampleAgents embed.FS

// The files of the agents that call the example shop's actions (one answers on the shop's page) and of the agent that
// reads the web.
const (
	pageAgent    = "shop.agent.yaml"
	supportAgent = "shop-support.agent.yaml"
	readerAgent  = "reader.agent.yaml"
)

// agents writes the files of the example agents into a folder, from which they are read like an operator's, unless
// AGENTS names others.
func (s *server) agents(dir string) error {
	if !s.env.own("AGENTS") {
		return nil
	}
	folder := filepath.Join(dir, "agents")
	s.env.fill("AGENTS", folder)
	err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700))
	for _, file := range s.examples() {
		text, wrong := exampleAgents.ReadFile("agents/" + file)
		err = errors.Join(err, wrong, os.WriteFile(filepath.Join(folder, file), text, 0o600))
	}
	if err == nil && s.env.own("ACTIONS") {
		err = bind(filepath.Join(folder, pageAgent), ownOrigins(s.base))
	}
	return err
}

// examples returns the files of the example agents. The shop's agents are among them where the shop's actions are, and
// the reader where the web is on.
func (s *server) examples() (files []string) {
	entries, err := exampleAgents.ReadDir("agents")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, e := range entries {
		switch e.Name() {
		case pageAgent, supportAgent:
			if !s.env.own("ACTIONS") {
				continue
			}
		case readerAgent:
			if !s.reads() {
				continue
			}
		}
		files = append(files, e.Name())
	}
	return files
}

// agentsPart describes the agents of files, for the person who starts the server.
func (s *server) agentsPart() string {
	names := strings.ReplaceAll(strings.Join(s.examples(), ", "), ".agent.yaml", "")
	if s.env.own("AGENTS") {
		return "the examples " + names
	}
	return "those in " + s.env.get("AGENTS") + ", which replace the examples " + names
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
