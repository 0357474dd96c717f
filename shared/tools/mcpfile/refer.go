package mcpfile

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// reference matches a reference to a variable in the forms of all clients: ${NAME}, ${NAME:-default}, ${env:NAME},
// ${input:id}, ${{ secrets.NAME }}, {env:NAME}, $NAME.
var reference = lazyregexp.New(`\$\{(?:env:|input:)?([A-Za-z0-9_][A-Za-z0-9_.-]*?|/)(:-[^}]*)?\}` +
	`|\$\{\{ *secrets\.([A-Za-z0-9_]+) *\}\}|\{env:([A-Za-z0-9_]+)\}|\$([A-Z][A-Z0-9_]*)`)

// Where $NAME counts as a reference. A program may use the same form for a variable of its own.
const (
	anywhere = true  // in headers and addresses
	alone    = false // only as the whole text: in commands, arguments and variables
)

// expand replaces each reference in a text with the result of with, which receives the variable's name and its default.
func expand(text string, bare bool, with func(name, otherwise string) string) (string, error) {
	left := false
	out := reference.ReplaceAllStringFunc(text, func(match string) string {
		m := reference.FindStringSubmatch(match)
		if m[5] != "" && !bare && match != text {
			return match
		}
		left = left || strings.Contains(m[2], "${") // a reference in a default
		return with(cmp.Or(m[1], m[3], m[4], m[5]), m[2])
	})
	for _, between := range reference.Split(text, -1) {
		left = left || strings.Contains(between, "${") || bare && strings.Contains(between, "$(") // a shell's command
	}
	if left {
		return "", errReference
	}
	return out, nil
}

var errReference = errors.New("$ must begin ${NAME}, ${NAME:-default} or ${env:NAME}")

// refersTo reports whether the text refers to any variable.
func refersTo(text string, bare bool) (refers bool, err error) {
	_, err = expand(text, bare, func(string, string) string { refers = true; return "" })
	return refers, err
}

// Fill returns the server with all references replaced. lookup returns the value of a variable, or "". The error is a
// ValidationError that names the field and the variable: the variable is not set, or its value is not allowed there.
func (s Server) Fill(lookup func(name string) string) (Server, error) {
	var wrong error
	fill := func(field, text string, bare bool) string {
		out, err := expand(text, bare, func(name, otherwise string) string {
			v := s.lookup(name, lookup)
			if v == "" {
				v = strings.TrimPrefix(otherwise, ":-")
			}
			if wrong == nil && (v == "" && otherwise == "" || strings.Contains(v, "\x00") || bare && !printable(v)) {
				wrong = fault.Invalid(s.At+"/"+field,
					"%s is not set, or is not one line of printable characters", name)
			}
			return v
		})
		wrong = cmp.Or(wrong, err)
		return out
	}
	each := func(field string, values map[string]string, bare bool) map[string]string {
		out := map[string]string{}
		for name, value := range values {
			out[name] = fill(field+"/"+name, value, bare)
		}
		return out
	}
	s.URL, s.Headers = fill("url", s.URL, anywhere), each("headers", s.Headers, anywhere)
	s.Command, s.Dir, s.Env = fill("command", s.Command, alone), fill("cwd", s.Dir, alone), each("env", s.Env, alone)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = fill("args", a, alone)
	}
	if wrong == nil && s.Type == HTTP && !secure(s.URL) {
		wrong = errAddress(s.At + "/url")
	}
	return s, wrong
}

// lookup returns the value of the variable, of its name in capitals, or of a client's predefined variable.
func (s Server) lookup(name string, lookup func(string) string) string {
	capitals := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
	if v := cmp.Or(lookup(name), lookup(capitals)); v != "" {
		return v
	}
	switch {
	case slices.Contains(ofProject, name):
		return s.project
	case name == "userHome":
		return lookup("HOME")
	case name == "/" || name == "pathSeparator":
		return string(filepath.Separator)
	}
	return ""
}

// ofProject lists the clients' names for the folder that a file belongs to.
var ofProject = []string{"workspaceFolder", "workspaceRoot", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT",
	"extensionPath"}

// projectOf returns the folder of the file, or the parent of a client's settings folder such as .vscode.
func projectOf(path string) string {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return ""
	}
	if strings.HasPrefix(filepath.Base(dir), ".") {
		return filepath.Dir(dir)
	}
	return dir
}
