package github

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// The limits of writes. GitHub accepts bodies of 65,536 characters, including the mark.
const (
	MaxTitle     = 256     // characters, one line
	MaxBody      = 60_000  // octets
	MaxLabels    = 20      //
	MaxAssignees = 10      // GitHub's own limit
	MaxFiles     = 50      // of one commit
	MaxCommit    = 1 << 18 // octets of all files of one commit
	MaxMessage   = 4 << 10 // octets of a commit's message
	maxPath      = 255
	maxNumber    = 1<<31 - 1
)

var (
	ownerName  = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9]|-[A-Za-z0-9]){0,38}$`)
	repoName   = lazyregexp.New(`^[A-Za-z0-9._-]{1,100}$`)
	branchName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$`)
	refName    = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$`)
)

// repository checks the names of an owner and a repository. They become parts of request paths, so only GitHub's own
// characters are allowed.
func repository(owner, repo string) error {
	if !ownerName.MatchString(owner) {
		return fault.Invalid("owner", "not a GitHub account name")
	}
	return named("repo", repo)
}

func named(field, repo string) error {
	if !repoName.MatchString(repo) || strings.Trim(repo, ".") == "" || strings.HasSuffix(repo, ".git") {
		return fault.Invalid(field,
			"a repository name must have letters, digits and any of . _ - and must not end in .git")
	}
	return nil
}

// branch checks the name of a branch as git does (git-check-ref-format), in ASCII.
func branch(field, s string) error {
	bad := !branchName.MatchString(s) || strings.HasSuffix(s, "/") || strings.HasSuffix(s, ".")
	for part := range strings.SplitSeq(s, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad || strings.Contains(s, "..") || strings.HasPrefix(s, "refs/") {
		return fault.Invalid(field, "not a branch name")
	}
	return nil
}

// revision checks the name of a branch, a tag or a commit. It may be empty.
func revision(s string) error {
	if s == "" || refName.MatchString(s) && !strings.Contains(s, "..") && !strings.Contains(s, "//") {
		return nil
	}
	return fault.Invalid("ref", "not the name of a branch, a tag or a commit")
}

// path checks a file's path within its repository.
func path(field, s string) error {
	bad := len(s) > maxPath || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == '\\' })
	for part := range strings.SplitSeq(s, "/") {
		bad = bad || part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git")
	}
	if bad {
		return fault.Invalid(field, "not the path of a file in a repository")
	}
	return nil
}

// line checks a text of one line that is not blank, and trims white space, as GitHub does.
func line(field, s string) (string, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return s, fault.Invalid(field, "must not be empty")
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return s, fault.Invalid(field, "line breaks and control characters are not allowed")
	}
	return s, nil
}

// text converts line ends to line feeds, and refuses control characters and the mark of an action.
func text(field, s string, most int) (string, error) {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	if len(s) > most {
		return s, fault.Invalid(field, "the limit is %d octets", most)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		return s, fault.Invalid(field, "control characters are not allowed")
	}
	if strings.Contains(s, markBegin) {
		return s, fault.Invalid(field, "only this service can set the mark of an action")
	}
	return s, nil
}

// set sorts names and drops duplicates.
func set(field string, names []string, most int, valid func(string) bool) ([]string, error) {
	if len(names) > most {
		return nil, fault.Invalid(field, "the limit is %d", most)
	}
	for i, n := range names {
		if !valid(n) {
			return nil, fault.Invalid(fmt.Sprintf("%s/%d", field, i), "invalid name")
		}
	}
	return sorted(names), nil
}

func sorted(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

func isLabel(s string) bool {
	return strings.TrimSpace(s) == s && s != "" && len(s) <= 50 &&
		!strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == ',' })
}

func isLogin(s string) bool { return ownerName.MatchString(s) }

// moment converts a time to GitHub's form.
func moment(field, s string) (string, error) {
	if s == "" {
		return s, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s, fault.Invalid(field, "not a time in GitHub's form")
	}
	return t.UTC().Format(time.RFC3339), nil
}

// bounded sets limits for the schema's texts and numbers. Fields without an entry have none.
func bounded(s *jsonschema.Schema, most map[string]int) {
	for field, n := range most {
		if p := s.Properties[field]; p.Type == "integer" {
			p.Minimum, p.Maximum = jsonschema.Ptr(1.0), jsonschema.Ptr(float64(n))
			if strings.HasSuffix(strings.ToLower(field), "offset") { // an offset can be 0
				p.Minimum = jsonschema.Ptr(0.0)
			}
		} else {
			p.MaxLength = jsonschema.Ptr(n)
		}
	}
}

// inRepository limits the arguments that name the repository of a call, and those in more.
func inRepository(more map[string]int) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		bounded(s, map[string]int{"owner": 39, "repo": 100})
		bounded(s, more)
	}
}

func inRepositoryNamed(s *jsonschema.Schema) {
	bounded(s, map[string]int{"name": 100, "description": maxDescription})
}
