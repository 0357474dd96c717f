package mcpfile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// secretWords occur in the names of headers, variables and parameters that hold secrets. tellEnds end the names of
// those that only describe a secret.
var (
	secretWords = []string{"auth", "token", "key", "secret", "password", "cookie", "credential"}
	tellEnds    = []string{"url", "uri", "endpoint", "issuer", "host", "port", "path", "file", "dir", "id", "arn",
		"name", "type", "mode", "enabled", "ttl", "timeout", "region", "tag_key", "public_key"}
)

// checkValue checks the value of a header, a variable or a parameter. A secret must be a reference, because files are
// copied, mailed and archived.
func checkValue(field, name, value string, bare bool) error {
	refers := false
	rest, err := expand(value, bare, func(string, string) string { refers = true; return "" })
	switch {
	case err != nil:
		return fault.Invalid(field, "%s", err)
	case len(value) > maxText || strings.Contains(rest, "\x00") || bare && !printable(rest):
		return fault.Invalid(field, "must be at most %d printable characters", maxText)
	case !refers && isSecret(strings.ToLower(name), value):
		return fault.Invalid(field, "must contain ${NAME}, with the name of the variable that has the secret")
	}
	return nil
}

// isSecret guesses from the lower-case name and the value whether the value is a secret.
func isSecret(name, value string) bool {
	if !slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) }) {
		return false
	}
	if slices.ContainsFunc(tellEnds, func(end string) bool { return strings.HasSuffix(name, "_"+end) }) {
		return false
	}
	_, err := strconv.ParseBool(value)
	short := len(value) <= 6 && strings.Trim(value, "0123456789") == ""
	return err != nil && !short && !isKeyFile(value)
}

// isKeyFile reports whether the value is the path of a file with secrets, as in GOOGLE_APPLICATION_CREDENTIALS.
func isKeyFile(value string) bool {
	i := strings.LastIndexByte(value, '.')
	return strings.ContainsAny(value, `/\`) && i > 0 &&
		slices.Contains([]string{"json", "pem", "key", "p12"}, value[i+1:])
}

func isVariable(name string) bool {
	return name != "" && len(name) <= 64 && printable(name) && !strings.ContainsAny(name, "= ")
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
