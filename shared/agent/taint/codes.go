package taint

import (
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A kind of code writes each character as a number.
type kindOfCode struct {
	runs *lazyregexp.Regexp
	base int
	size int // digits of a character where nothing separates the numbers
}

// kindsOfCode are hex (plain, with signs around each number, and as a dump with offsets), decimal, binary and octal
// numbers, as in 50 6c, [50][6c], \N{U+0050}, CHR(80)||CHR(108), 080108, 0b1010000 and 120 154.
var kindsOfCode = []kindOfCode{
	{lazyregexp.New(`(?:0x)?[0-9a-fA-F]{2}(?:[ :,;|_\n-]{0,2}(?:0x)?[0-9a-fA-F]{2}){3,}`), 16, 2},
	{lazyregexp.New(`(?:[#$\[<({./\\]{0,3}(?:[xX]\{|N\{[uU]\+|[uU]\+)?(?:00)?[0-9a-fA-F]{2}[hH}\]>)./]{0,3}[ ,;]{0,2}){8,}`),
		16, 2},
	{lazyregexp.New(`(?m:^[ \t>]*[0-9a-fA-F]{4,8}:?[ \t]+(?:[0-9a-fA-F]{2,4}[ \t]{1,2}){2,16}.*\n?){2,}`), 16, 2},
	{lazyregexp.New(`\b[0-9]{1,3}(?:[ ,;\n/.-]{1,2}[0-9]{1,3}){7,}\b`), 10, 0},
	{lazyregexp.New(`(?i:n?cha?r[a-z]?\([0-9]{1,3}\)[ &+.,|]{0,4}){8,}`), 10, 0},
	{lazyregexp.New(`\b(?:[012][0-9]{2}){12,}\b`), 10, 3},
	{lazyregexp.New(`\b(?:0b)?[01]{7,8}(?:[ ,;\n]{0,2}(?:0b)?[01]{7,8}){7,}\b`), 2, 8},
	{lazyregexp.New(`\b[0-7]{2,3}(?:[ ,;\n]{1,2}[0-7]{2,3}){7,}\b`), 8, 0},
}

// A line of a dump has an offset, the numbers, and the characters.
var dumped = lazyregexp.New(`(?m)^[ \t>]*[0-9a-fA-F]{4,8}:?[ \t]+((?:[0-9a-fA-F]{2,4}[ \t]{1,2})+).*$`)

// codes decodes the runs of one kind that are long enough.
func codes(s string, least int, k kindOfCode) string {
	var runs []string
	for _, run := range k.runs.FindAllString(s, -1) {
		if len(run) >= least {
			runs = append(runs, k.decode(dumped.ReplaceAllString(run, "$1")))
		}
	}
	return strings.TrimSpace(strings.Join(runs, "\n"))
}

// decode returns the text of a run, or "". Up to two numbers before the text can be others.
func (k kindOfCode) decode(run string) string {
	numbers := k.numbers(run)
	var b []byte
	for _, n := range numbers {
		code, err := strconv.ParseUint(n, k.base, 8)
		if err != nil {
			return ""
		}
		b = append(b, byte(code))
	}
	for skip := range min(len(b), 3) {
		if s := textOf(b[skip:]); s != "" {
			return s
		}
	}
	return ""
}

// numbers returns the numbers of a run, without the characters around them.
func (k kindOfCode) numbers(run string) (all []string) {
	run = strings.NewReplacer("0x", " ", "0b", " ").Replace(run)
	if k.base == 16 {
		run = strings.ReplaceAll(run, " ", "") // a character can be written as 00 50, or two together as 506c
	}
	for n := range strings.FieldsFuncSeq(run, func(r rune) bool { return valueOf(r) >= k.base }) {
		for k.size > 0 && len(n) > k.size {
			all, n = append(all, n[:k.size]), n[k.size:]
		}
		all = append(all, n)
	}
	return all
}

func valueOf(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return int(r - '0')
	case r >= 'a' && r <= 'f':
		return int(r-'a') + 10
	case r >= 'A' && r <= 'F':
		return int(r-'A') + 10
	}
	return 16
}

// inName reports whether the character occurs in the name of a function that converts a number to a character.
func inName(s string, i int) bool {
	name := strings.ToLower(s[max(0, i-3):min(len(s), i+4)])
	return strings.Contains(name, "chr(") || strings.Contains(name, "char(")
}

// Invisible characters that stand for others: the tags of Unicode are copies of ASCII, and each of the 256 variation
// selectors can stand for a byte.
const (
	firstTag, lastTag               = 0xe0000, 0xe007f
	firstSelector, lastSelector     = 0xfe00, 0xfe0f
	furtherSelector, furthestOfThem = 0xe0100, 0xe01ef
)

// hides reports whether a text may contain such characters, by their first bytes.
func hides(s string) bool { return strings.Contains(s, "\xf3\xa0") || strings.Contains(s, "\xef\xb8") }

// unhidden returns what the tags and the variation selectors of a text stand for.
func unhidden(s string) string {
	var tags strings.Builder
	var selected []byte
	for _, r := range s {
		switch {
		case r >= firstTag && r <= lastTag:
			tags.WriteRune(r - firstTag)
		case r >= firstSelector && r <= lastSelector:
			selected = append(selected, byte(r-firstSelector))
		case r >= furtherSelector && r <= furthestOfThem:
			selected = append(selected, byte(r-furtherSelector+16))
		default:
			tags.WriteRune(r)
		}
	}
	return strings.TrimSpace(tags.String() + "\n" + textOf(selected))
}
