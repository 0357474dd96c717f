package schema

import (
	"regexp/syntax"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// maxPatterns limits the total size of a schema's patterns, in instructions of their compiled programs.
const maxPatterns = 20_000

// pattern keeps a pattern that RE2 can check. A pattern with a lookahead, a back reference or too large a program
// becomes a sentence in the description, which the model reads. The code that answers the call checks it.
func (i *importer) pattern(s *jsonschema.Schema, at place, v any) error {
	given, ok := v.(string)
	if !ok {
		return refused(at, "must be a text")
	}
	if re, ok := i.checkable(given); ok {
		s.Pattern = re
		return nil
	}
	s.Description = strings.TrimSpace(s.Description + "\nIt must match the regular expression " + clip.Text(given, 500))
	return nil
}

// patternProperties keeps the schemas of property names that match a pattern. A pattern that cannot be checked becomes
// a sentence in the description, and additional properties are not restricted.
func (i *importer) patternProperties(s *jsonschema.Schema, at place, v any, depth int) error {
	all, err := i.properties(at, v, depth)
	if err != nil {
		return err
	}
	s.PatternProperties = map[string]*jsonschema.Schema{}
	for given, one := range all {
		re, ok := i.checkable(given)
		if !ok {
			s.Description = strings.TrimSpace(s.Description + "\nOther names must match the regular expression " +
				clip.Text(given, 500))
			s.AdditionalProperties = nil // read before, because keywords are sorted
			continue
		}
		s.PatternProperties[re] = one
	}
	return nil
}

// ecma matches ECMA-262 escapes that RE2 spells differently.
var ecma = lazyregexp.New(`\\u\{?([0-9A-Fa-f]{4,6})\}?`)

// checkable returns the pattern in RE2 syntax, and whether it can be checked.
func (i *importer) checkable(pattern string) (string, bool) {
	plain := strings.ReplaceAll(pattern, `\\`, `\x5c`)
	re := ecma.ReplaceAllString(plain, `\x{$1}`)
	tree, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return "", false
	}
	size := programSize(tree)
	if size > maxPatterns-i.patterns {
		return "", false
	}
	i.patterns += size
	if re == plain {
		return pattern, true
	}
	return re, true
}

// programSize estimates the number of instructions in a pattern's compiled program, up to maxPatterns+1.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		size += programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1)
	}
	return min(size, maxPatterns+1)
}
