package demohost

import (
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const grepOptions = "ignore-case=i invert-match=v line-number=n count=c quiet=q recursive=r word-regexp=w " +
	"only-matching=o extended-regexp=E fixed-strings=F files-with-matches=l files-without-match=L no-messages=s " +
	"color=a max-count=m no-filename=h with-filename=H after-context=A before-context=B context=C"

func grep(c *call) int {
	f, names, ok := c.parse("ivnclLqrRwxoEFHhsae:A:B:C:m:", grepOptions)
	if !ok {
		return 2
	}
	patterns, given := f['e']
	if !given {
		if len(names) == 0 {
			return c.fail(2, "usage: grep [OPTION]... PATTERNS [FILE]...")
		}
		patterns, names = names[0], names[1:]
	}
	re, err := expressionOf(patterns, f, c.name)
	if err != nil {
		return c.fail(2, "%v", err)
	}
	if f.has("s") {
		c.err = io.Discard
	}
	deep := f.has("rR")
	if deep {
		names = c.filesBelow(names)
	}
	around := f.number('C', 0)
	s := &search{c: c, f: f, re: re, label: (deep || len(names) > 1 || f.has("H")) && !f.has("h"),
		before: f.number('B', around), after: f.number('A', around), most: f.number('m', 1<<30),
		counts: map[string]int{}}
	code := c.lines(names, s.line)
	if len(names) == 0 {
		names = []string{"-"}
	}
	s.summary(names)
	switch {
	case code != 0 && !f.has("q"):
		return 2
	case len(s.counts) == 0:
		return 1
	}
	return 0
}

// search is the state of a grep.
type search struct {
	c             *call
	f             flags
	re            *regexp.Regexp
	label         bool // lines are shown with the names of their files
	before, after int  // number of lines to show around a match
	most          int  // maximum number of matches of a file
	counts        map[string]int

	file  string
	at    int      // the line's number
	held  []string // lines before the current one that were not shown
	owed  int      // number of lines still to show after a match
	shown int      // number of the last line that was shown; 0: none
	any   bool     // whether a file had a match
}

// line examines the next line of a file, and reports whether more lines are needed.
func (s *search) line(file, line string) bool {
	if file != s.file {
		s.file, s.at, s.held, s.owed, s.shown = file, 0, nil, 0, 0
	}
	s.at++
	if s.counts[file] == s.most || s.re.MatchString(line) == s.f.has("v") {
		return s.context(line)
	}
	s.counts[file]++
	switch {
	case s.f.has("qlL"):
		return false
	case s.f.has("c"):
		return s.counts[file] < s.most
	}
	if first := s.at - len(s.held); s.before+s.after > 0 && s.any && (s.shown == 0 || first > s.shown+1) {
		s.c.printf("--\n")
	}
	for i, l := range s.held {
		s.show(s.at-len(s.held)+i, "-", l)
	}
	s.held, s.owed = nil, s.after
	matches := []string{line}
	if s.f.has("o") && !s.f.has("v") {
		matches = slices.DeleteFunc(s.re.FindAllString(line, -1), func(m string) bool { return m == "" })
	}
	for _, m := range matches {
		if !s.show(s.at, ":", m) {
			return false
		}
	}
	return s.counts[file] < s.most || s.owed > 0
}

// context shows or holds a line that does not match.
func (s *search) context(line string) bool {
	if s.owed > 0 {
		s.owed--
		return s.show(s.at, "-", line) && (s.owed > 0 || s.counts[s.file] < s.most)
	}
	if s.held = append(s.held, line); len(s.held) > s.before {
		s.held = s.held[1:]
	}
	return true
}

// show prints a line, and reports whether the reader still reads.
func (s *search) show(number int, mark, line string) bool {
	if s.f.has("n") {
		line = strconv.Itoa(number) + mark + line
	}
	if s.label {
		line = s.file + mark + line
	}
	s.shown, s.any = number, true
	_, err := fmt.Fprintln(s.c.out, line)
	return err == nil
}

// summary prints the lines about whole files.
func (s *search) summary(names []string) {
	for _, name := range names {
		switch n := s.counts[name]; {
		case s.f.has("q"):
		case s.f.has("l") && n > 0, s.f.has("L") && n == 0:
			s.c.printf("%s\n", name)
		case s.f.has("lL"):
		case s.f.has("c") && s.label:
			s.c.printf("%s:%d\n", name, n)
		case s.f.has("c"):
			s.c.printf("%d\n", n)
		}
	}
}

// expressionOf converts grep's patterns, one on each line, to a Go pattern. In the basic form, \| \( and \+ mean the
// same as | ( and + in Go.
func expressionOf(patterns string, f flags, name string) (*regexp.Regexp, error) {
	switch {
	case f.has("F") || name == "fgrep":
		patterns = regexp.QuoteMeta(patterns)
	case !f.has("E") && name != "egrep":
		patterns = swapped.Replace(patterns)
	}
	pattern := "(?:" + strings.ReplaceAll(patterns, "\n", "|") + ")"
	if f.has("w") {
		pattern = `\b` + pattern + `\b`
	}
	if f.has("x") {
		pattern = `^` + pattern + `$`
	}
	if f.has("i") {
		pattern = "(?i)" + pattern
	}
	return regexp.Compile(pattern)
}

var swapped = strings.NewReplacer(`\|`, `|`, `\(`, `(`, `\)`, `)`, `\+`, `+`, `\?`, `?`, `\{`, `{`, `\}`, `}`,
	`|`, `\|`, `(`, `\(`, `)`, `\)`, `+`, `\+`, `?`, `\?`, `{`, `\{`, `}`, `\}`)

func (c *call) filesBelow(names []string) (files []string) {
	if len(names) == 0 {
		names = []string{"."}
	}
	for _, name := range names {
		from := strings.TrimSuffix(c.abs(name), "/")
		err := c.walk(c.abs(name), func(abs string, info fs.FileInfo) bool {
			if info.Mode().IsRegular() {
				files = append(files, strings.TrimSuffix(name, "/")+strings.TrimPrefix(abs, from))
			}
			return true
		})
		if err != nil {
			c.fail(2, "%s: %s", name, reason(err))
		}
	}
	return files
}
