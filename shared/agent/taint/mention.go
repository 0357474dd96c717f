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

// These patterns find mentions: addresses, @mentions of people and teams, repositories and references into them, and
// references that close an issue. [visible.Targets] finds links.
var (
	address = lazyregexp.New(`[\p{L}\p{N}._%+-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)
	calling = lazyregexp.New(`(?:^|[^\p{L}\p{N}_])_*(@[\p{L}\p{N}][\p{L}\p{N}_-]*(?:/[\p{L}\p{N}_-]+)?)`)
	// commit matches a commit in a person's copy of the repository.
	commit  = lazyregexp.New(`(?:^|[^\p{L}\p{N}_./@-])([\p{L}\p{N}][\p{L}\p{N}-]{0,38}@[0-9a-f]{7,40})\b`)
	project = lazyregexp.New(`(?:^|[^\p{L}\p{N}_./@:-])([\p{L}\p{N}][\p{L}\p{N}-]{0,38}/[\p{L}\p{N}._-]+)(#\p{N}+|@[0-9a-f]{7,40})?(/?)`)
	// closing finds references after a word that closes an issue or marks it, and references to an issue as GH-1.
	closing = lazyregexp.New(`\b(?:(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|duplicate of)[ :*_~\[<]{1,6}` +
		`(?:(#[0-9]+|gh-[0-9]+)|(?:https?://[^\s/]+/)?([\p{L}\p{N}_.-]+/[\p{L}\p{N}_.-]+)(?:#|/(?:issues|pull)/)([0-9]+))|` +
		`(gh-[0-9]+))\b`)
	// isFile matches the end of a file name. A name like this counts as a repository only if a number or a commit
	// follows it.
	isFile = lazyregexp.New(`\.\p{L}{1,5}$`)
)

// mention is a part of a text that refers to a person, a repository or an address. A link is stored as it is written,
// anything else in its normal form.
type mention struct {
	text string
	ends boundary
}

// mentions returns the mentions in a text, each once. It searches the text as it is, with HTML entities decoded as
// Markdown does, and also without backslashes, which Markdown drops.
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
		mentionsIn(bareLines(form), add)
	}
	return all
}

// bareLines is [bare] for each line of a text: Markdown's references to links begin a line.
func bareLines(s string) string {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "\n")
	for i, l := range lines {
		lines[i] = bare(l)
	}
	return strings.Join(lines, "\n")
}

// addLinks adds the links of a text, including those in HTML, and returns the text without them.
func addLinks(form string, add func(text string, ends boundary)) (rest string) {
	found, rest := visible.Targets(form)
	if strings.Contains(form, "<") {
		for _, l := range visible.Links(form) {
			if visible.LeadsOut(l.Target) {
				found = append(found, l.Target)
			}
		}
	}
	for _, l := range found {
		if strings.ContainsAny(l, "/:\\?#") {
			add(l, linkEnds)
		} else { // a host only, in which case carries no data
			add(Normalize(l), wordEnds)
		}
	}
	return rest
}

// mentionsIn adds the mentions in one form of a text. It skips the patterns whose characters do not occur in the text,
// because they take the most time.
func mentionsIn(form string, add func(text string, ends boundary)) {
	for _, m := range closing.FindAllStringSubmatch(Normalize(form), -1) {
		add(m[1]+m[4], wordEnds)
		if m[2] != "" {
			add(m[2]+"#"+m[3], wordEnds)
		}
	}
	form = addLinks(form, add)
	normal := Normalize(form)
	if strings.Contains(normal, "@") {
		for _, a := range address.FindAllString(normal, -1) {
			add(strings.TrimRight(a, ".-"), wordEnds)
		}
		normal = address.ReplaceAllString(normal, " ")
		for _, m := range calling.FindAllStringSubmatch(normal, -1) {
			add(strings.TrimRight(m[1], "_-"), wordEnds)
		}
		for _, m := range commit.FindAllStringSubmatch(normal, -1) {
			add(m[1], wordEnds)
		}
	}
	if !strings.Contains(normal, "/") {
		return
	}
	for _, m := range project.FindAllStringSubmatch(normal, -1) {
		name := strings.TrimRight(m[1], ".")
		// The path of a file is not a repository, and neither is a longer path. With a number or a commit, it is one in
		// any case.
		if m[2] != "" || m[3] == "" && !isFile.MatchString(name) {
			add(name, wordEnds)
		}
	}
}

// forms returns the ways in which the user may have written the mention. A link without a scheme may have one, and an
// issue's number may follow other words.
func (m mention) forms() []string {
	if m.closes() {
		n := m.text[strings.LastIndexAny(m.text, "#-")+1:]
		return []string{m.text, "#" + n, "gh-" + n, "issue " + n, "issues/" + n, "pull/" + n, "pr " + n,
			"pull request " + n}
	}
	if m.ends == linkEnds && !strings.Contains(m.text, "//") && !strings.HasPrefix(m.text, "/") {
		return []string{m.text, "https://" + m.text, "http://" + m.text}
	}
	return []string{m.text}
}

// closes reports whether the mention is the number of an issue, which the text around it may close.
func (m mention) closes() bool {
	return m.ends == wordEnds && (strings.Contains(m.text, "#") || strings.HasPrefix(m.text, "gh-"))
}

// into reports whether a link leads into the repository, or the mention is the repository's name.
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

// boundary is a kind of token, which determines where a token ends in a text.
type boundary int

const (
	wordEnds boundary = iota
	linkEnds
)

// whole reports whether the text contains the token between boundaries of its kind.
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

// begins reports whether a token can begin after the text.
func begins(before string, ends boundary) bool {
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || !inWord(r) && (ends != linkEnds || r != '/')
}

// ended reports whether a token has ended if this text follows it.
func ended(rest string, ends boundary) bool {
	r, size := utf8.DecodeRuneInString(rest)
	if rest == "" || unicode.IsSpace(r) {
		return true
	}
	if ends == wordEnds {
		// A dot ends a sentence, or belongs to a longer name.
		return !inWord(r) && (r != '.' || ended(rest[size:], ends) && !strings.HasPrefix(rest, "..")) && r != '@'
	}
	if strings.ContainsRune(".,;:!?*_~'", r) {
		return ended(rest[size:], ends)
	}
	return strings.ContainsRune("<>\"\x60)]}|", r)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' || r == '-' }
