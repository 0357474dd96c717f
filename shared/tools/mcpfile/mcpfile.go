// Package mcpfile reads the operator's file of MCP servers. It accepts the formats of the common MCP clients. An
// invalid entry is left out, with a note that names the entry and its line.
package mcpfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Limits of a file. Texts are in bytes.
const (
	maxFile    = 64 << 10
	maxServers = 20
	maxList    = 128 // tool names, arguments or variables
	maxHeaders = 20
	maxText    = 2 << 10
	maxName    = 32
)

// The transports.
const (
	HTTP  = "http"
	Stdio = "stdio"
)

// The values of Approval. Empty means that calls with an effect need an approval.
const (
	Required    = "required"     // every call needs an approval, including those that read
	NotRequired = "not_required" // no call does, unless the server marks the tool as destructive
)

// A File is the content of an operator's file.
type File struct {
	Servers []Server // sorted by name
	Notes   []string // one line for each entry that is left out or field without effect; no note contains a value
}

// A Server is one entry of a file.
type Server struct {
	Name string // prefix of its tools' names, before the first _
	At   string // the entry's path in the file, such as mcpServers/tickets
	Line int    // the line on which the entry begins

	Type string // HTTP or Stdio

	// These texts may contain references such as ${NAME}, which [Server.Fill] replaces.
	URL     string
	Headers map[string]string
	Command string
	Args    []string
	Env     map[string]string
	Dir     string // the program's directory; empty: that of this process

	// Tool names are the server's own.
	ReadOnly []string // tools that change nothing, according to the operator
	Only     []string // tools that are used; nil: all
	Deny     []string // tools that are not used
	Approval string
	Named    bool // only agents from files that list the tools by name have them

	project string // the folder that clients call the workspace; empty: unknown
}

// Prefix returns the prefix of the names of the server's tools.
func (s Server) Prefix() string { return s.Name + "_" }

// LeftOut returns a note that the server is left out, with the reason.
func (s Server) LeftOut(why error) string {
	f := fault.As(why)
	text := f.Message
	if field := strings.TrimPrefix(strings.TrimPrefix(f.Field, s.At), "/"); field != "" {
		text = field + ": " + text
	}
	return fmt.Sprintf("line %d: %s is skipped: %s", s.Line, s.At, text)
}

// Read reads and parses a file. The error is that of [Parse], or says that the file cannot be read.
func Read(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, errors.New("cannot be opened; it must be a file")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return File{}, errors.New("cannot be read; it must be a file")
	}
	file, err := Parse(data)
	for i := range file.Servers {
		file.Servers[i].project = projectOf(path)
	}
	return file, err
}

// Parse parses the content of a file. The error is a ValidationError with the field: the file as a whole is invalid, or
// all of its entries are.
func Parse(data []byte) (File, error) {
	if len(data) > maxFile {
		return File{}, fault.Invalid("", "more than %d bytes", maxFile)
	}
	entries, err := entriesOf(data)
	if err != nil {
		return File{}, err
	}
	var (
		file  File
		wrong []error
		seen  = map[string]bool{}
		notes = unused{}
	)
	for _, e := range entries {
		s, err := e.server(notes)
		switch {
		case err == nil && s == nil:
			file.Notes = append(file.Notes, fmt.Sprintf("line %d: %s is skipped: the file disables it", e.line, e.at))
			continue
		case err == nil && seen[strings.ToLower(s.Name)]:
			err = fault.Invalid(e.at, "another server is also called %s; rename one of them", s.Name)
		case err == nil && len(file.Servers) == maxServers:
			err = fault.Invalid(e.at, "at most %d servers are used", maxServers)
		}
		if err != nil {
			wrong = append(wrong, err)
			file.Notes = append(file.Notes, Server{At: e.at, Line: e.line}.LeftOut(err))
			continue
		}
		seen[strings.ToLower(s.Name)] = true
		if s.Name != e.name {
			file.Notes = append(file.Notes, fmt.Sprintf("line %d: %s: the names of its tools begin with %s",
				e.line, e.at, s.Prefix()))
		}
		file.Servers = append(file.Servers, *s)
	}
	if len(file.Servers) == 0 && len(wrong) > 0 {
		return File{}, wrong[0]
	}
	slices.SortFunc(file.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	file.Notes = append(file.Notes, notes.lines()...)
	return file, nil
}
