package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Quote returns the command that has exactly these words in every shell of the Bourne family, whatever bytes they
// contain. A word with NUL cannot be quoted; no system passes on the bytes after NUL. The words of a read_only command,
// which have no quote, backslash, dollar, backtick or exclamation mark, are the same in fish and csh too.
//
// [syntax.Quote] is not used: for POSIX it refuses unprintable characters, and it uses double quotes if a word contains
// a single quote.
func Quote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = word
		if !bare(word) || i == 0 && syntax.IsKeyword(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// bare reports whether a word means itself without quotes. An equals sign is allowed within an option, where it is
// neither an assignment nor the start of a path (zsh).
func bare(word string) bool {
	for _, r := range word {
		if !isPlain(r) || r == '=' && word[0] != '-' {
			return false
		}
	}
	return word != ""
}

// isPlain reports whether no shell gives the character a special meaning anywhere in a word. An equals sign has one
// only in the first words.
func isPlain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-+.,/:=@%", r)
}
