package mcpclient

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// maxName is the maximum length of a tool's name, in bytes.
const maxName = 63

// names returns the model's name for each tool: the prefix and the server's name. Characters that Gemini does not
// accept become underscores. A name that would be too long, or equal to another tool's, ends with a hash of the
// server's name. If two different tools have one name, neither has an entry. The names do not depend on the order of
// the list.
func (ch Choice) names(all []*definition) map[*definition]string {
	out, count := map[*definition]string{}, map[string]int{}
	for _, d := range all {
		count[plainName(ch.Prefix, d.Name)]++
	}
	taken := map[string]bool{}
	for _, d := range all {
		taken[ch.Prefix+d.Name] = true
	}
	for _, d := range all {
		name := plainName(ch.Prefix, d.Name)
		if name != ch.Prefix+d.Name && count[name] > 1 || len(name) > maxName {
			end := "_" + hash(d.Name)[:8]
			name = clip.Prefix(name, maxName-len(end)) + end
			if taken[name] {
				continue
			}
		}
		if only(all, d.Name) == d {
			out[d] = name
		}
	}
	return out
}

// plainName returns the prefix and a server's tool name, with only valid characters.
func plainName(prefix, name string) string {
	name = prefix + strings.Map(func(r rune) rune {
		if strings.ContainsRune(nameRunes, r) {
			return r
		}
		return '_'
	}, name)
	if !strings.ContainsAny(name[:min(1, len(name))], letters) {
		return "tool_" + name
	}
	return name
}

const (
	letters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	nameRunes = letters + "0123456789_.-"
)

// shown returns the server's name for the tool, in a form that is safe to show.
func (d *definition) shown() string {
	said, _ := visible.Line(clip.Text(d.Name, maxWord))
	return said
}
