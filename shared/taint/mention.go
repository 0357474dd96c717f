package taint

import (
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/lazyregexp"
)

// What in a text leads somewhere or calls somebody: links with a scheme, those of GFM without one and those that begin
// with //; addresses; @mentions of people and teams; repositories, and what is referred to in them.
var (
	link    = lazyregexp.New(`(?i)(?:\b[a-z][a-z0-9+.-]{1,20}:)?//[^\s<>"\x60]+|\bwww\.[^\s<>"\x60]+|\b(?:mailto|xmpp|tel):[^\s<>"\x60]+`)
	address = lazyregexp.New(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)
	calling = lazyregexp.New(`(?:^|[^\p{L}\p{N}_./-])(@[\p{L}\p{N}][\p{L}\p{N}_-]*(?:/[\p{L}\p{N}_-]+)?)`)
	project = lazyregexp.New(`(?:^|[^\p{L}\p{N}_./@:-])([\p{L}\p{N}][\p{L}\p{N}-]{0,38}/[\p{L}\p{N}._-]+)(#\p{N}+|@[0-9a-f]{7,40})?(/?)`)
	// isFile matches the end of a file's name; a repository of such a name counts where something in it is referred to.
	isFile = lazyregexp.New(`\.\p{L}{1,5}$`)
)

// linkTail has the characters that end a sentence or a form of Markdown and no link.
const linkTail = `.,;:!?*_~'")]}|`

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

// mentionsIn adds what one form of a text mentions. What a text has no sign of is not looked for: that takes longer
// than all else.
func mentionsIn(form string, add func(text string, ends boundary)) {
	if strings.ContainsAny(form, "/:") || strings.Contains(strings.ToLower(form), "www.") {
		for _, l := range link.FindAllString(form, -1) {
			add(strings.TrimRight(l, linkTail), linkEnds)
		}
		form = link.ReplaceAllString(form, " ")
	}
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
