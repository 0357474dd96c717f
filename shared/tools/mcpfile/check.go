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
			return fault.Invalid(at+"deny", "a tool is listed that readOnly or only lists too")
		}
	}
	for _, name := range s.ReadOnly {
		if s.Only != nil && !slices.Contains(s.Only, name) {
			return fault.Invalid(at+"readOnly", "a tool is listed that only does not list")
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
			return fault.Invalid(at, "duplicate tool")
		}
	}
	return nil
}

func (s *Server) checkHTTP(at string) error {
	switch {
	case s.Command != "" || len(s.Args) > 0:
		return fault.Invalid(at+"command", "a server of http has none; a url was expected alone")
	case len(s.Headers) > maxHeaders:
		return fault.Invalid(at+"headers", "at most %d headers were expected", maxHeaders)
	}
	if err := checkURL(at+"url", s.URL); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		field := at + "headers/" + name
		switch lower := strings.ToLower(name); {
		case !isToken(name):
			return fault.Invalid(field, "the name of a header was expected")
		case seen[lower]:
			return fault.Invalid(field, "duplicate header")
		case slices.Contains(ofTransport, lower) || strings.HasPrefix(lower, "mcp-"):
			return fault.Invalid(field, "this header is the protocol's own")
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
	return fault.Invalid(field, "an https address was expected, or http on this machine, without a user name")
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
		return fault.Invalid(at+"url", "a server of stdio has none; a command was expected alone")
	case s.Command == "" || len(s.Command) > maxText:
		return fault.Invalid(at+"command", "a program was expected")
	case len(s.Args) > maxList || slices.ContainsFunc(s.Args, func(a string) bool { return len(a) > maxText }):
		return fault.Invalid(at+"args", "at most %d arguments of at most %d bytes were expected", maxList, maxText)
	case len(s.Env) > maxList:
		return fault.Invalid(at+"env", "at most %d variables were expected", maxList)
	}
	for _, text := range append([]string{s.Command, s.Dir}, s.Args...) {
		if _, err := refersTo(text, alone); err != nil || strings.Contains(text, "\x00") {
			return fault.Invalid(at+"args", "%s", cmp.Or(err, errReference))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !isVariable(name) {
			return fault.Invalid(at+"env/"+name, "the name of a variable was expected, such as API_TOKEN")
		}
		if err := checkValue(at+"env/"+name, name, s.Env[name], alone); err != nil {
			return err
		}
	}
	return nil
}
