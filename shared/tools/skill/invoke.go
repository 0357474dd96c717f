package skill

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// An Invocation is a skill that a user invoked by name, with its arguments.
type Invocation struct {
	Skill     *Skill
	Arguments string // as the user wrote them
}

var invoked = lazyregexp.New(`^\s*/([A-Za-z0-9_-]{1,64})(?:\s+|$)`)

// Invoked returns the invocation "/name arguments" at the beginning of a prompt, or nil. If the name is not a skill
// for users, the prompt is ordinary text, such as "/etc/hosts is empty".
func (l *Library) Invoked(prompt string) *Invocation {
	found := invoked.FindStringSubmatch(prompt)
	if found == nil {
		return nil
	}
	s := l.get(found[1])
	if s == nil || s.ModelOnly {
		return nil
	}
	return &Invocation{s, strings.TrimSpace(prompt[len(found[0]):])}
}

// Text returns the skill's text with the arguments inserted, for the end of the run's instructions. The text does not
// count as the user's words. The error is about the field prompt, if the text is longer than [MaxText].
func (i *Invocation) Text() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "The user has invoked the skill %s for this request. %s\n", i.Skill.Name, rank)
	if len(i.Skill.Files) > 0 {
		reader := ReadFile
		if i.Skill.UserOnly {
			reader = ReadInvoked
		}
		fmt.Fprintf(&b, "Its files, which %s returns:\n%s", reader, i.Skill.list())
	}
	b.WriteString("\n")
	if !i.substitute(&b) {
		return "", fault.Invalid("prompt", "with these arguments the text of the skill %s is longer than the limit of "+
			"%d bytes", i.Skill.Name, MaxText)
	}
	return b.String(), nil
}

// placeholder matches $ARGUMENTS[n], $n and $name, including a backslash before them.
var placeholder = lazyregexp.New(`(\\?)\$(?:ARGUMENTS\[(\d{1,3})\]|(\d+)|([A-Za-z_][A-Za-z0-9_]*))`)

// substitute returns the skill's text with the arguments in place of their placeholders. Arguments without a
// placeholder follow the text. It reports false if the text would be longer than MaxText.
func (i *Invocation) substitute(b *strings.Builder) (fits bool) {
	body, words := i.Skill.Body, split(i.Arguments)
	base := 1
	if strings.Contains(body, "$ARGUMENTS[") || zeroth.MatchString(body) {
		base = 0
	}
	at, placed := 0, false
	for _, m := range placeholder.FindAllStringSubmatchIndex(body, -1) {
		group := func(n int) string { return body[max(0, m[2*n]):max(0, m[2*n+1])] }
		value, known := i.value(words, base, group(2), group(3), group(4))
		if !known {
			continue
		}
		if group(1) != "" {
			value = body[m[0]+1 : m[1]]
		}
		b.WriteString(body[at:m[0]] + value)
		at, placed = m[1], placed || group(1) == ""
		if b.Len() > MaxText {
			return false
		}
	}
	b.WriteString(body[at:])
	if !placed && i.Arguments != "" {
		b.WriteString("\n\nARGUMENTS: " + i.Arguments)
	}
	return b.Len() <= MaxText
}

// zeroth matches the placeholder $0, which shows that the skill's arguments count from 0.
var zeroth = lazyregexp.New(`\$0(?:\D|$)`)

// value returns the value of a placeholder: $ARGUMENTS[index] counts from 0, $position from base, and a name is
// $ARGUMENTS or an argument of the skill. A placeholder without an argument is unknown and stays unchanged.
func (i *Invocation) value(words []string, base int, index, position, name string) (string, bool) {
	n := -1
	switch {
	case name == "ARGUMENTS":
		return i.Arguments, true
	case name != "":
		n = slices.Index(i.Skill.Arguments, name)
	case index != "":
		n, _ = strconv.Atoi(index) // at most three digits
	case len(position) == 1:
		n = int(position[0]-'0') - base
	}
	if n < 0 || n >= len(words) {
		return "", false
	}
	return words[n], true
}

var word = lazyregexp.New(`"[^"]*"|'[^']*'|\S+`)

// split splits the arguments at spaces. Quotes around an argument protect its spaces.
func split(arguments string) []string {
	words := word.FindAllString(arguments, -1)
	for i, w := range words {
		if n := len(w); n > 1 && (w[0] == '"' || w[0] == '\'') && w[n-1] == w[0] {
			words[i] = w[1 : n-1]
		}
	}
	return words
}

// Lets reports whether the model may call the tool in the run: any tool if the skill has no list, and otherwise the
// tools in the list, those that end the run, and those of this package.
func (i *Invocation) Lets(t *tool.Tool) bool {
	switch {
	case t.Name == ReadInvoked:
		return i.Skill.UserOnly && len(i.Skill.Files) > 0
	case i.Skill.AllowedTools == nil, t.Final, own(t.Name):
		return true
	}
	return slices.Contains(i.Skill.AllowedTools, t.Name)
}

// Invocable returns the skills that a user can invoke, sorted by their names.
func (l *Library) Invocable() []*Skill { return l.where(func(s *Skill) bool { return !s.ModelOnly }) }

// forModel returns the skills that the model can activate.
func (l *Library) forModel() []*Skill { return l.where(func(s *Skill) bool { return !s.UserOnly }) }

func (l *Library) where(keep func(*Skill) bool) (some []*Skill) {
	for _, s := range l.skills {
		if keep(s) {
			some = append(some, s)
		}
	}
	return some
}
