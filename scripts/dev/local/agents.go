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

// The files of the example agents: two that call the example shop's actions (one of them answers on the shop's page),
// one that reads the web, and one for everyday work.
const (
	pageAgent      = "shop.agent.yaml"
	supportAgent   = "shop-support.agent.yaml"
	readerAgent    = "reader.agent.yaml"
	secretaryAgent = "secretary.agent.yaml"
)

// agents writes the files of the example agents into a folder, from which they are read like an operator's files. It
// does nothing if AGENTS is set.
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

// examples returns the files of the example agents. It includes the shop's agents if the local server has the shop's
// actions, the reader if the web is on, and the secretary if all of the secretary's tools are available.
func (s *server) examples() (files []string) {
	entries, err := exampleAgents.ReadDir("agents")
	if err != nil {
		panic(err) // the files are embedded
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
		case secretaryAgent:
			if !s.everyday() {
				continue
			}
		}
		files = append(files, e.Name())
	}
	return files
}

// everyday reports whether the settings enable all tools for mail, for the calendar and for notes.
func (s *server) everyday() bool {
	return s.env.get("GMAIL_SEARCH") == "on" && s.env.get("GMAIL_MODIFY") == "on" &&
		s.env.get("GMAIL_SEND_MODE") != "direct" && s.env.get("MEMORY") != "off"
}

// agentsPart describes the agents of files, for the greeting.
func (s *server) agentsPart() string {
	names := strings.ReplaceAll(strings.Join(s.examples(), ", "), ".agent.yaml", "")
	if s.env.own("AGENTS") {
		return "the examples " + names
	}
	return "those in " + s.env.get("AGENTS") + ", which replace the examples " + names
}

// bind sets the origins of the pages in an agent's file. They are known only when the server starts.
func bind(file string, origins []string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "origins: [%s]\n", strings.Join(origins, ", "))
	return errors.Join(err, f.Close())
}
