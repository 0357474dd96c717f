package mcpfile

import (
	"errors"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/fault"
)

// secretWords are in the names of headers and variables that hold secrets.
var secretWords = []string{"auth", "token", "key", "secret", "password", "cookie", "credential"}

// checkValue checks the value of a header or a variable. What is secret is referred to: a file is copied, mailed and
// put into archives.
func checkValue(field, name, value string) error {
	refers := false
	rest, err := expand(value, func(string) string { refers = true; return "" })
	switch {
	case err != nil:
		return fault.Invalid(field, "%s", err)
	case len(value) > maxText || !printable(rest):
		return fault.Invalid(field, "at most %d printable characters were expected", maxText)
	case !refers && slices.ContainsFunc(secretWords, func(w string) bool {
		return strings.Contains(strings.ToLower(name), w)
	}):
		return fault.Invalid(field, "${NAME} was expected in it, with the name of a variable that holds the secret")
	}
	return nil
}

// Secrets returns the server's headers and variables with what they refer to. The error names the field and the
// variable that is not set, or holds what no header can have.
func (s Server) Secrets(lookup func(name string) string) (headers, env map[string]string, err error) {
	fill := func(kind string, values map[string]string) map[string]string {
		filled := map[string]string{}
		for name, value := range values {
			wrong := ""
			filled[name], _ = expand(value, func(variable string) string { // it was checked
				v := lookup(variable)
				if v == "" || !printable(v) {
					wrong = variable
				}
				return v
			})
			if wrong != "" && err == nil {
				err = fault.Invalid("mcpServers/"+s.Name+"/"+kind+"/"+name,
					"%s is not set, or holds more than one line of printable characters", wrong)
			}
		}
		return filled
	}
	headers, env = fill("headers", s.Headers), fill("env", s.Env)
	return headers, env, err
}

// expand replaces each ${NAME} of a value. Any other $ is left as it is.
func expand(value string, lookup func(name string) string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(value, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed || !isVariable(name) {
			return "", errReference
		}
		b.WriteString(lookup(name))
		value = rest
	}
}

var errReference = errors.New("after ${ capital letters, digits and _ were expected, and then }")

func isVariable(name string) bool {
	const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return name != "" && len(name) <= 64 && strings.ContainsAny(name[:1], capitals) &&
		strings.Trim(name, capitals+"0123456789") == ""
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
