package mcpfile

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// check returns a ValidationError if the entry is invalid.
func (s *Server) check() error {
	at := s.At + "/"
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
		return fault.Invalid(at+"type", "must be http, for streamable HTTP, or stdio")
	}
	if !slices.Contains([]string{"", Required, NotRequired}, s.Approval) {
		return fault.Invalid(at+"approval", "must be required, not_required or absent")
	}
	for field, list := range map[string][]string{"readOnly": s.ReadOnly, "only": s.Only, "deny": s.Deny} {
		if err := checkTools(at+field, list); err != nil {
			return err
		}
	}
	for _, name := range s.Deny {
		if slices.Contains(s.ReadOnly, name) || slices.Contains(s.Only, name) {
			return fault.Invalid(at+"deny", "a tool of this list is also in readOnly or only")
		}
	}
	for _, name := range s.ReadOnly {
		if s.Only != nil && !slices.Contains(s.Only, name) {
			return fault.Invalid(at+"readOnly", "a tool of this list is missing in only")
		}
	}
	return nil
}

func checkTools(at string, list []string) error {
	if len(list) > maxList {
		return fault.Invalid(at, "the limit is %d tool names", maxList)
	}
	for i, name := range list {
		switch {
		case name == "" || len(name) > 128:
			return fault.Invalid(at, "must be tool names, spelled as the server lists them")
		case slices.Contains(list[:i], name):
			return fault.Invalid(at, "duplicate tool")
		}
	}
	return nil
}

func (s *Server) checkHTTP(at string) error {
	switch {
	case s.Command != "" || len(s.Args) > 0:
		return fault.Invalid(at+"command", "not allowed for a server of type http, which takes only a url")
	case len(s.Headers) > maxHeaders:
		return fault.Invalid(at+"headers", "the limit is %d headers", maxHeaders)
	}
	if err := checkURL(at+"url", s.URL); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		field := at + "headers/" + name
		switch lower := strings.ToLower(name); {
		case !isToken(name):
			return fault.Invalid(field, "must be a header name")
		case seen[lower]:
			return fault.Invalid(field, "duplicate header")
		case slices.Contains(ofTransport, lower) || strings.HasPrefix(lower, "mcp-"):
			return fault.Invalid(field, "this header is reserved by the protocol")
		default:
			seen[lower] = true
		}
		if err := checkValue(field, name, s.Headers[name], anywhere); err != nil {
			return err
		}
	}
	return nil
}

// checkURL checks an address and its query parameters, as far as possible before references are replaced.
func checkURL(field, address string) error {
	refers, err := refersTo(address, anywhere)
	if err != nil {
		return fault.Invalid(field, "%s", err)
	}
	if len(address) > maxText || !refers && !secure(address) {
		return errAddress(field)
	}
	_, query, _ := strings.Cut(address, "?")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if err := checkValue(field, name, value, anywhere); err != nil {
			return err
		}
	}
	return nil
}

func errAddress(field string) error {
	return fault.Invalid(field, "must be an https address, or http on this machine, without a user name")
}

func secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && outbound.Secure(u) && u.Fragment == ""
}

// ofTransport lists the headers that describe the transport of a request.
var ofTransport = []string{"host", "content-length", "content-encoding", "transfer-encoding", "connection", "te",
	"trailer", "upgrade", "last-event-id"}

func isToken(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"0123456789-_") == ""
}

func (s *Server) checkStdio(at string) error {
	switch {
	case s.URL != "":
		return fault.Invalid(at+"url", "not allowed for a server of type stdio, which takes only a command")
	case s.Command == "" || len(s.Command) > maxText:
		return fault.Invalid(at+"command", "must be a program")
	case len(s.Args) > maxList || slices.ContainsFunc(s.Args, func(a string) bool { return len(a) > maxText }):
		return fault.Invalid(at+"args", "the limit is %d arguments of %d bytes each", maxList, maxText)
	case len(s.Env) > maxList:
		return fault.Invalid(at+"env", "the limit is %d variables", maxList)
	}
	for _, text := range append([]string{s.Command, s.Dir}, s.Args...) {
		if _, err := refersTo(text, alone); err != nil || strings.Contains(text, "\x00") {
			return fault.Invalid(at+"args", "%s", cmp.Or(err, errReference))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !isVariable(name) {
			return fault.Invalid(at+"env/"+name, "must be a variable name, such as API_TOKEN")
		}
		if err := checkValue(at+"env/"+name, name, s.Env[name], alone); err != nil {
			return err
		}
	}
	return nil
}
