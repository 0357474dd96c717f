package taint

import (
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// What in a text calls somebody or refers to something, beside its links ([visible.Targets]): addresses; @mentions of
// people and teams; repositories, and what is referred to in them; what closes an issue.
var (
	address = lazyregexp.New(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)
	calling = lazyregexp.New(`(?:^|[^\p{L}\p{N}_./-])(@[\p{L}\p{N}][\p{L}\p{N}_-]*(?:/[\p{L}\p{N}_-]+)?)`)
	project = lazyregexp.New(`(?:^|[^\p{L}\p{N}_./@:-])([\p{L}\p{N}][\p{L}\p{N}-]{0,38}/[\p{L}\p{N}._-]+)(#\p{N}+|@[0-9a-f]{7,40})?(/?)`)
	// closing finds the references that close what they name, and those to an issue as GH-1.
	closing = lazyregexp.New(`\b(?:(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? (#[0-9]+|gh-[0-9]+)|(gh-[0-9]+))\b`)
	// isFile matches the end of a file's name; a repository of such a name counts where something in it is referred to.
	isFile = lazyregexp.New(`\.\p{L}{1,5}$`)
)

// mention is one of them: a link as it is written, anything else normalised.
type mention struct {
	text string
	ends boundary
}

// mentions returns what a text mentions, each once: as it stands, with what Markdown makes of its entities, and without
// the backslashes that it drops.
func mentions(s string) (all []mention) {
	seen := map[mention]bool{}
	add := func(text string, ends boundary) {
		if m := (mention{text, ends}); text != "" && !seen[m] {
			seen[m] = true
			all = append(all, m)
		}
	}
	decoded := html.UnescapeString(s)
	forms := []string{s, decoded, strings.ReplaceAll(decoded, `\`, "")}
	for _, form := range slices.Compact(forms) {
		mentionsIn(bare(form), add)
	}
	return all
}

// addLinks adds the links of a text, those in its HTML too, and returns the text without them.
func addLinks(form string, add func(text string, ends boundary)) (rest string) {
	found, rest := visible.Targets(form)
	if strings.Contains(form, "<") {
		for _, l := range visible.Links(form) {
			if strings.ContainsAny(l.Target, `:\`) || strings.HasPrefix(l.Target, "/") || strings.Contains(l.Target, "..") {
				found = append(found, l.Target)
			}
		}
	}
	for _, l := range found {
		if strings.ContainsAny(l, "/:\\?#") {
			add(l, linkEnds)
		} else { // a host alone, whose letters' case says nothing
			add(Normalize(l), wordEnds)
		}
	}
	return rest
}

// mentionsIn adds what one form of a text mentions. What a text has no sign of is not looked for: that takes longer
// than all else.
func mentionsIn(form string, add func(text string, ends boundary)) {
	form = addLinks(form, add)
	normal := Normalize(form)
	if strings.Contains(normal, "@") {
		for _, a := range address.FindAllString(normal, -1) {
			add(strings.TrimRight(a, ".-"), wordEnds)
		}
		normal = address.ReplaceAllString(normal, " ")
		for _, m := range calling.FindAllStringSubmatch(normal, -1) {
			add(m[1], wordEnds)
		}
	}
	for _, m := range closing.FindAllStringSubmatch(normal, -1) {
		add(m[1]+m[2], wordEnds)
	}
	if !strings.Contains(normal, "/") {
		return
	}
	for _, m := range project.FindAllStringSubmatch(normal, -1) {
		name := strings.TrimRight(m[1], ".")
		// The path of a file is none, and a longer path neither; with a number or a commit it is one in any case.
		if m[2] != "" || m[3] == "" && !isFile.MatchString(name) {
			add(name, wordEnds)
		}
	}
}

// forms returns how own words may have the mention: a link without a scheme also with one, and an issue's number in
// other words.
func (m mention) forms() []string {
	if n := strings.TrimPrefix(strings.TrimPrefix(m.text, "#"), "gh-"); m.closes() {
		return []string{"#" + n, "gh-" + n, "issue " + n, "issues/" + n, "pull/" + n, "pr " + n, "pull request " + n}
	}
	if m.ends == linkEnds && !strings.Contains(m.text, "//") && !strings.HasPrefix(m.text, "/") {
		return []string{m.text, "https://" + m.text, "http://" + m.text}
	}
	return []string{m.text}
}

// closes reports whether the mention is the number of an issue, which its context may close.
func (m mention) closes() bool {
	return m.ends == wordEnds && (strings.HasPrefix(m.text, "#") || strings.HasPrefix(m.text, "gh-"))
}

// into reports whether a link leads into the repository, or the name is the repository's.
func (m mention) into(repository string) bool {
	if repository == "" {
		return false
	}
	if m.ends == wordEnds {
		return strings.HasSuffix(strings.ToLower(repository), "/"+m.text) && strings.Contains(m.text, "/")
	}
	u, err := url.Parse(m.text)
	of, errOf := url.Parse(repository)
	if err != nil || errOf != nil || u.User != nil || u.Scheme != of.Scheme || strings.ContainsAny(m.text, `\%`) ||
		strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/..") {
		return false
	}
	return u.Host == of.Host && (u.Path == of.Path || strings.HasPrefix(u.Path, of.Path+"/"))
}

// boundary says where a token of a kind ends in a text.
type boundary int

const (
	wordEnds boundary = iota
	linkEnds
)

// whole reports whether the text has the token with its ends where such a token ends.
func whole(text, token string, ends boundary) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], token)
		if at < 0 || token == "" {
			return false
		}
		at += from
		if begins(text[:at], ends) && ended(text[at+len(token):], ends) {
			return true
		}
		from = at + len(token)
	}
}

// begins reports whether a token can begin behind the text.
func begins(before string, ends boundary) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || !inWord(r) && (ends != linkEnds || r != '/')
}

// ended reports whether a token has ended where this text goes on.
func ended(rest string, ends boundary) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if rest == "" || unicode.IsSpace(r) {
		return true
	}
	if ends == wordEnds {
		// a dot is the end of a sentence, or goes on with the name
		return !inWord(r) && (r != '.' || ended(rest[size:], ends) && !strings.HasPrefix(rest, "..")) && r != '@'
	}
	if strings.ContainsRune(".,;:!?*_~'", r) {
		return ended(rest[size:], ends)
	}
	return strings.ContainsRune("<>\"\x60)]}|", r)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' || r == '-' }
