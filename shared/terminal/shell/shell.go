// Package shell judges shell commands before they run. It is pure: it parses commands and starts nothing.
//
// [Judge] is for a command that a person may be asked to approve. It refuses text that a person cannot read, classifies
// the rest, adds warnings with their places, and turns a read-only command into argument lists and a canonical form.
// [Allowed] is for a program that declares which commands may run: it turns a command into a [List], which runs without
// any shell.
//
// A command is read_only, or a list, only if each of its words is spelled out. A command with text that a shell would
// have to expand, substitute or look up needs an approval, or is denied. Commands run from the parsed words, never from
// the text, so no second parser can interpret the text differently.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/countersign-run/countersign/shared/base/visible"
)

// Grammar is the language of a command: that of the shell that will run it.
type Grammar string

// The supported grammars.
const (
	Bash  Grammar = "bash"
	POSIX Grammar = "sh"
)

// Limits of a command. The parser is recursive, and its time grows with the depth of brackets.
const (
	MaxLength   = 8 << 10 // bytes
	maxBrackets = 512
)

// unreadable returns the reason why a person cannot read the command as the shell does, or "".
func unreadable(command string) string {
	switch {
	case len(command) > MaxLength:
		return fmt.Sprintf("is over %d bytes", MaxLength)
	case !utf8.ValidString(command):
		return "is not valid UTF-8"
	case strings.TrimSpace(command) == "":
		return "is blank"
	}
	brackets := 0
	for i, r := range command {
		switch {
		case strings.ContainsRune("\n\t\r", r):
		case r < ' ' || r == 0x7F:
			return fmt.Sprintf("has a control character (U+%04X) at byte %d", r, i)
		case r != ' ' && unicode.IsSpace(r):
			return fmt.Sprintf("has a space (U+%04X) at byte %d that a shell treats as a letter", r, i)
		case r > unicode.MaxASCII && visible.Dangerous(r):
			return fmt.Sprintf("has an invisible character (U+%04X) at byte %d", r, i)
		case r >= 0xFF01 && r <= 0xFF5E || r >= 0xFFE0 && r <= 0xFFE6:
			return fmt.Sprintf("has a full-width character (U+%04X) at byte %d that looks like another", r, i)
		case strings.ContainsRune("([{`", r):
			brackets++
		}
	}
	if brackets > maxBrackets {
		return fmt.Sprintf("has more than %d brackets", maxBrackets)
	}
	return ""
}

// parse parses a readable command, or returns the mistake in it.
func parse(command string, g Grammar) (file *syntax.File, wrong string) {
	if wrong := unreadable(command); wrong != "" {
		return nil, wrong
	}
	lang := syntax.LangBash
	if g == POSIX {
		lang = syntax.LangPOSIX
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(command), "")
	switch {
	case err != nil: // its text has words of the command
		return nil, fmt.Sprintf("cannot be parsed as %s", g)
	case len(file.Stmts) == 0:
		return nil, "is only a comment"
	}
	return file, ""
}
