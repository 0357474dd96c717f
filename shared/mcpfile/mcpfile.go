// Package mcpfile reads the operator's file of MCP servers, in the form that clients of MCP share: each server's name,
// where it is, and which of its tools are used, and how. Whatever is wrong in it is an error with the field's path.
package mcpfile

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/outbound"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// The bounds of a file. Texts are in bytes.
const (
	maxFile    = 64 << 10
	maxServers = 20
	maxList    = 128 // tools that are named, arguments, variables
	maxHeaders = 20
	maxText    = 2 << 10
)

// The transports.
const (
	HTTP  = "http"
	Stdio = "stdio"
)

// The values of Approval; empty: the tools with an effect ask.
const (
	Required    = "required"     // all its tools ask, those too that read
	NotRequired = "not_required" // none asks, unless the server itself says that it destroys
)

// A Server is one entry of a file.
type Server struct {
	Name string `json:"-"` // before the first _ in the names of its tools

	Type    string            `json:"type"` // HTTP or Stdio
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"` // with ${NAME} for what is secret

	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"` // with ${NAME} for what is secret

	// Names of tools are the server's own.
	ReadOnly []string `json:"readOnly"` // those that change nothing: the operator's word
	Only     []string `json:"only"`     // those that are used; nil: all
	Deny     []string `json:"deny"`     // those that are not
	Approval string   `json:"approval"`
	Named    bool     `json:"named"` // only agents in files have its tools, which name them
}

// Prefix returns what the names of the server's tools begin with.
func (s Server) Prefix() string { return s.Name + "_" }

// Read reads a file. Its servers come in the order of their names.
func Read(path string) ([]Server, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New("it cannot be opened; a file was expected")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, errors.New("it cannot be read; a file was expected")
	}
	return Parse(data)
}

// Parse decodes a file. The error is a ValidationError with the field.
func Parse(data []byte) ([]Server, error) {
	if len(data) > maxFile {
		return nil, fault.Invalid("", "it has more than %d bytes", maxFile)
	}
	var file struct {
		Servers map[string]*Server `json:"mcpServers"`
	}
	if err := strictjson.Decode(data, &file); err != nil {
		return nil, err
	}
	if n := len(file.Servers); n == 0 || n > maxServers {
		return nil, fault.Invalid("mcpServers", "an object of 1 to %d servers by their names was expected", maxServers)
	}
	var all []Server
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		s := file.Servers[name]
		at := "mcpServers/" + name
		switch {
		case !validName(name):
			return nil, fault.Invalid(at, "a name of a letter and up to 31 letters, digits and hyphens was expected: "+
				"the first _ in the name of a tool ends it")
		case seen[strings.ToLower(name)]:
			return nil, fault.Invalid(at, "a name was expected that no other server has in other letters")
		case s == nil:
			return nil, fault.Invalid(at, "an object was expected")
		}
		seen[strings.ToLower(name)], s.Name = true, name
		if err := s.check(at + "/"); err != nil {
			return nil, err
		}
		all = append(all, *s)
	}
	return all, nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func validName(name string) bool {
	return name != "" && len(name) <= 32 && strings.ContainsAny(name[:1], letters) &&
		strings.Trim(name, letters+"0123456789-") == ""
}

// check checks the entry, of which at is the path.
func (s *Server) check(at string) error {
	s.Type = cmp.Or(s.Type, map[bool]string{true: Stdio, false: HTTP}[s.Command != ""])
	switch s.Type {
	case HTTP:
		if err := s.checkHTTP(at); err != nil {
			return err
		}
	case Stdio:
		if err := s.checkStdio(at); err != nil {
			return err
		}
	default:
		return fault.Invalid(at+"type", "http was expected, for streamable HTTP, or stdio")
	}
	if !slices.Contains([]string{"", Required, NotRequired}, s.Approval) {
		return fault.Invalid(at+"approval", "required or not_required was expected, or no approval")
	}
	for field, list := range map[string][]string{"readOnly": s.ReadOnly, "only": s.Only, "deny": s.Deny} {
		if err := checkTools(at+field, list); err != nil {
			return err
		}
	}
	for _, name := range s.Deny {
		if slices.Contains(s.ReadOnly, name) || slices.Contains(s.Only, name) {
			return fault.Invalid(at+"deny", "a tool stands there that is used by readOnly or only")
		}
	}
	for _, name := range s.ReadOnly {
		if s.Only != nil && !slices.Contains(s.Only, name) {
			return fault.Invalid(at+"readOnly", "a tool stands there that is none of only")
		}
	}
	return nil
}

func checkTools(at string, list []string) error {
	if len(list) > maxList {
		return fault.Invalid(at, "at most %d names of tools were expected", maxList)
	}
	for i, name := range list {
		switch {
		case name == "" || len(name) > 128:
			return fault.Invalid(at, "names of tools were expected, as the server has them")
		case slices.Contains(list[:i], name):
			return fault.Invalid(at, "a tool stands there twice")
		}
	}
	return nil
}

func (s *Server) checkHTTP(at string) error {
	switch u, err := url.Parse(s.URL); {
	case s.Command != "" || s.Args != nil || s.Env != nil:
		return fault.Invalid(at+"command", "a server of http has none; a url was expected alone")
	case err != nil || !outbound.Secure(u) || len(s.URL) > maxText:
		return fault.Invalid(at+"url", "an https address was expected, or http on this machine, without a user name")
	case u.RawQuery != "" || u.Fragment != "" || strings.Contains(s.URL, "${"):
		return fault.Invalid(at+"url", "an address without a query was expected; what is secret goes into headers")
	case len(s.Headers) > maxHeaders:
		return fault.Invalid(at+"headers", "at most %d headers were expected", maxHeaders)
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		field := at + "headers/" + name
		switch lower := strings.ToLower(name); {
		case !isToken(name):
			return fault.Invalid(field, "the name of a header was expected")
		case seen[lower]:
			return fault.Invalid(field, "this header stands there twice")
		case slices.Contains(ofTransport, lower) || strings.HasPrefix(lower, "mcp-"):
			return fault.Invalid(field, "this header is the protocol's own")
		default:
			seen[lower] = true
		}
		if err := checkValue(field, name, s.Headers[name]); err != nil {
			return err
		}
	}
	return nil
}

// ofTransport are the headers that say how a request is sent.
var ofTransport = []string{"host", "content-length", "content-type", "content-encoding", "transfer-encoding",
	"connection", "accept", "te", "trailer", "upgrade", "last-event-id"}

func isToken(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"0123456789-_") == ""
}

func (s *Server) checkStdio(at string) error {
	switch {
	case s.URL != "" || s.Headers != nil:
		return fault.Invalid(at+"url", "a server of stdio has none; a command was expected alone")
	case s.Command == "" || len(s.Command) > maxText:
		return fault.Invalid(at+"command", "a program was expected")
	case len(s.Args) > maxList || slices.ContainsFunc(s.Args, func(a string) bool { return len(a) > maxText }):
		return fault.Invalid(at+"args", "at most %d arguments of at most %d bytes were expected", maxList, maxText)
	case len(s.Env) > maxList:
		return fault.Invalid(at+"env", "at most %d variables were expected", maxList)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !isVariable(name) {
			return fault.Invalid(at+"env/"+name, "the name of a variable was expected, such as API_TOKEN")
		}
		if err := checkValue(at+"env/"+name, name, s.Env[name]); err != nil {
			return err
		}
	}
	return nil
}
